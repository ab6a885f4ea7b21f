"""PyTorch as a backend: its processor kernels, CUDA or MPS. In the core only this module imports it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.compute.rows import Rows, StreamedRows
from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from argmaxable.core.arrays import Ids, Matrix32, Vector32

# Of a device's free memory, what the rows may take; the rest is for products.
_SHARE_FOR_ROWS = 0.6
# PyTorch has one precision for all threads: who sets it must be alone until it is set back.
_PRECISION = threading.Lock()


class Torch:
    """Products on one of PyTorch's devices."""

    def __init__(self, device: str) -> None:
        try:
            import torch
        except ModuleNotFoundError as error:
            raise InputError(
                f"the device {device} needs PyTorch: pip install 'argmaxable[torch]', or leave --device out."
            ) from error
        self._torch = torch
        try:
            self._device = torch.device(device)
            torch.zeros(1, device=self._device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                f"PyTorch has no device '{device}' here ({str(error).splitlines()[0]}). Install a build of "
                "PyTorch for it (https://pytorch.org/get-started), or choose --device numpy or cpu."
            ) from error
        # IEEE float32 on processors and, with TensorFloat-32 off, on CUDA; nobody promises it for others.
        self.keeps_bounds = self._device.type in ("cpu", "cuda")
        self._held: tuple[Matrix32, Tensor] | None = None

    def do(self, tasks: Sequence[Callable[[], None]]) -> None:
        for task in tasks:  # PyTorch shares out each product by itself
            task()

    def settle_in(self, rows: Rows) -> Rows:
        if self._device.type == "cuda" and isinstance(rows, np.ndarray):
            free, _ = self._torch.cuda.mem_get_info(self._device)
            if rows.nbytes < _SHARE_FOR_ROWS * free:
                self._held = (rows, self._torch.from_numpy(rows).to(self._device))
        return rows

    def block(self, rows: Rows | Matrix32, ids: Ids | slice) -> Tensor:
        if self._held is not None and rows is self._held[0]:
            return self._held[1][ids if isinstance(ids, slice) else self._torch.from_numpy(ids)]
        values = rows[ids]
        if isinstance(rows, StreamedRows) or isinstance(ids, np.ndarray):
            return self._place(values)
        return self._place(np.ascontiguousarray(values))

    def _place(self, values: Any) -> Tensor:
        if not values.flags.writeable:  # PyTorch warns about arrays it could write to by mistake
            values = values.copy()
        return self._torch.from_numpy(values).to(self._device)

    def products(self, points: Tensor, rows: Tensor) -> Tensor:
        torch = self._torch
        with _PRECISION:
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")  # no TensorFloat-32, whatever the user has set
            try:
                return points @ rows.T
            finally:
                torch.set_float32_matmul_precision(before)

    def shift(self, products: Tensor, scale: Vector32 | None, offsets: Vector32 | None) -> Tensor:
        if scale is not None:
            products = products * self._place(scale)[:, None]
        return products if offsets is None else products + self._place(offsets)

    def shift_transposed(self, products: Tensor, scale: Vector32 | None, offsets: Vector32 | None) -> Tensor:
        if scale is not None:
            products = products * self._place(scale)
        return products if offsets is None else products + self._place(offsets)[:, None]

    def take_out(self, scores: Tensor, lines: Ids, columns: Ids) -> Vector32:
        places = (self._index(lines), self._index(columns))
        taken = scores[places].cpu().numpy()
        scores[places] = -np.inf
        return np.asarray(taken)

    def best_in_lines(self, scores: Tensor) -> tuple[Ids, Vector32]:
        highest, best = scores.max(dim=1)
        return best.cpu().numpy(), highest.cpu().numpy()

    def better_in_columns(self, scores: Tensor, floor: Vector32) -> tuple[Ids, Ids, Vector32]:
        highest = scores.amax(dim=0)
        better = (~(highest <= self._place(floor))).nonzero()[:, 0]
        lines = scores[:, better].argmax(dim=0)
        return better.cpu().numpy(), lines.cpu().numpy(), highest[better].cpu().numpy()

    def _index(self, ids: Ids) -> Tensor:
        return self._torch.from_numpy(ids).to(self._device)
