"""The numbers of a CTranslate2 layer: floats as they are stored, integers as CTranslate2 makes them floats.

A quantised weight stands for q / scale, with one scale for each row (int8) or for the matrix (int16). That
quotient is rarely a binary fraction, so the weights are those that CTranslate2 itself computes with in
float32 on a CPU (src/ops/dequantize_cpu.cc): 1 / scale rounded to float32, then q times that, rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.ctranslate2.file import DAMAGED, StoredVariable
from argmaxable.models.finding import TensorInfo

QUANTISED = ("int8", "int16")
# Models from before the scale was stored: Quantize::global_int16_scale.
_INT16_SCALE = 1000.0
# Bytes from which a matrix stays in its file: every pass over it then reads, and dequantises, it anew.
_LARGEST_HELD = 2**30


def info(name: str, variable: StoredVariable) -> TensorInfo:
    return TensorInfo(name, variable.shape, variable.dtype)


def require_matrix(variables: Mapping[str, StoredVariable], name: str) -> None:
    """Refuse what is not a matrix of floats, or of integers with their scale; raises LoadError."""
    weight, scale = variables[name], variables.get(f"{name}_scale")
    described = info(name, weight)
    if len(weight.shape) != 2 or 0 in weight.shape:
        raise LoadError(f"tensor {described} is not a matrix. Choose another with tensor= (--tensor).")
    if f"{name}_zero" in variables or weight.dtype not in (*FLOAT_DTYPES, *QUANTISED):
        raise LoadError(
            f"tensor {described} is packed for a GPU (AWQ), which can't be read here. Pass the model that it "
            "was converted from."
        )
    if weight.dtype not in QUANTISED:
        if scale is not None:
            raise ambiguous(f"tensor {described} holds floats, but also has a scale")
        return
    if scale is None and weight.dtype == "int16":
        return
    expected = () if weight.dtype == "int16" else (weight.shape[0],)
    if scale is None or scale.shape != expected or scale.dtype != "float32":
        found = "there is none" if scale is None else f"found {info(f'{name}_scale', scale)}"
        raise LoadError(f"tensor {described} needs a float32 scale of shape {expected}; {found}. {DAMAGED}")


def read_matrix(path: Path, variables: Mapping[str, StoredVariable], name: str) -> NDArray[Any] | StoredRows:
    """The matrix as floats, at once or, where it is large, row by row; raises LoadError."""
    weight = variables[name]
    stored = _mapped(path, weight)
    factors = _factors(path, variables, name) if weight.dtype in QUANTISED else None

    def read(ids: slice | NDArray[np.intp]) -> NDArray[Any]:
        if factors is None:
            return np.array(stored[ids])  # a copy, because arrays in the file are not aligned
        rows = stored[ids].astype(np.float32)
        with np.errstate(over="ignore"):  # whoever builds the head refuses what is not finite
            rows *= factors[ids, np.newaxis]
        return rows

    dtype = stored.dtype if factors is None else np.dtype(np.float32)
    rows, columns = weight.shape
    lazy = StoredRows((rows, columns), dtype, stored.nbytes, read)
    return lazy if rows * columns * dtype.itemsize > _LARGEST_HELD else np.asarray(lazy)


def read_vector(path: Path, variable: StoredVariable) -> NDArray[Any]:
    return np.array(_mapped(path, variable))


def _factors(path: Path, variables: Mapping[str, StoredVariable], name: str) -> NDArray[np.float32]:
    """By what the integers of each row are multiplied: 1 / scale in float32."""
    rows, scale = variables[name].shape[0], variables.get(f"{name}_scale")
    scales = np.float32(_INT16_SCALE) if scale is None else read_vector(path, scale)
    with np.errstate(all="ignore"):  # refused in the next lines
        factors = np.broadcast_to(np.float32(1) / scales, (rows,))
    if not (np.isfinite(factors) & (factors > 0)).all():
        row = int(np.argmin(np.isfinite(factors) & (factors > 0)))
        raise LoadError(f"{name}_scale is not a positive number for row {row}. {DAMAGED}")
    return factors


def _mapped(path: Path, variable: StoredVariable) -> NDArray[Any]:
    dtype = FLOAT_DTYPES.get(variable.dtype) or np.dtype(variable.dtype)
    # One item at least: numpy maps a scalar as an array of shape (1,).
    return np.memmap(path, dtype, "r", offset=variable.start, shape=variable.shape or (1,))
