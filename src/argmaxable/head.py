"""A head: the last linear layer of a classifier, the thing every verdict is about.

Floating-point weights are exact dyadic rationals, so a head is an exact mathematical object; its
dtype is kept and no value is ever rounded on the way in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.errors import HeadError

FLOAT_DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
# Every integer up to here has an exact float64; beyond it conversion would guess.
_LARGEST_EXACT_INTEGER = 2**53
# Rows examined at a time, so that validating a memory-mapped head needs little memory.
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Head:
    """Weights (classes × features), optional bias (classes) and labels of an output layer.

    Raises HeadError when the arrays are no head: wrong shapes, no classes, NaN or infinite values,
    a dtype that is neither a float nor an exactly convertible integer.
    """

    weight: NDArray[Any]
    bias: NDArray[Any] | None
    labels: tuple[str, ...] | None
    name: str

    def __init__(
        self,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        labels: Sequence[object] | None = None,
        *,
        name: str = "head",
    ) -> None:
        matrix = _as_floats(weight, "weight")
        if matrix.ndim != 2:
            raise HeadError(f"weight must be a matrix (classes × features), found shape {matrix.shape}.")
        classes, features = matrix.shape
        if classes == 0 or features == 0:
            raise HeadError(
                f"weight is empty: {classes} classes × {features} features. "
                "A head needs at least one of each."
            )
        _require_finite_weight(matrix)
        object.__setattr__(self, "weight", _read_only(matrix))
        object.__setattr__(self, "bias", _validated_bias(bias, classes))
        object.__setattr__(self, "labels", _validated_labels(labels, classes))
        object.__setattr__(self, "name", name)

    @property
    def classes(self) -> int:
        return int(self.weight.shape[0])

    @property
    def features(self) -> int:
        return int(self.weight.shape[1])

    @property
    def has_bias(self) -> bool:
        """Whether the bias can matter: a missing or constant one moves every logit alike."""
        return self.bias is not None and bool((self.bias != self.bias[0]).any())

    def rows(self, ids: NDArray[np.intp] | slice) -> NDArray[np.float64]:
        """The chosen weight rows, exactly, as float64 (n × features)."""
        return np.ascontiguousarray(self.weight[ids], dtype=np.float64)

    def biases(self, ids: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
        """The chosen biases, exactly, as float64 (zeros without a bias)."""
        if self.bias is None:
            return np.zeros(len(range(*ids.indices(self.classes))) if isinstance(ids, slice) else len(ids))
        return self.bias[ids].astype(np.float64)

    def label(self, class_id: int) -> str:
        """The class's label, or its number where the head has no labels."""
        return str(class_id) if self.labels is None else self.labels[class_id]

    def sha256(self) -> str:
        """Fingerprint of shape, dtypes, weights and bias (docs/proofs.md gives the recipe)."""
        bias_dtype = "none" if self.bias is None else self.bias.dtype.name
        header = f"argmaxable-head-1 {self.classes} {self.features} {self.weight.dtype.name} {bias_dtype}\n"
        digest = hashlib.sha256(header.encode())
        for start in range(0, self.classes, _BLOCK_ROWS):
            digest.update(_little_endian_bytes(self.weight[start : start + _BLOCK_ROWS]))
        if self.bias is not None:
            digest.update(_little_endian_bytes(self.bias))
        return digest.hexdigest()


def _little_endian_bytes(array: NDArray[Any]) -> bytes:
    # Same-width integers carry the bits of every float dtype, bfloat16 included.
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits.astype(bits.dtype.newbyteorder("<"), copy=False).tobytes()


def _as_floats(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise HeadError(f"{what} is not a rectangular array: {error}") from error
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype in FLOAT_DTYPES.values():
        return array
    if array.dtype.kind in "iu":
        if array.size and max(abs(int(array.min())), abs(int(array.max()))) > _LARGEST_EXACT_INTEGER:
            raise HeadError(
                f"{what} holds integers beyond ±2^53, which float64 can't represent exactly. "
                "Rescale them or pass floats."
            )
        return array.astype(np.float64)
    raise HeadError(
        f"{what} has dtype {array.dtype}; expected one of {', '.join(FLOAT_DTYPES)}, or integers."
    )


def _require_finite_weight(matrix: NDArray[Any]) -> None:
    for start in range(0, len(matrix), _BLOCK_ROWS):
        finite = np.isfinite(matrix[start : start + _BLOCK_ROWS])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = matrix[start + row, column]
            raise HeadError(
                f"weight of class {start + row}, feature {column} is {value}; every weight must be "
                "finite. Check the checkpoint: training may have diverged."
            )


def _validated_bias(bias: ArrayLike | None, classes: int) -> NDArray[Any] | None:
    if bias is None:
        return None
    vector = _as_floats(bias, "bias")
    if vector.size != classes or vector.ndim == 0 or max(vector.shape) != classes:
        raise HeadError(
            f"bias has shape {vector.shape} but the weight has {classes} classes. Was the head "
            "resized without its bias? Pass a bias of the same length, or none."
        )
    vector = vector.reshape(classes)
    finite = np.isfinite(vector)
    if not finite.all():
        first = int(np.argmin(finite))
        raise HeadError(f"bias of class {first} is {vector[first]}; every bias must be finite.")
    return _read_only(vector)


def _validated_labels(labels: Sequence[object] | None, classes: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if len(labels) != classes:
        raise HeadError(f"{len(labels)} labels for {classes} classes. Pass one label per class, or none.")
    return tuple(str(label) for label in labels)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
