"""TensorFlow Lite files written with the flatbuffers package, independently of our reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from numpy.typing import NDArray

ADD, AVERAGE_POOL_2D, CONV_2D, DEQUANTIZE, FULLY_CONNECTED, LOGISTIC = 0, 1, 3, 6, 9, 14
MAX_POOL_2D, MUL, RELU, RELU6, RESHAPE, SOFTMAX, TANH = 17, 18, 19, 21, 22, 25, 28
TRANSPOSE, MEAN, SQUEEZE, LOG_SOFTMAX, EXPAND_DIMS, QUANTIZE = 39, 40, 43, 50, 70, 114
HARD_SWISH, GELU = 117, 150
NONE, FUSED_RELU, FUSED_RELU_N1_TO_1, FUSED_RELU6, FUSED_TANH, FUSED_SIGN = range(6)
# Kinds of options by operator, as the schema numbers them.
OPTIONS = {CONV_2D: 1, AVERAGE_POOL_2D: 5, MAX_POOL_2D: 5, FULLY_CONNECTED: 8, SOFTMAX: 9, ADD: 11, MUL: 21}
TYPES = {"f4": 0, "f2": 1, "i4": 2, "u1": 3, "i8": 4, "i2": 7, "i1": 9, "f8": 10}
INT4, STRING = 17, 5


@dataclass(frozen=True)
class T:
    """A tensor to write; with `data` it is a constant, with `start` one whose values begin there as well."""

    name: str
    shape: tuple[int, ...]
    type: int = 0
    data: bytes = b""
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    axis: int = 0
    is_sparse: bool = False
    details: int = 0
    start: int = 0


@dataclass(frozen=True)
class Op:
    """An operator to write; options are pairs of a method of flatbuffers.Builder and a value.

    `old` is the number that old interpreters read, if it is not the same. `kind` is the kind of the options,
    if it is not the operator's.
    """

    code: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: tuple[tuple[str, float], ...] = ()
    old: int | None = None
    kind: int | None = None


Field = tuple[str, Any]  # a method of flatbuffers.Builder that prepends a slot, and its value


def table(builder: flatbuffers.Builder, fields: Sequence[Field | None]) -> int:
    builder.StartObject(len(fields))
    for slot, field in enumerate(fields):
        if field is not None:
            kind, value = field
            if kind == "UOffsetTRelative":
                builder.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:  # without a default the value is always written
                getattr(builder, f"Prepend{kind}Slot")(slot, value, None)
    return int(builder.EndObject())


def vector(builder: flatbuffers.Builder, dtype: str, values: Sequence[float]) -> Field:
    return "UOffsetTRelative", builder.CreateNumpyVector(np.array(values, dtype))


def tables(builder: flatbuffers.Builder, places: Sequence[int]) -> Field:
    builder.StartVector(4, len(places), 4)
    for place in reversed(places):
        builder.PrependUOffsetTRelative(place)
    return "UOffsetTRelative", builder.EndVector()


def write_tensor(builder: flatbuffers.Builder, tensor: T, buffer: int) -> int:
    quantised = None
    if tensor.scale or tensor.details:
        scale, zero = vector(builder, "<f4", tensor.scale), vector(builder, "<i8", tensor.zero)
        details = ("Uint8", tensor.details) if tensor.details else None
        place = table(
            builder, [None, None, scale, zero if tensor.zero else None, details, None, ("Int32", tensor.axis)]
        )
        quantised = ("UOffsetTRelative", place)
    name = ("UOffsetTRelative", builder.CreateString(tensor.name))
    shape = vector(builder, "<i4", tensor.shape)
    sparse = ("UOffsetTRelative", table(builder, [])) if tensor.is_sparse else None
    return table(builder, [shape, ("Int8", tensor.type), ("Uint32", buffer), name, quantised, None, sparse])


def write_operator(builder: flatbuffers.Builder, operator: Op, code: int, names: list[str]) -> int:
    options = ("UOffsetTRelative", table(builder, operator.options)) if operator.options else None
    inputs = vector(builder, "<i4", [names.index(each) if each else -1 for each in operator.inputs])
    outputs = vector(builder, "<i4", [names.index(each) for each in operator.outputs])
    kind = OPTIONS.get(operator.code, 0) if operator.kind is None else operator.kind
    declared = ("Uint8", kind) if options and kind else None
    return table(builder, [("Uint32", code), inputs, outputs, declared, options])


def model_bytes(
    tensors: Sequence[T],
    operators: Sequence[Op],
    outputs: Sequence[str],
    inputs: Sequence[str] = (),
    signatures: Sequence[tuple[int, Sequence[int]]] = (),
) -> bytes:
    """A model of one graph; a signature is the number of its graph, and its outputs' tensors."""
    builder = flatbuffers.Builder(1024)
    data = [b"", *dict.fromkeys(tensor.data for tensor in tensors if tensor.data)]
    buffers = []
    for each in data:
        field = ("UOffsetTRelative", builder.CreateByteVector(each)) if each else None
        start = next((tensor.start for tensor in tensors if each and tensor.data == each), 0)
        behind = [("Uint64", start), ("Uint64", len(each))] if start else []
        buffers.append(table(builder, [field, *behind]))
    names = [tensor.name for tensor in tensors]
    kinds = sorted({operator.code for operator in operators})
    old = {
        operator.code: min(operator.code, 127) if operator.old is None else operator.old
        for operator in operators
    }
    codes = [table(builder, [("Int8", old[kind]), None, None, ("Int32", kind)]) for kind in kinds]
    written = [write_tensor(builder, tensor, data.index(tensor.data)) for tensor in tensors]
    # Equal operators share one table, as a file that wants to seem larger than it is would do it.
    step = {each: write_operator(builder, each, kinds.index(each.code), names) for each in set(operators)}
    steps = [step[each] for each in operators]
    last = vector(builder, "<i4", [names.index(each) for each in outputs])
    first = vector(builder, "<i4", [names.index(each) for each in inputs]) if inputs else None
    graph = table(builder, [tables(builder, written), first, last, tables(builder, steps)])
    subgraphs = tables(builder, [graph])
    parts = [("Uint32", 3), tables(builder, codes), subgraphs, None, tables(builder, buffers)]
    if signatures:
        parts += [None, None, tables(builder, [write_signature(builder, *each) for each in signatures])]
    root = table(builder, parts)
    builder.Finish(root, b"TFL3")
    return bytes(builder.Output())


