"""Heads in ONNX files. This is the only module that imports `onnx`.

The protobuf, without its weights, is translated once into the small `Graph` that `models/graph/`
walks; of the weights only the head's are read, from the model itself or from a file beside it.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.checker import ValidationError

from argmaxable.core.errors import LoadError
from argmaxable.models.dequantise import cast, dequantised, times
from argmaxable.models.finding import Arrays, Finding, TensorInfo
from argmaxable.models.graph.domain import inputs_of
from argmaxable.models.graph.linear_layer import (
    chosen_bias,
    last_layer,
    layer_using,
    other_weights,
    require_one_argmax,
)
from argmaxable.models.graph.nodes import Attribute, Graph, Node
from argmaxable.models.onnx.labels import labels_of
from argmaxable.models.onnx.outline import PLACE, outline

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored
    from argmaxable.models.protobuf import Data
    from argmaxable.models.registry import ReadOptions

# numpy's names for the types whose values can be read; strings and complex numbers are not weights.
_TYPES = {
    number: helper.tensor_dtype_to_np_dtype(number).name
    for name, number in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128")
}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int32", "int64")
# Shapes, axes and permutations; longer lists of integers are data.
_SHORT_LIST = 16
# protobuf's own limit for one message; larger models keep their weights in files beside.
_LARGEST_MESSAGE = 2**31


@dataclass
class _Parts:
    """The graph of a file under construction: that of the model with those of its If branches joined in."""

    path: Path
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, TensorProto] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of an ONNX model.

    Without `options.tensor` it is the linear layer that leads to the output. Its orientation follows from
    the node that uses it; `options.transpose` flips it. Raises LoadError.
    """
    model = _parse(path)
    parts = _Parts(path)
    outputs = _join(model.graph, parts, {}, "")
    tensors = parts.tensors
    graph = _graph(parts, outputs)
    layer = last_layer(graph) if options.tensor is None else layer_using(graph, options.tensor)
    flipped = layer.stored_by_class == options.transpose
    classes, features = _shape(tensors[layer.weight.name], flipped)
    if options.tensor is None:
        require_one_argmax(layer, classes)
    bias = chosen_bias(graph, layer, options.bias_tensor)
    values = _Reader(tensors, path)

    def read() -> Arrays:
        weight = values(layer.weight).reshape((features, classes) if flipped else (classes, features))
        numbers = None if bias is None else values(bias)
        if numbers is not None and numbers.size == 1:  # one number for all classes, as Add broadcasts it
            numbers = np.broadcast_to(numbers.reshape(1), classes)
        return np.ascontiguousarray(weight.T) if flipped else weight, numbers

    return Finding(
        format="onnx",
        weight=_info(tensors, layer.weight.name),
        bias=None if bias is None else _info(tensors, bias.name),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else "the linear layer that leads to the output",
        read=read,
        labels=labels_of(
            {_text(each.key): _text(each.value) for each in model.metadata_props}, path, classes
        ),
        inputs=None if options.transpose else inputs_of(graph, layer.features, features, values),
        alternatives=tuple(_info(tensors, name) for name in other_weights(graph, layer.weight.name)),
        notes=layer.notes,
    )


# ---------------------------------------------------------------------- from protobuf to a graph


def _parse(path: Path) -> ModelProto:
    """The model without its weights, which are notes of their places in the file."""
    size = path.stat().st_size
    if size >= _LARGEST_MESSAGE:
        raise LoadError(
            f"has {size:,} bytes; an ONNX model ends below 2 GiB, with larger weights in files beside it. "
            "Export it with external data."
        )
    try:
        with path.open("rb") as file, _mapped(file, size) as data:
            return onnx.load_model_from_string(outline(data))
    except (LoadError, DecodeError) as error:
        raise LoadError(
            f"is not a readable ONNX model: {error}. It may be cut short or damaged, or a Git LFS pointer; "
            "fetch it again."
        ) from error


def _mapped(file: IO[bytes], size: int) -> AbstractContextManager[Data]:
    # An empty file can't be mapped.
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else nullcontext(b"")


def _join(graph: GraphProto, parts: _Parts, outer: MutableMapping[str, str], prefix: str) -> list[str]:
    """Add a graph's nodes and constants to the parts; the names its outputs have there.

    Branches may use a name again for something else, which then gets a prefix; a constant that both
    branches hold with the same values is one.
    """
    names = ChainMap[str, str]({}, outer)
    constants = {_text(tensor.name): tensor for tensor in graph.initializer} | _constants(graph)
    for name, tensor in constants.items():
        known = parts.tensors.get(name)
        is_same = known is not None and _same(known, tensor, parts.path)
        names[name] = name if is_same else _free(name, prefix, parts)
        parts.tensors[names[name]] = tensor
    for name in (_text(name) for node in graph.node for name in node.output if name):
        if name not in constants:
            names[name] = _free(name, prefix, parts)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            name = _text(value.name)
            parts.ranks[names.get(name, name)] = len(value.type.tensor_type.shape.dim)
    for node in graph.node:
        if node.op_type == "If":
            _join_branches(node, parts, names, prefix)
        elif node.op_type != "Constant":
            parts.nodes.append(_translate(node, names))
    return [names.get(name, name) for name in (_text(output.name) for output in graph.output)]


