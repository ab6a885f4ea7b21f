"""Vectors of a search index or a recommender as a head: an item is a class, its vector a row.

The item found first is the argmax of w·x for inner products. For cosines it is the same with vectors of
length one, as such indices store them. For Euclidean distances the nearest item is the argmax of w·x −
½‖w‖²: its bias is not a float in general, so it is rounded, and `bias_error` says by how much at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Arrays, Finding, HeadInputs, Labels, TensorInfo

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

# What the computed bias of Euclidean search is called.
L2_BIAS = "−½‖w‖²"
# Rows squared at a time.
# What rounding to half precision, the coarsest that indices store, can do to lengths, and some more.
_UNEQUAL = 0.01
_BLOCK_ROWS = 4096
_UNIT = 2.0**-53


class Metric(StrEnum):
    """By what an index compares."""

    INNER_PRODUCT = "ip"
    L2 = "l2"
    COSINE = "cosine"


@dataclass(frozen=True, eq=False)
class ItemVectors:
    """What a file says about its vectors (count × size), and how to read them."""

    format: str
    weight: TensorInfo
    why: str
    read: Callable[[], NDArray[Any]]
    labels: Labels | None = None
    notes: tuple[str, ...] = ()


def finding_of_items(items: ItemVectors, metric: Metric, options: ReadOptions) -> Finding:
    """The vectors as a head that ranks items as the index does; raises LoadError for options that don't
    fit."""
    if options.bias_tensor is not None or options.transpose:
        raise LoadError(
            f"a {items.format} file has one vector for each item and no bias: leave out bias_tensor= and "
            "transpose= (--bias-tensor, --transpose)."
        )

    def read() -> Arrays:
        rows = items.read()
        if metric is Metric.COSINE:
            _require_equal_lengths(rows)
        return rows, l2_bias(rows) if metric is Metric.L2 else None

    count, size = items.weight.shape
    is_l2 = metric is Metric.L2
    return Finding(
        format=items.format,
        weight=items.weight,
        bias=TensorInfo(L2_BIAS, (count,), "float64, computed") if is_l2 else None,
        classes=count,
        features=size,
        why=items.why,
        read=read,
        labels=items.labels,
        inputs=HeadInputs("query vectors, which the file says nothing about"),
        notes=(*items.notes, *_notes(metric)),
    )


def _notes(metric: Metric) -> Iterator[str]:
    if metric is Metric.L2:
        yield (
            "The nearest item is the argmax of w·x − ½‖w‖². That bias is rounded to float64, so a margin "
            "within the rounding is about the rounded numbers, not about the distances."
        )
    if metric is Metric.COSINE:
        yield "Vectors of equal length rank by cosine as by inner product; they are taken as stored."


def _require_equal_lengths(rows: NDArray[Any]) -> None:
    """Raise LoadError unless vectors are as long as each other, up to rounding: an index for cosines stores
    them so, and only then inner products rank as cosines do."""
    lengths = np.sqrt(-2 * l2_bias(rows))
    least, most = float(lengths.min()), float(lengths.max())
    if not most <= least * (1 + _UNEQUAL):
        raise LoadError(
            f"vectors have lengths from {least:.3g} to {most:.3g}, so this index was not made for cosines. "
            "Choose tensor='ip' or tensor='l2' (--tensor)."
        )


def l2_bias(rows: NDArray[Any]) -> NDArray[np.float64]:
    """−½‖w‖² of each row, in float64."""
    bias = np.empty(len(rows))
    for first in range(0, len(rows), _BLOCK_ROWS):
        some = rows[first : first + _BLOCK_ROWS].astype(np.float64)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what is not finite is refused where a Head is made
            bias[first : first + _BLOCK_ROWS] = -0.5 * (some * some).sum(axis=1)
    return bias


def bias_error(bias: NDArray[np.float64], features: int) -> float:
    """How far a bias of `l2_bias` can be from the exact one: a square and a sum of n terms round n times each
    at most, by 2^-53 of what is summed up; twice that leaves room for this product."""
    return float(np.abs(bias).max()) * 2 * (features + 1) * _UNIT + features * 2.0**-1022