def write_signature(builder: flatbuffers.Builder, graph: int, outputs: Sequence[int]) -> int:
    key = ("UOffsetTRelative", builder.CreateString("serving_default"))
    names = [("UOffsetTRelative", builder.CreateString(f"output_{each}")) for each in outputs]
    maps = [table(builder, [name, ("Uint32", each)]) for name, each in zip(names, outputs, strict=True)]
    none = tables(builder, [])
    return table(builder, [none, tables(builder, maps), key, None, ("Uint32", graph)])


def constant(name: str, array: NDArray[Any], **more: Any) -> T:
    return T(name, array.shape, TYPES[array.dtype.str[1:]], array.tobytes(), **more)


def fully_connected(*inputs: str, out: str = "z", fused: int = NONE, shuffled: int = 0) -> Op:
    return Op(FULLY_CONNECTED, inputs, (out,), (("Int8", fused), ("Int8", shuffled)))


def convolution(*inputs: str, out: str, fused: int = NONE) -> Op:
    return Op(CONV_2D, inputs, (out,), (("Int8", 0), ("Int32", 1), ("Int32", 1), ("Int8", fused)))


def softmax(source: str, out: str = "p", beta: float = 1.0) -> Op:
    return Op(SOFTMAX, (source,), (out,), (("Float32", beta),))


def write(path: Path, tensors: Sequence[T], operators: Sequence[Op], outputs: Sequence[str] = ("z",)) -> Path:
    path.write_bytes(model_bytes(tensors, operators, outputs))
    return path
