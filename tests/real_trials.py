"""What a trial of `real_runtimes` has found, and its line in the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable import Head

Array = NDArray[Any]


def rows(values: Any, axis: int = -1) -> Array:
    moved = np.moveaxis(np.asarray(values), axis, -1)
    return moved.reshape(-1, moved.shape[-1])


@dataclass(frozen=True)
class Trial:
    """A file, who made it, the head read from it, and the runtime's logits for what the head was given.

    `given` is None where it can't be tapped. `is_softmax`: the runtime puts out probabilities.
    """

    path: Path
    maker: str
    head: Head
    logits: Array
    given: Array | None = None
    is_softmax: bool = False

    def cells(self) -> tuple[str, ...]:
        weight = np.asarray(self.head.weight, np.float64)
        bias = 0.0 if self.head.bias is None else np.asarray(self.head.bias, np.float64)
        answer = np.asarray(self.logits, np.float64)
        if not np.ptp(answer, axis=1).all():
            raise ValueError(f"{self.path.name}: the runtime's logits of an input are all equal")
        given = self.given
        how = ""
        if given is None:
            given = np.linalg.lstsq(weight, (answer - bias).T, rcond=None)[0].T
            how = ", inputs by least squares"
        ours = np.asarray(given, np.float64) @ weight.T + bias
        agree = np.mean(ours.argmax(1) == answer.argmax(1))
        if self.is_softmax:
            ours = np.exp(ours - ours.max(1, keepdims=True))
            ours /= ours.sum(1, keepdims=True)
        largest = np.abs(ours - answer).max()
        kind = " of probabilities" if self.is_softmax else ""
        return (
            self.path.name,
            self.maker + how,
            f"{len(answer)} × {answer.shape[1]}",
            f"{agree:.1%}",
            f"{largest:.1e} ({np.abs(answer).max():.1e}){kind}",
        )
