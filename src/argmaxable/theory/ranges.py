"""Which values a head's inputs really have: over each feature, over each token, and over all.

Table 9 of Grivas, Bogoychev & Lopez 2022, which supports its box of ±100. A measured range is no proof:
another text may leave it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.boxes import Box
from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector

# The share of tokens in the paper's table.
PERCENT = 99.0


@dataclass(frozen=True)
class Range:
    """From `lo` to `hi`."""

    lo: float
    hi: float


@dataclass(frozen=True, eq=False)
class Ranges:
    """What was seen: the least and greatest value of every feature, and of every token its extremes'
    percentiles: `percent` % of tokens have no value below `tokens.lo`, and as many none above `tokens.hi`."""

    count: int
    lo: Vector
    hi: Vector
    tokens: Range
    percent: float

    @property
    def overall(self) -> Range:
        """The least and the greatest value of all."""
        return Range(float(self.lo.min()), float(self.hi.max()))

    def box(self) -> Box:
        """Every feature within its own range."""
        return Box(self.lo, self.hi)

    def even_box(self) -> Box:
        """All features within the range of all."""
        return Box(self.overall.lo, self.overall.hi)


def measure_ranges(blocks: Iterable[NDArray[Any]], *, percent: float = PERCENT) -> Ranges:
    """Ranges of a head's inputs, given in blocks (tokens × features).

    Percentiles are exact: the extremes of every token are kept, in float32, 8 bytes a token. Raises
    InputError when there are no tokens, or values that aren't finite.
    """
    lo: NDArray[Any] | None = None
    hi: NDArray[Any] | None = None
    least: list[NDArray[np.float32]] = []
    greatest: list[NDArray[np.float32]] = []
    for block in blocks:
        if not len(block):
            continue
        if not np.isfinite(block).all():
            raise InputError(
                "the head's inputs hold NaN or infinite values: the model overflows on this text."
            )
        lo = block.min(axis=0) if lo is None else np.minimum(lo, block.min(axis=0))
        hi = block.max(axis=0) if hi is None else np.maximum(hi, block.max(axis=0))
        least.append(block.min(axis=1).astype(np.float32))
        greatest.append(block.max(axis=1).astype(np.float32))
    if lo is None or hi is None:
        raise InputError("the text has no tokens: there is nothing to measure.")
    low = float(np.percentile(np.concatenate(least), 100 - percent))
    high = float(np.percentile(np.concatenate(greatest), percent))
    count = sum(map(len, least))
    return Ranges(count, lo.astype(np.float64), hi.astype(np.float64), Range(low, high), percent)
