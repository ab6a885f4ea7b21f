"""Weights as bitsandbytes stores them in 8 bits (LLM.int8): whole numbers q, and for each row the largest
absolute value that it had (`SCB`). A weight is q · SCB / 127.

That quotient is rarely a binary fraction. The weights here are the float32 numbers that the library computes
with on a CPU: SCB / 127 as SCB times float32(1 / 127), rounded to float32, then q times that, rounded again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import ADVICE, ROUNDED_INPUTS, layer_of, require_only
from argmaxable.models.quantised_rows import held, rows_from
from argmaxable.models.source import TensorSource

_ROW_BY_ROW = 0


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is a matrix of whole numbers with the scales of LLM.int8 beside it."""
    info = source.tensors.get(weight)
    is_small = info is not None and info.dtype == "int8" and len(info.shape) == 2
    return is_small and f"{layer_of(weight)}.SCB" in source.names


def dequantised(source: TensorSource, choice: HeadTensors) -> tuple[TensorSource, HeadTensors]:
    """The head with its weight made floats. Raises LoadError."""
    weight, layer = choice.weight, layer_of(choice.weight)
    scales, layout = f"{layer}.SCB", f"{layer}.weight_format"
    require_only(source, weight, (weight, scales, layout, f"{layer}.bias"))
    stored, expected = source.info(weight), TensorInfo(scales, source.info(weight).shape[:1], "float32")
    if source.info(scales) != expected:
        raise LoadError(
            f"tensor {source.info(scales)} does not fit its weight, expected {expected}. {ADVICE}"
        )
    if layout in source.names:
        _require_rows(source, layout)
    info = replace(stored, dtype="LLM.int8, a scale for each row")

    def read() -> NDArray[Any] | StoredRows:
        with np.errstate(all="ignore"):  # damaged scales overflow, and are refused with the head
            factors = source.read_array(scales) * np.float32(1.0 / 127.0)

        def formula(steps: NDArray[Any], factors: NDArray[np.float32]) -> NDArray[np.float32]:
            products: NDArray[np.float32] = steps.astype(np.float32) * factors[:, None]
            return products

        parts = [source.read_array(weight), factors]
        return held(rows_from(parts, info.shape[1], np.dtype(np.float32), formula))

    return source.with_dequantised(info, read, {scales}), replace(choice, feed=ROUNDED_INPUTS)


def _require_rows(source: TensorSource, layout: str) -> None:
    info = source.info(layout)
    if (
        info.dtype != "uint8"
        or info.shape not in ((), (1,))
        or source.read_array(layout).item() != _ROW_BY_ROW
    ):
        raise LoadError(f"tensor {info} says that the weight is not stored row by row. {ADVICE}")
