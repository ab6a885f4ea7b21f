"""Heads in ONNX files.

The protobuf, without its weights, is translated once into the small `Graph` that `models/graph/`
walks; of the weights only the head's are read (see `values`).
"""

from __future__ import annotations

import math
import mmap
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    numpy_helper,
)

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.graph.nodes import Attribute, Graph, Node
from argmaxable.models.labels.metadata import labels_of
from argmaxable.models.onnx.outline import outline
from argmaxable.models.onnx.values import TYPES, ConstantReader, is_same

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.protobuf import Data
    from argmaxable.models.registry import ReadOptions

_INTEGERS = ("int32", "int64")
# Shapes, axes and permutations; longer lists of integers are data.
_SHORT_LIST = 16
# ONNX's own operations and ONNX Runtime's.
_KNOWN_DOMAINS = frozenset({"", "com.microsoft"})
# The version of ONNX's operations in which Dropout is switched off unless an input says otherwise.
_DROPOUT_IS_OFF_SINCE = 7
# The version of the format (ir_version) in which constants need no longer be listed as inputs.
_REPLACEABLE_SINCE = 4
# protobuf's own limit for one message; larger models keep their weights in files beside.
_LARGEST_MESSAGE = 2**31


@dataclass
class _Parts:
    """The graph of a file under construction: that of the model with those of its If branches joined in."""

    path: Path
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, TensorProto] = field(default_factory=dict)
    shapes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    functions: frozenset[tuple[str, str]] = frozenset()
    opset: int = 13
    taken: set[str] = field(default_factory=set)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of an ONNX model.

    Without `options.tensor` it is the linear layer that leads to the output. Its orientation follows from
    the node that uses it; `options.transpose` flips it. Raises LoadError.
    """
    model = _parse(path)
    parts = _Parts(path, functions=_functions(model), opset=_opset(model))
    parts.taken.update(_text(each.name) for each in model.graph.input)
    outputs = _join(model.graph, parts, {}, "")
    graph = _graph(parts, outputs, _replaceable(model))
    values = ConstantReader(parts.tensors, path)
    metadata = _metadata(model)
    return find_in_graph("onnx", graph, options, values, lambda classes: labels_of(metadata, path, classes))


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
    except AmbiguousError:
        raise
    except (LoadError, DecodeError) as error:
        raise LoadError(
            f"is not a readable ONNX model: {error}. It may be cut short or damaged, or a Git LFS pointer; "
            "fetch it again."
        ) from error


def _mapped(file: IO[bytes], size: int) -> AbstractContextManager[Data]:
    # An empty file can't be mapped.
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else nullcontext(b"")


def _functions(model: ModelProto) -> frozenset[tuple[str, str]]:
    """The operations that a model defines itself, by domain and name."""
    return frozenset((_domain(each), _text(each.name)) for each in model.functions)


def _opset(model: ModelProto) -> int:
    """The version of ONNX's own operations that a model is written in."""
    sets = [(_text(each.domain) or "ai.onnx", each.version) for each in model.opset_import]
    repeated = twice(domain for domain, _ in sets)
    if repeated is not None:
        raise ambiguous(f"the model declares two versions of the operations of {repeated!r}")
    return int(dict(sets).get("ai.onnx", 1))


def _replaceable(model: ModelProto) -> frozenset[str]:
    """The constants that whoever runs the model can replace: those that are also inputs of the graph.

    Before version 4 of the format all constants had to be listed as inputs, and runtimes take them as fixed.
    """
    if model.ir_version < _REPLACEABLE_SINCE:
        return frozenset()
    stored = {*(each.name for each in model.graph.initializer)}
    stored |= {each.values.name for each in model.graph.sparse_initializer}
    return frozenset(_text(each.name) for each in model.graph.input if each.name in stored)


def _metadata(model: ModelProto) -> dict[str, str]:
    repeated = twice(_text(each.key) for each in model.metadata_props)
    if repeated is not None:
        raise ambiguous(f"the model's metadata has the key {repeated!r} twice")
    return {_text(each.key): _text(each.value) for each in model.metadata_props}


def _require_different_names(graph: GraphProto) -> None:
    """Refuse a graph in which a name stands for two tensors."""
    stored = [*(each.name for each in graph.initializer)]
    stored += [each.values.name for each in graph.sparse_initializer]
    computed = [name for node in graph.node for name in node.output if name]
    given = [each.name for each in graph.input]
    # What is given may also be stored: that is its default.
    for names in ([*stored, *computed], [*given, *computed]):
        repeated = twice(_text(name) for name in names)
        if repeated is not None:
            raise ambiguous(f"two tensors of a graph are called {repeated!r}")
    for node in graph.node:
        repeated = twice(_text(each.name) for each in node.attribute)
        if repeated is not None:
            raise ambiguous(f"a {_text(node.op_type)} has the attribute {repeated!r} twice")


