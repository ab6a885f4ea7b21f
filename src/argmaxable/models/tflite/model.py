"""A TensorFlow Lite model as operators and tensors, read from its FlatBuffer.

The numbers of fields, operators and types are those of tensorflow/lite/schema/schema.fbs. Nothing is copied
until the values of a constant are asked for. Integers become the numbers they stand for, (q − zero point) ·
scale, exactly: float64 holds the product of a float32 and an integer of up to 29 bits.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.tflite.flatbuffer import Damaged, Table, root

_IDENTIFIER = b"TFL3"
# The operators that matter here; the others keep their number as a name.
_OPERATORS = {
    0: "ADD", 1: "AVERAGE_POOL_2D", 3: "CONV_2D", 4: "DEPTHWISE_CONV_2D", 6: "DEQUANTIZE",
    9: "FULLY_CONNECTED", 14: "LOGISTIC", 17: "MAX_POOL_2D", 18: "MUL", 19: "RELU", 20: "RELU_N1_TO_1",
    21: "RELU6", 22: "RESHAPE", 25: "SOFTMAX", 28: "TANH", 39: "TRANSPOSE", 40: "MEAN", 43: "SQUEEZE",
    50: "LOG_SOFTMAX", 70: "EXPAND_DIMS", 82: "REDUCE_MAX", 111: "ELU", 114: "QUANTIZE", 117: "HARD_SWISH",
    150: "GELU",
}  # fmt: skip
# Operators up to 126 are stored in a byte, and those above there as 127 and once more in full.
_IN_FULL = 127
# ActivationFunctionType, and which field of an operator's options says it.
_ACTIVATIONS = {0: "", 1: "relu", 2: "relu_n1_to_1", 3: "relu6", 4: "tanh", 5: "sign_bit"}
_ACTIVATION_FIELD = {
    "FULLY_CONNECTED": 0, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 4, "ADD": 0, "MUL": 0, "AVERAGE_POOL_2D": 5,
    "MAX_POOL_2D": 5,
}  # fmt: skip
# Which of the kinds of options an operator has: interpreters ignore those of any other kind.
_OPTIONS = {
    "CONV_2D": 1, "DEPTHWISE_CONV_2D": 2, "AVERAGE_POOL_2D": 5, "MAX_POOL_2D": 5, "FULLY_CONNECTED": 8,
    "SOFTMAX": 9, "ADD": 11, "MUL": 21,
}  # fmt: skip
_TYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8", 10: "float64",
    17: "int4", 18: "bfloat16",
}  # fmt: skip
_LONGEST_NAME = 1024
_MOST_DIMENSIONS = 8
# The operators, tensors or inputs of a model: the largest known have some ten thousand. Offsets may point to
# one table again and again, so without a limit a small file could declare as many as it likes.
_MOST_ITEMS = 2**18


@dataclass(frozen=True, eq=False)
class Tensor:
    """A constant or a value: its place in the model, shape, type, and how integers stand for numbers.

    A stored q means (q − zero_point) · scale, with one scale for all or one for each index of `axis`.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    type: str
    buffer: int
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    axis: int
    is_plain: bool  # neither sparse nor quantised in some way of its own
    is_variable: bool  # written while the model runs

    @property
    def is_quantised(self) -> bool:
        return self.scale.size > 0 and self.type.startswith(("int", "uint"))


@dataclass(frozen=True, eq=False)
class Operator:
    """A step of the graph: what it does, the tensors it takes (−1: left out) and gives, its options."""

    kind: str
    inputs: NDArray[np.int32]
    outputs: NDArray[np.int32]
    options: Table | None

    def input(self, position: int) -> int:
        return int(self.inputs[position]) if position < len(self.inputs) else -1

    @property
    def activation(self) -> str:
        """The activation function fused into the operator, or an empty name."""
        field = _ACTIVATION_FIELD.get(self.kind)
        number = 0 if field is None else int(self.option(field, "<b"))
        return _ACTIVATIONS.get(number, f"activation {number}")

    def option(self, field: int, layout: str) -> int | float:
        return 0 if self.options is None else self.options.number(field, layout)


