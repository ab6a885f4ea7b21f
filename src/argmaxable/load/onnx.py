"""Heads in ONNX files. This is the only module that imports `onnx`.

The protobuf is translated once into the small `Graph` that `argmaxable.load.graph` walks; of the weights
only the head's are decoded, also when they lie in a file beside the model.
"""

from __future__ import annotations

import ast
import math
import os
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.checker import ValidationError

from argmaxable.errors import LoadError
from argmaxable.load.dequantise import cast, dequantised, times
from argmaxable.load.finding import Arrays, Finding, Labels, TensorInfo
from argmaxable.load.graph import Layer, last_layer, layer_using, other_weights
from argmaxable.load.graph_domain import inputs_of
from argmaxable.load.nodes import Attribute, Graph, Node
from argmaxable.load.products import Stored
from argmaxable.load.registry import ReadOptions
from argmaxable.load.vocabulary import class_labels, ctc_labels, labels_beside

# numpy's names for the types whose values can be read; strings and complex numbers are no weights.
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
# Longer than any list of class names that someone puts into a model's metadata as Python text.
_LONGEST_NAMES = 2**20


@dataclass
class _Parts:
    """A graph under construction: that of the model with those of its If branches joined in."""

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
    parts = _Parts()
    outputs = _join(model.graph, parts, {}, "")
    tensors = parts.tensors
    graph = _graph(parts, outputs)
    layer = last_layer(graph) if options.tensor is None else layer_using(graph, options.tensor)
    flipped = layer.stored_by_class == options.transpose
    classes, features = _shape(tensors[layer.weight.name], flipped)
    if options.tensor is None:
        _require_classes_kept(layer, classes)
    bias = _bias(layer, options, tensors)
    values = _Reader(tensors, path.parent)

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
        labels=_labels(model, path.parent, classes),
        inputs=None if options.transpose else inputs_of(graph, layer.features, features, values),
        alternatives=tuple(_info(tensors, name) for name in other_weights(graph, layer.weight.name)),
        notes=layer.notes,
    )


# ---------------------------------------------------------------------- from protobuf to a graph


def _parse(path: Path) -> ModelProto:
    size = path.stat().st_size
    if size >= _LARGEST_MESSAGE:
        raise LoadError(
            f"has {size:,} bytes; an ONNX model ends below 2 GiB, with larger weights in files beside it. "
            "Export it with external data."
        )
    try:
        return onnx.load_model_from_string(path.read_bytes())
    except DecodeError as error:
        raise LoadError(
            f"is no readable ONNX model: {error}. It may be cut short or damaged, or a Git LFS pointer; "
            "fetch it again."
        ) from error


def _join(graph: GraphProto, parts: _Parts, outer: MutableMapping[str, str], prefix: str) -> list[str]:
    """Add a graph's nodes and constants to the parts; the names its outputs have there.

    Branches may use a name again for something else, which then gets a prefix; a constant that both
    branches hold with the same values is one.
    """
    names = ChainMap[str, str]({}, outer)
    constants = {_text(tensor.name): tensor for tensor in graph.initializer} | _constants(graph)
    for name, tensor in constants.items():
        names[name] = name if parts.tensors.get(name) == tensor else _free(name, prefix, parts)
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
    folder: Path

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
                    f"type {tensor.data_type} of shape {tuple(tensor.dims)} is no array of numbers"
                )
            if tensor.external_data:
                tensor = _bounded(tensor, self.folder)
            array: NDArray[Any] = numpy_helper.to_array(tensor, base_dir=str(self.folder))
        except (ValueError, TypeError, ValidationError) as error:
            raise LoadError(
                f"tensor {name!r} (shape {tuple(tensor.dims)}) can't be read: {error}. The model, or the "
                "data file that belongs beside it, is missing, cut short or damaged; fetch it again."
            ) from error
        return array


def _bounded(tensor: TensorProto, folder: Path) -> TensorProto:
    """An external tensor that asks for the bytes of its shape and no more, which its file must have."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    offset = int(entries.get("offset", 0))
    needed = math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
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


def _require_classes_kept(layer: Layer, classes: int) -> None:
    """Refuse a layer whose product is cut into several groups, each with an argmax of its own."""
    for target in layer.targets:
        if classes not in target and target[-1:] not in ((0,), (-1,)):  # 0 keeps, -1 takes up all the rest
            raise LoadError(
                f"the product with {layer.weight.name!r} has {classes} columns but is reshaped to "
                f"{list(target)}, so they are not the classes of one argmax. To treat them as such all the "
                f"same, pass tensor={layer.weight.name!r} (--tensor)."
            )


def _bias(layer: Layer, options: ReadOptions, tensors: Mapping[str, TensorProto]) -> Stored | None:
    added = ", ".join(bias.name for bias in layer.biases)
    if options.bias_tensor is not None:
        own = [bias for bias in layer.biases if bias.name == options.bias_tensor]
        if options.bias_tensor not in tensors:
            raise LoadError(
                f"tensor {options.bias_tensor!r} not found ({len(tensors)} constants; added to the layer: "
                f"{added or 'none'}). Correct bias_tensor= (--bias-tensor) or leave it out."
            )
        return own[0] if own else Stored(options.bias_tensor)
    if len(layer.biases) > 1:
        raise LoadError(
            f"{len(layer.biases)} constants are added to the product with {layer.weight.name!r}: {added}. "
            "Their sum would be rounded: export the model with a single bias. (bias_tensor=, --bias-tensor "
            "takes one of them and leaves the others out.)"
        )
    return layer.biases[0] if layer.biases else None


# ---------------------------------------------------------------------- labels


def _labels(model: ModelProto, folder: Path, classes: int) -> Labels | None:
    """Labels from the model's metadata, or from a file beside it; None when their number does not fit."""
    stored = {_text(each.key): _text(each.value) for each in model.metadata_props}
    for key, read in (("character", _characters), ("names", _names)):
        try:
            if stored.get(key):
                return Labels(read(stored[key], classes), f"the model's metadata, key {key!r}")
        except LoadError:
            continue
    # Hugging Face's exports lie in a folder "onnx" of the model's own.
    folders = [folder, folder.parent] if folder.name == "onnx" else [folder]
    return next((labels for each in folders if (labels := labels_beside(each, classes))), None)


def _characters(text: str, classes: int) -> tuple[str, ...]:
    """What PaddleOCR's exporters store: the characters a recogniser can answer, one per line."""
    # Only "\n" separates: str.splitlines would also split at characters a model can answer.
    return ctc_labels(text.removesuffix("\n").split("\n"), classes)


def _names(text: str, classes: int) -> tuple[str, ...]:
    """What Ultralytics' exporters store: a Python dictionary, written as text, from number to name."""
    try:
        value = ast.literal_eval(text) if len(text) < _LONGEST_NAMES else None
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise LoadError(f"is no list of names: {error}") from error
    return class_labels(value, classes)