def _text(value: str | bytes) -> str:
    """A name; where it is no UTF-8, as in damaged files, protobuf hands out bytes."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _same(left: TensorProto, right: TensorProto, path: Path) -> bool:
    """Whether two tensors have the same values, wherever in the file they lie."""
    if left.dims != right.dims or left.data_type != right.data_type:
        return False
    return left == right or (
        _is_placed(left) and _is_placed(right) and _bytes(left, path) == _bytes(right, path)
    )


def _free(name: str, prefix: str, parts: _Parts) -> str:
    free = prefix + name if name in parts.taken else name
    parts.taken.add(free)
    return free


def _join_branches(node: NodeProto, parts: _Parts, names: MutableMapping[str, str], prefix: str) -> None:
    """An If becomes, for each of its outputs, a node with one input from each branch."""
    branches = [
        _join(attribute.g, parts, names, f"{prefix}{_text(node.output[0])}/{_text(attribute.name)}/")
        for attribute in node.attribute
        if attribute.type == AttributeProto.GRAPH and node.output
    ]
    for place, output in enumerate(map(_text, node.output)):
        inputs = tuple(branch[place] for branch in branches if place < len(branch))
        parts.nodes.append(Node("If", inputs, (names[output],) if output else (), {}))


def _constants(graph: GraphProto) -> dict[str, TensorProto]:
    """The values of a graph's Constant nodes."""
    tensors = {}
    for node in graph.node:
        if node.op_type == "Constant" and node.output and node.attribute:
            value = _constant(node.attribute[0])
            if value is not None:
                tensors[_text(node.output[0])] = value
    return tensors


def _constant(attribute: AttributeProto) -> TensorProto | None:
    if attribute.type == AttributeProto.TENSOR:
        return attribute.t
    numbers = {"value_float": attribute.f, "value_floats": list(attribute.floats)}
    numbers |= {"value_int": attribute.i, "value_ints": list(attribute.ints)}
    if attribute.name not in numbers:
        return None
    dtype = np.float32 if "float" in attribute.name else np.int64
    return numpy_helper.from_array(np.array(numbers[attribute.name], dtype=dtype))


def _translate(node: NodeProto, names: Mapping[str, str]) -> Node:
    attributes: dict[str, Attribute] = {}
    for attribute in node.attribute:
        name = _text(attribute.name)
        if attribute.type == AttributeProto.FLOAT:
            attributes[name] = attribute.f
        elif attribute.type == AttributeProto.INT:
            attributes[name] = attribute.i
        elif attribute.type == AttributeProto.INTS:
            attributes[name] = tuple(attribute.ints)
        elif attribute.type == AttributeProto.STRING:
            attributes[name] = _text(attribute.s)
        elif attribute.type == AttributeProto.STRINGS:
            attributes[name] = _text(b",".join(attribute.strings))
    inputs, outputs = (
        tuple(names.get(name, name) for name in map(_text, each)) for each in (node.input, node.output)
    )
    return Node(_text(node.op_type), inputs, outputs, attributes)


def _graph(parts: _Parts, outputs: list[str]) -> Graph:
    scalars: dict[str, float] = {}
    integers: dict[str, tuple[int, ...]] = {}
    for name, tensor in parts.tensors.items():
        if len(tensor.dims) > 1 or math.prod(tensor.dims) > _SHORT_LIST or tensor.external_data:
            continue
        numbers = _small(tensor)
        if len(numbers) == 1:
            scalars[name] = float(numbers[0])
        if _TYPES.get(tensor.data_type) in _INTEGERS:
            integers[name] = tuple(int(number) for number in numbers)
    return Graph(
        nodes=tuple(parts.nodes),
        outputs=tuple(outputs),
        constants={name: tuple(tensor.dims) for name, tensor in parts.tensors.items()},
        scalars=scalars,
        integers=integers,
        types={name: _TYPES.get(tensor.data_type, "unknown") for name, tensor in parts.tensors.items()},
        ranks=parts.ranks,
    )