class Model:
    """The main graph of a model file; its methods raise Damaged where the file contradicts itself."""

    def __init__(self, path: Path) -> None:
        if path.stat().st_size < 2 * struct.calcsize("<I"):
            raise Damaged("it is almost empty")
        with path.open("rb") as file:  # the map lives as long as the model, whose storage it is
            self._buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._root = root(self._buffer, _IDENTIFIER)
        self._graph = self._root.tables(2)[0]
        self._tensors = self._graph.tables(0)
        _require_modest(len(self._tensors), "tensors")

    @cached_property
    def outputs(self) -> list[int]:
        outputs: list[int] = self._graph.array(2, "<i4")[:_MOST_ITEMS].tolist()
        return outputs

    def require_main_graph(self) -> None:
        """Refuse a signature by which programs run another graph than the first, or take another output."""
        signatures = self._root.tables(7)
        _require_modest(len(signatures), "signatures")
        graphs = [each.integer(4, "<I") for each in signatures]
        if graphs and 0 not in graphs:
            raise ambiguous(f"its signature runs graph {graphs[0]}, programs without signatures run graph 0")
        for signature, graph in zip(signatures, graphs, strict=True):
            taken = {each.integer(1, "<I") for each in signature.tables(1)}
            if graph == 0 and not taken <= set(self.outputs):
                raise ambiguous(
                    f"a signature takes outputs {sorted(taken)[:8]}, the graph {self.outputs[:8]}"
                )

    @cached_property
    def _inputs(self) -> frozenset[int]:
        """What the model is given: whatever is stored for it is not used."""
        return frozenset(self._graph.array(1, "<i4")[:_MOST_ITEMS].tolist())

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        stored = self._graph.tables(3)
        _require_modest(len(stored), "operators")
        codes = self._root.tables(1)
        _require_modest(len(codes), "kinds of operators")
        kinds = [_kind(code) for code in codes]
        return tuple(_operator(table, kinds) for table in stored)

    @cached_property
    def producers(self) -> dict[int, Operator]:
        """The operator that gives each tensor."""
        if sum(len(operator.outputs) for operator in self.operators) > len(self._tensors):
            raise Damaged("operators put out more tensors than there are")
        outputs = [int(index) for operator in self.operators for index in operator.outputs]
        repeated = twice(str(index) for index in outputs)
        if repeated is not None:
            raise ambiguous(f"two operators produce tensor {repeated}")
        return {int(index): operator for operator in self.operators for index in operator.outputs}

    @cached_property
    def consumers(self) -> dict[int, list[Operator]]:
        """The operators that take each tensor."""
        _require_modest(sum(len(operator.inputs) for operator in self.operators), "inputs of operators")
        consumers: dict[int, list[Operator]] = {}
        for operator in self.operators:
            for index in operator.inputs:
                consumers.setdefault(int(index), []).append(operator)
        return consumers

    def tensor(self, index: int) -> Tensor:
        table = self._tensors[index]
        shape = table.array(0, "<i4")
        if len(shape) > _MOST_DIMENSIONS or (shape < 0).any():
            raise Damaged(f"tensor {index} has a shape of {len(shape)} dimensions, or a negative one")
        number = table.integer(1, "<b")
        how = table.table(4)
        return Tensor(
            index=index,
            name=table.text(3, _LONGEST_NAME),
            shape=tuple(shape.tolist()),
            type=_TYPES.get(number, f"type {number}"),
            buffer=table.integer(2, "<I"),
            scale=np.zeros(0, np.float32) if how is None else how.array(2, "<f4"),
            zero_point=np.zeros(0, np.int64) if how is None else how.array(3, "<i8"),
            axis=0 if how is None else how.integer(6),
            is_plain=table.table(6) is None and (how is None or how.integer(4, "<B") == 0),
            is_variable=table.integer(5, "<B") != 0,
        )

    def tensor_named(self, name: str) -> Tensor | None:
        """The constant of that name, else the first tensor; raises AmbiguousError for two constants."""
        named = [index for index, table in enumerate(self._tensors) if table.text(3, _LONGEST_NAME) == name]
        stored = [index for index in named if self.constant(index) is not None]
        if len(stored) > 1:
            raise ambiguous(f"tensors {stored[0]} and {stored[1]} are both called {name!r}")
        return self.tensor((stored or named)[0]) if named else None

    def constant(self, index: int) -> Tensor | None:
        """The tensor, if its values are stored, also as float16 or integers that are dequantised first."""
        if index < 0 or index in self._inputs:
            return None
        producer = self.producers.get(index)
        if producer is not None:
            source = producer.input(0)
            # The source must be stored itself, so damaged files can't send us round in circles.
            if producer.kind != "DEQUANTIZE" or source in self.producers or source < 0:
                return None
            index = source
        tensor = self.tensor(index)
        return tensor if len(self._data(tensor)) and not tensor.is_variable else None

    def values(self, tensor: Tensor) -> NDArray[Any]:
        """The numbers of a constant as they are stored, in its shape."""
        if tensor.type == "int4":
            return _halves(self._data(tensor), tensor)
        if not tensor.is_plain or tensor.type.startswith("type "):
            raise LoadError(
                f"tensor {tensor.name!r} is sparse or of a kind that can't be read here ({tensor.type}). "
                "Convert the model without that optimisation."
            )
        dtype = FLOAT_DTYPES[tensor.type] if tensor.type in FLOAT_DTYPES else np.dtype(tensor.type)
        data = self._data(tensor)
        if len(data) != math.prod(tensor.shape) * dtype.itemsize:
            raise Damaged(f"tensor {tensor.name!r} of shape {tensor.shape} has {len(data)} bytes")
        return data.view(dtype.newbyteorder("<")).reshape(tensor.shape)

    def numbers(self, tensor: Tensor) -> NDArray[Any]:
        """The numbers a constant stands for, in float32 where that is no less exact than float64."""
        stored = self.values(tensor)
        if tensor.type in FLOAT_DTYPES:
            return stored
        scale, zero_point = (_along_axis(tensor, each) for each in (tensor.scale, tensor.zero_point))
        return exactly((stored.astype(np.float64) - zero_point) * scale)

    def _data(self, tensor: Tensor) -> NDArray[np.uint8]:
        buffer = self._root.tables(4)[tensor.buffer]
        # Models beyond 2 GB keep their weights behind the FlatBuffer; 0 and 1 stand for "not so".
        start, size = buffer.integer(1, "<Q"), buffer.integer(2, "<Q")
        inside = buffer.array(0, np.uint8)
        if start < 2:
            return inside
        if len(inside):
            raise ambiguous(f"tensor {tensor.name!r} has values inside the FlatBuffer and behind it")
        if size > len(self._buffer) - start:
            raise Damaged(f"tensor {tensor.name!r} should end at byte {start + size}")
        return np.frombuffer(self._buffer, np.uint8, size, start)


