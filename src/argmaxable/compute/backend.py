"""What the batched phases ask of a library that multiplies matrices: NumPy by default, PyTorch for other
devices. Products are float32, each entry within γ_d of the exact one in any order of summation, or the
backend says that they are not (`keeps_bounds`), and then its word counts as a guess only.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from argmaxable.compute.rows import Rows
    from argmaxable.core.arrays import Ids, Matrix32, Vector32

Block = Any  # a matrix where the backend keeps it


class Backend(Protocol):
    """Products of points with rows, and the best of them. Blocks are the backend's own arrays."""

    keeps_bounds: bool

    def do(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Do tasks that ask for products: in several threads at a time, where that pays."""

    def settle_in(self, rows: Rows) -> Rows:
        """The rows where this backend reads them best, if they fit there."""

    def block(self, rows: Rows | Matrix32, ids: Ids | slice) -> Block:
        """Some of the rows."""

    def products(self, points: Block, rows: Block) -> Block:
        """Every point times every row (points × rows)."""

    def shift(self, products: Block, scale: Vector32 | None, offsets: Vector32 | None) -> Block:
        """The products, each line times its `scale`, plus `offsets` for the columns."""

    def shift_transposed(self, products: Block, scale: Vector32 | None, offsets: Vector32 | None) -> Block:
        """The products, each column times its `scale`, plus `offsets` for the lines."""

    def take_out(self, scores: Block, lines: Ids, columns: Ids) -> Vector32:
        """The scores at these places, which are −∞ from then on."""

    def best_in_lines(self, scores: Block) -> tuple[Ids, Vector32]:
        """For each line the column of its largest score, and that score."""

    def better_in_columns(self, scores: Block, floor: Vector32) -> tuple[Ids, Ids, Vector32]:
        """The columns with a score above their floor, the line of the largest, and that score."""


class _Scratch(threading.local):
    """Memory for intermediate results, by name; every thread has its own."""

    def __init__(self) -> None:
        self.room: dict[str, Vector32] = {}


class NumPy:
    """The processor, by way of NumPy's BLAS.

    Products and shifted scores are written over the thread's last ones: fresh memory for each block of 16 MB
    would take longer than the arithmetic on heads of few features.
    """

    keeps_bounds = True

    def __init__(self) -> None:
        self._scratch = _Scratch()

    def do(self, tasks: Sequence[Callable[[], None]]) -> None:
        in_threads(tasks)

    def _take(self, name: str, shape: tuple[int, ...]) -> Matrix32:
        room, size = self._scratch.room, math.prod(shape)
        if name not in room or room[name].size < size:
            room[name] = np.empty(size, np.float32)
        return room[name][:size].reshape(shape)

    def settle_in(self, rows: Rows) -> Rows:
        return rows

    def block(self, rows: Rows | Matrix32, ids: Ids | slice) -> Matrix32:
        return np.asarray(rows[ids])

    def products(self, points: Matrix32, rows: Matrix32) -> Matrix32:
        return np.matmul(points, rows.T, out=self._take("products", (len(points), len(rows))))

    def shift(self, products: Matrix32, scale: Vector32 | None, offsets: Vector32 | None) -> Matrix32:
        return self._shift(products, None if scale is None else scale[:, None], offsets)

    def shift_transposed(
        self, products: Matrix32, scale: Vector32 | None, offsets: Vector32 | None
    ) -> Matrix32:
        return self._shift(products, scale, None if offsets is None else offsets[:, None])

    def _shift(
        self, products: Matrix32, scale: NDArray[np.float32] | None, offsets: NDArray[np.float32] | None
    ) -> Matrix32:
        """The products times and plus what is broadcast along them; they themselves stay as they are."""
        scores = products
        if scale is not None:
            scores = np.multiply(scores, scale, out=self._take("scores", products.shape))
        if offsets is not None:
            scores = np.add(scores, offsets, out=self._take("scores", products.shape))
        return scores

    def take_out(self, scores: Matrix32, lines: Ids, columns: Ids) -> Vector32:
        taken = scores[lines, columns]
        scores[lines, columns] = -np.inf
        return np.asarray(taken)

    def best_in_lines(self, scores: Matrix32) -> tuple[Ids, Vector32]:
        best = scores.argmax(axis=1)
        return best, scores[np.arange(len(best)), best]

    def better_in_columns(self, scores: Matrix32, floor: Vector32) -> tuple[Ids, Ids, Vector32]:
        highest = scores.max(axis=0)
        is_better = ~(highest <= floor)
        # Looking for the few maxima that matter is four times as fast as argmax down the columns.
        places = np.flatnonzero(scores == np.where(is_better, highest, np.inf))
        lines = np.zeros(scores.shape[1], np.intp)
        lines[places % scores.shape[1]] = places // scores.shape[1]
        better = np.flatnonzero(is_better)
        return better, lines[better], highest[better]


def backend_of(device: str) -> Backend:
    """The backend of a device: "numpy", or one of PyTorch's such as "cpu", "cuda" and "mps"."""
    if device == "numpy":
        return NumPy()
    from argmaxable.compute.torch_backend import Torch  # loads PyTorch

    return Torch(device)