def _small(tensor: TensorProto) -> list[float]:
    """The numbers of a short constant; none where it is damaged, for it may not be needed."""
    try:
        return numpy_helper.to_array(tensor).reshape(-1).tolist() if tensor.data_type in _TYPES else []
    except (ValueError, TypeError):
        return []


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Reader:
    """Gives the values of stored constants: dequantised, cast and multiplied as the graph does it."""

    tensors: Mapping[str, TensorProto]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        values = self._array(stored.name)
        if stored.scale or stored.zero_point:
            scale = self._array(stored.scale) if stored.scale else None
            zero_point = self._array(stored.zero_point) if stored.zero_point else None
            values = dequantised(values, scale, zero_point, stored.axis)
        for number in stored.casts:
            if _TYPES.get(number) not in _FLOATS:
                raise LoadError(
                    f"tensor {stored.name!r} is cast to {_TYPES.get(number)}, no type for weights."
                )
            values = cast(values, _TYPES[number])
        if values.dtype.name not in _FLOATS:
            raise LoadError(
                f"tensor {stored.name!r} has type {values.dtype.name}; expected {', '.join(_FLOATS)}. "
                "Quantised weights mean nothing without their scales: use the float model they come from."
            )
        return times(values, stored.factor)

    def _array(self, name: str) -> NDArray[Any]:
        tensor = self.tensors[name]
        try:
            if tensor.data_type not in _TYPES or any(length < 0 for length in tensor.dims):
                raise ValueError(
                    f"type {tensor.data_type} of shape {tuple(tensor.dims)} is not an array of numbers"
                )
            if _is_placed(tensor):
                return _array_in(tensor, self.path)
            if tensor.external_data:
                tensor = _bounded(tensor, self.path.parent)
            array: NDArray[Any] = numpy_helper.to_array(tensor, base_dir=str(self.path.parent))
        except (ValueError, TypeError, ValidationError) as error:
            raise LoadError(
                f"tensor {name!r} (shape {tuple(tensor.dims)}) can't be read: {error}. The model, or the "
                "data file that belongs beside it, is missing, cut short or damaged; fetch it again."
            ) from error
        return array


def _is_placed(tensor: TensorProto) -> bool:
    return any(entry.key == PLACE for entry in tensor.external_data)


def _bytes(tensor: TensorProto, path: Path) -> bytes:
    """The bytes of a tensor that were left in the model's file."""
    place = next(entry.value for entry in tensor.external_data if entry.key == PLACE)
    start, length = map(int, place.split())
    with path.open("rb") as file:
        file.seek(start)
        return file.read(min(length, _size(tensor)))


def _array_in(tensor: TensorProto, path: Path) -> NDArray[Any]:
    """The values of a tensor that were left in the model's file, without a second copy of them."""
    data = _bytes(tensor, path)
    if sys.byteorder == "little" and len(data) == _size(tensor):
        return np.frombuffer(data, helper.tensor_dtype_to_np_dtype(tensor.data_type)).reshape(tensor.dims)
    # Numbers of 4 bits, two to a byte, are left to onnx, and so are the errors where bytes are missing.
    packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
    return numpy_helper.to_array(packed)


def _size(tensor: TensorProto) -> int:
    """How many bytes a tensor's numbers take in memory."""
    return int(math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def _bounded(tensor: TensorProto, folder: Path) -> TensorProto:
    """An external tensor that asks for the bytes of its shape and no more, which its file must have."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    offset = int(entries.get("offset", 0))
    needed = _size(tensor)
    file = folder / entries.get("location", "")
    available = os.path.getsize(file) - offset if file.is_file() else needed  # a missing one onnx reports
    length = int(entries.get("length", needed))
    if min(needed, length) > available or offset < 0 or length < 0:
        raise ValueError(
            f"{needed:,} bytes needed from byte {offset:,} of {file.name}, which has {available:,}"
        )
    entries |= {"offset": str(offset), "length": str(min(needed, length))}
    bounded = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    bounded.data_location = TensorProto.EXTERNAL
    for key in ("location", "offset", "length"):
        bounded.external_data.add(key=key, value=entries.get(key, ""))
    return bounded


def _shape(tensor: TensorProto, flipped: bool) -> tuple[int, int]:
    """Classes and features; further axes of a convolution have length 1."""
    rows, columns = tensor.dims[:2]
    if rows < 1 or columns < 1:
        raise LoadError(f"tensor {tensor.name!r} has shape {tuple(tensor.dims)}; the file is damaged.")
    return (columns, rows) if flipped else (rows, columns)


def _info(tensors: Mapping[str, TensorProto], name: str) -> TensorInfo:
    number = tensors[name].data_type
    return TensorInfo(name, tuple(tensors[name].dims), _TYPES.get(number, f"ONNX type {number}"))