def exactly(values: NDArray[np.float64]) -> NDArray[Any]:
    """The same numbers, in float32 if it can hold every one of them."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values


def _along_axis(tensor: Tensor, values: NDArray[Any]) -> NDArray[np.float64]:
    """One number for all, or one for each index of the quantised axis, shaped to be broadcast."""
    shape = [1] * len(tensor.shape)
    if values.size > 1:
        if not 0 <= tensor.axis < len(shape) or values.size != tensor.shape[tensor.axis]:
            raise Damaged(f"tensor {tensor.name!r} of shape {tensor.shape} has {values.size} scales")
        shape[tensor.axis] = values.size
    # Zero points may be left out when they are 0.
    return (values if values.size else np.zeros(1)).astype(np.float64).reshape(shape)


def _kind(code: Table) -> str:
    number, in_full = code.integer(0, "<b"), code.integer(3)
    # Old interpreters know the first only, new ones take the larger of both.
    if in_full and in_full != number and (number != _IN_FULL or in_full < _IN_FULL):
        raise ambiguous(f"an operator is number {number} for old interpreters and {in_full} for new ones")
    number = number if number < _IN_FULL else in_full
    return _OPERATORS.get(number, f"operator {number}")


def _operator(table: Table, kinds: list[str]) -> Operator:
    code = table.integer(0, "<I")
    if code >= len(kinds):
        raise Damaged(f"operator code {code} of {len(kinds)} is referred to")
    kind, options = kinds[code], table.table(4)
    declared = table.integer(3, "<B")
    if kind in _OPTIONS and (options is not None or declared) and declared != _OPTIONS[kind]:
        raise ambiguous(f"the options of a {kind} are said to be those of another operator ({declared})")
    return Operator(kind, table.array(1, "<i4"), table.array(2, "<i4"), options)


def _halves(data: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.int8]:
    """Two numbers of four bits in each byte, the lower half first."""
    count = math.prod(tensor.shape)
    if len(data) != -(-count // 2) or not tensor.is_plain:
        raise Damaged(f"tensor {tensor.name!r} of shape {tensor.shape} has {len(data)} bytes of int4")
    both = np.stack([(data << 4).view(np.int8) >> 4, data.view(np.int8) >> 4], axis=-1)
    return both.reshape(-1)[:count].reshape(tensor.shape)


def _require_modest(count: int, what: str) -> None:
    if count > _MOST_ITEMS:
        raise Damaged(f"it declares {count} {what}")
