"""What a quantised layer stores beside its weight, and how many bits its numbers need."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import TensorInfo
from argmaxable.models.source import TensorSource

# Scales may have these dtypes, all of whose numbers are float32 numbers.
SCALE_DTYPES = frozenset({"float16", "bfloat16", "float32"})
# Exponents beyond any float's.
_FAR = 2**12
_FLOAT32_BITS = 24


def layer_of(weight: str) -> str:
    return weight.rpartition(".")[0]


def tensors_of_layer(weight: str, names: Collection[str]) -> list[str]:
    """The tensors that are stored under the name of the weight's layer, the weight included."""
    layer = layer_of(weight)
    return sorted(name for name in names if name.rpartition(".")[0] == layer) if layer else []


def require_only(source: TensorSource, weight: str, known: Collection[str]) -> None:
    """Raise LoadError where the layer has a tensor that is not known here: it may change the weight."""
    layer = layer_of(weight)
    other = [name for name in tensors_of_layer(weight, source.names) if name not in known]
    if other:
        raise LoadError(
            f"the layer {layer} is quantised and stores {other[0]}, whose meaning is not known here. Use the "
            "model it was made from."
        )


def require_scales(info: TensorInfo) -> None:
    if info.dtype not in SCALE_DTYPES:
        raise LoadError(
            f"tensor {info} holds scales of a type that is not known here; expected "
            f"{', '.join(sorted(SCALE_DTYPES))}. Use the model it was made from."
        )


def extent(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Exponents (top, low) of float32 numbers: each is below 2^top and a whole multiple of 2^low.

    Numbers that are not finite count as 0: what is made from them is refused with the head.
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    fraction, top = np.frexp(finite)
    whole = np.ldexp(fraction, _FLOAT32_BITS).astype(np.int64)
    low = top - _FLOAT32_BITS + np.frexp((whole & -whole).astype(np.float64))[1] - 1
    zero = finite == 0.0
    return np.where(zero, -_FAR, top), np.where(zero, _FAR, low)