def _join(graph: GraphProto, parts: _Parts, outer: MutableMapping[str, str], prefix: str) -> list[str]:
    """Add a graph's nodes and constants to the parts; the names its outputs have there.

    Branches may use a name again for something else, which then gets a prefix; a constant that both
    branches hold with the same values is one.
    """
    _require_different_names(graph)
    names = ChainMap[str, str]({}, outer)
    constants = {_text(tensor.name): tensor for tensor in graph.initializer} | _constants(graph)
    for name, tensor in constants.items():
        known = parts.tensors.get(name)
        is_known = known is not None and is_same(known, tensor, parts.path)
        names[name] = name if is_known else _free(name, prefix, parts)
        parts.tensors[names[name]] = tensor
    for name in (_text(name) for node in graph.node for name in node.output if name):
        if name not in constants:
            names[name] = _free(name, prefix, parts)
    for value in (*graph.input, *graph.output, *graph.value_info):
        name = names.get(_text(value.name), _text(value.name))
        if value.type.tensor_type.HasField("shape"):
            parts.shapes[name] = _declared(value.type.tensor_type.shape)
        if value.type.tensor_type.elem_type:
            parts.declared[name] = _type_name(value.type.tensor_type.elem_type)
    for node in graph.node:
        op = _operation(node, parts.functions)
        if op == "If":
            _join_branches(node, parts, names, prefix)
        elif op != "Constant":
            parts.nodes.append(_translate(node, op, names))
    return [names.get(name, name) for name in (_text(output.name) for output in graph.output)]


def _declared(shape: TensorShapeProto) -> tuple[int | str, ...]:
    """A declared shape: numbers, names of lengths that are not known, and −1 for those without a name."""
    return tuple(
        each.dim_value if each.HasField("dim_value") else _text(each.dim_param) or -1 for each in shape.dim
    )


def _operation(node: NodeProto, functions: frozenset[tuple[str, str]]) -> str:
    """What a node does: one of ONNX's operations or ONNX Runtime's own, or what somebody else means by it."""
    domain, op = _domain(node), _text(node.op_type)
    is_known = domain in _KNOWN_DOMAINS and (domain, op) not in functions
    return op if is_known else f"{domain}:{op}"


def _domain(each: NodeProto | FunctionProto) -> str:
    """The set of operations; ONNX's own has two names."""
    domain = _text(each.domain)
    return "" if domain == "ai.onnx" else domain


def _text(value: str | bytes) -> str:
    """A name; where it is no UTF-8, as in damaged files, protobuf hands out bytes."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _free(name: str, prefix: str, parts: _Parts) -> str:
    """A name that no other tensor has; without a prefix, in the outermost graph, the name itself."""
    while prefix and name in parts.taken:
        name = prefix + name
    parts.taken.add(name)
    return name


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
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and node.output:
            if len(node.attribute) > 1:
                raise ambiguous(f"the Constant {_text(node.output[0])!r} has {len(node.attribute)} values")
            value = _constant(node.attribute[0]) if node.attribute else None
            if value is not None:
                tensors[_text(node.output[0])] = value
    return tensors


def _constant(attribute: AttributeProto) -> TensorProto | None:
    if attribute.name == "value":
        return attribute.t if attribute.type == AttributeProto.TENSOR else None
    numbers = {"value_float": attribute.f, "value_floats": list(attribute.floats)}
    numbers |= {"value_int": attribute.i, "value_ints": list(attribute.ints)}
    if attribute.name not in numbers:
        return None
    dtype = np.float32 if "float" in attribute.name else np.int64
    return numpy_helper.from_array(np.array(numbers[attribute.name], dtype=dtype))


def _translate(node: NodeProto, op: str, names: Mapping[str, str]) -> Node:
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
    return Node(op, inputs, outputs, attributes)


def _graph(parts: _Parts, outputs: list[str], replaceable: frozenset[str]) -> Graph:
    scalars: dict[str, float] = {}
    integers: dict[str, tuple[int, ...]] = {}
    for name, tensor in parts.tensors.items():
        if name in replaceable:  # nothing may rest on its value
            continue
        if len(tensor.dims) > 1 or math.prod(tensor.dims) > _SHORT_LIST or tensor.external_data:
            continue
        numbers = _small(tensor)
        if len(numbers) == 1:
            scalars[name] = float(numbers[0])
        if TYPES.get(tensor.data_type) in _INTEGERS:
            integers[name] = tuple(int(number) for number in numbers)
    return Graph(
        nodes=tuple(_as_run(node, scalars, parts.opset) for node in parts.nodes),
        outputs=tuple(outputs),
        constants={name: tuple(tensor.dims) for name, tensor in parts.tensors.items()},
        scalars=scalars,
        integers=integers,
        types={name: _type_name(tensor.data_type) for name, tensor in parts.tensors.items()},
        shapes=parts.shapes,
        declared=parts.declared,
        replaceable=replaceable,
        opset=parts.opset,
    )


def _as_run(node: Node, scalars: Mapping[str, float], opset: int) -> Node:
    """A Dropout that is not certain to be switched off is another operation, which ends every walk."""
    if node.op != "Dropout":
        return node
    is_off = node.number("is_test", 0) if opset < _DROPOUT_IS_OFF_SINCE else True
    mode = node.input(2)
    return (
        node if is_off and (not mode or scalars.get(mode) == 0) else replace(node, op="Dropout in training")
    )


def _type_name(number: int) -> str:
    return TYPES.get(number, f"ONNX type {number}")


def _small(tensor: TensorProto) -> list[float]:
    """The numbers of a short constant; none where it is damaged, for it may not be needed."""
    try:
        return numpy_helper.to_array(tensor).reshape(-1).tolist() if tensor.data_type in TYPES else []
    except (ValueError, TypeError):
        return []
