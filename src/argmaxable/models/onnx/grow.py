"""A copy of an ONNX model whose output layer has more classes.

The file is walked as protobuf's wire format. The tensors of the layer get more rows, the shapes that the file
declares for what is computed from them one more number, and the labels in its metadata more lines; every
other field is copied as it is. A model that depends on the number of classes in another way is refused.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.models.onnx.wire import Splice, delimited, respliced
from argmaxable.models.protobuf import Data, Field, fields, number_in, varint
from argmaxable.models.write.edit import Edit

# Numbers of fields in onnx.proto.
_MODEL_GRAPH, _MODEL_METADATA = 7, 14
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO = 1, 5, 11, 12, 13
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 6, 11
_DIMS, _DATA_TYPE, _FLOAT_DATA, _INT32_DATA, _INT64_DATA, _NAME = 1, 2, 4, 5, 7, 8
_RAW_DATA, _DOUBLE_DATA, _EXTERNAL_DATA = 9, 10, 13
_INTEGER_TYPES = {6: "<i4", 7: "<i8"}
_KEY, _VALUE = 1, 2
# ValueInfoProto.type, TypeProto.tensor_type, Tensor.shape, TensorShapeProto.dim, Dimension.dim_value.
_TO_DIMENSIONS, _DIMENSION_VALUE = (2, 1, 2, 1), 1


@dataclass(frozen=True)
class _NodeOutline:
    """A node of the main graph: what it reads, inside of its branches too, and what it computes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    has_branches: bool


@dataclass(frozen=True)
class _GraphOutline:
    """The main graph: its nodes, its constants by name and the values whose shapes it declares."""

    nodes: tuple[_NodeOutline, ...]
    constants: dict[str, Field]
    values: tuple[tuple[str, Field], ...]


def grow(
    source: Path, edits: Sequence[Edit], draft: Path, labels: Sequence[str] | None
) -> Iterator[list[Path]]:
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        graph = _graph(data)
        before, after = edits[0].tensor, edits[0].after.shape
        classes, grown = next((old, new) for old, new in zip(before.shape, after, strict=True) if old != new)
        names = {edit.tensor.name for edit in edits}
        computed = _computed_from(graph, names)
        _require_free(data, graph, names, computed, classes)
        splices = [_tensor_splice(data, graph, edit) for edit in edits]
        for name, value in graph.values:
            if name in computed | names:
                splices += _shape_splices(data, value, classes, grown)
        if labels is not None:
            splices.append(_labels_splice(data, labels, classes))
        draft.write_bytes(respliced(data, splices))
    yield []


# ---------------------------------------------------------------------- what there is


def _graph(data: Data) -> _GraphOutline:
    (graph,) = (field for field in fields(data) if field.number == _MODEL_GRAPH)
    parts = list(fields(data, graph.start, graph.end))
    nodes = [_node(data, part) for part in parts if part.number == _GRAPH_NODE]
    constants = {_name(data, part): part for part in parts if part.number == _GRAPH_INITIALIZER}
    for outline, tensor in nodes:
        if outline.op == "Constant" and tensor is not None and outline.outputs:
            constants[outline.outputs[0]] = tensor
    declaring = (_GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO)
    values = tuple((_name(data, part, 1), part) for part in parts if part.number in declaring)
    return _GraphOutline(tuple(outline for outline, _ in nodes), constants, values)


def _node(data: Data, node: Field) -> tuple[_NodeOutline, Field | None]:
    """A node, and the tensor among its attributes."""
    parts = list(fields(data, node.start, node.end))
    inputs = [_text(data, part) for part in parts if part.number == _NODE_INPUT]
    tensor, inside = None, []
    for attribute in (part for part in parts if part.number == _NODE_ATTRIBUTE):
        for part in fields(data, attribute.start, attribute.end):
            if part.number == _ATTRIBUTE_TENSOR:
                tensor = part
            elif part.number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
                inside += _read_inside(data, part)
    outputs = tuple(_text(data, part) for part in parts if part.number == _NODE_OUTPUT)
    op = "".join(_text(data, part) for part in parts if part.number == _NODE_OP)
    return _NodeOutline(op, (*inputs, *inside), outputs, bool(inside)), tensor


def _read_inside(data: Data, graph: Field) -> list[str]:
    """What the nodes of a branch read."""
    nodes = (part for part in fields(data, graph.start, graph.end) if part.number == _GRAPH_NODE)
    return [name for node in nodes for name in _node(data, node)[0].inputs]


def _computed_from(graph: _GraphOutline, names: set[str]) -> set[str]:
    """Every value that depends on these tensors; nodes are in the order of computation."""
    found: set[str] = set()
    for node in graph.nodes:
        if (names | found).intersection(node.inputs):
            if node.has_branches:
                raise InputError(
                    f"the output layer is used inside of a branch ({node.op}): classes can't be added to it."
                )
            found.update(node.outputs)
    return found


def _require_free(
    data: Data, graph: _GraphOutline, names: set[str], computed: set[str], classes: int
) -> None:
    """Raise InputError where a constant that meets the logits is made for this number of classes."""
    for node in graph.nodes:
        if computed.intersection(node.outputs):
            for name in set(node.inputs) - names:
                tensor = graph.constants.get(name)
                if tensor is not None and classes in _numbers_in(data, tensor):
                    raise InputError(
                        f"the constant {name!r} of a {node.op} is made for {classes:,} classes, so none can "
                        "be "
                        "added. Export the model with more classes instead."
                    )


def _numbers_in(data: Data, tensor: Field) -> set[int]:
    """The dimensions of a constant, and its values where it is a short list of whole numbers."""
    parts = list(fields(data, tensor.start, tensor.end))
    numbers = set(_dims(data, parts))
    kind = next((number_in(data, part) for part in parts if part.number == _DATA_TYPE), 0)
    for part in parts:
        content = bytes(data[part.start : part.end])
        if part.number == _RAW_DATA and kind in _INTEGER_TYPES:
            numbers |= set(np.frombuffer(content, _INTEGER_TYPES[kind]).tolist())
        elif part.number in (_INT32_DATA, _INT64_DATA):
            numbers |= set(_integers(data, part))
    return numbers


# ---------------------------------------------------------------------- what changes


def _tensor_splice(data: Data, graph: _GraphOutline, edit: Edit) -> Splice:
    """The whole tensor with other dimensions and values, its other fields as they are."""
    field = graph.constants.get(edit.tensor.name)
    if field is None:
        raise InputError(
            f"constant {edit.tensor} is not in the model's main graph: no class can be added to it."
        )
    parts = list(fields(data, field.start, field.end))
    if any(part.number == _EXTERNAL_DATA for part in parts):
        raise InputError(
            f"constant {edit.tensor} is stored in a file beside the model, where no class can be added yet. "
            "Save "
            "the model in one file: onnx.save(onnx.load(path), other)."
        )
    values = [part for part in parts if part.number in (_RAW_DATA, _FLOAT_DATA, _DOUBLE_DATA)]
    if len(values) != 1 or not values[0].is_delimited:
        raise InputError(f"constant {edit.tensor} is stored number by number. Save the model with onnx.save.")
    content = delimited(_DIMS, b"".join(map(varint, edit.after.shape)))
    for part in parts:
        if part.number == values[0].number:
            content += delimited(part.number, edit.bytes_after())
        elif part.number != _DIMS:
            content += bytes(data[part.begin : part.end])
    return Splice(field.start, field.end, content)


def _shape_splices(data: Data, value: Field, classes: int, grown: int) -> list[Splice]:
    """The last dimension of a value that is the number of classes."""
    found = [value]
    for number in _TO_DIMENSIONS:
        found = [part for one in found for part in fields(data, one.start, one.end) if part.number == number]
    sizes = [
        part
        for dimension in found
        for part in fields(data, dimension.start, dimension.end)
        if part.number == _DIMENSION_VALUE and number_in(data, part) == classes
    ]
    return [Splice(part.start, part.end, varint(grown)) for part in sizes[-1:]]


def _labels_splice(data: Data, labels: Sequence[str], classes: int) -> Splice:
    for entry in (field for field in fields(data) if field.number == _MODEL_METADATA):
        parts = {part.number: part for part in fields(data, entry.start, entry.end)}
        key, value = (_text(data, parts[number]) if number in parts else "" for number in (_KEY, _VALUE))
        if key in _LABEL_TEXTS and value:
            text = _LABEL_TEXTS[key](value, labels, classes)
            return Splice(parts[_VALUE].start, parts[_VALUE].end, text.encode())
    raise InputError("the model's metadata holds no labels that could be added to.")


def _characters(text: str, labels: Sequence[str], classes: int) -> str:
    """A line for each label, but for the blank and the space that PaddleOCR's decoders add themselves."""
    if any("\n" in label for label in labels):
        raise InputError("a label with a line break can't be stored among the model's characters.")
    end = "\n" if text.endswith("\n") else ""
    listed = len(text.removesuffix("\n").split("\n"))
    first = 0 if listed == classes else 1
    last = len(labels) - 1 if listed == classes - 2 else len(labels)
    return "\n".join(labels[first:last]) + end


def _numbered_names(text: str, labels: Sequence[str], classes: int) -> str:
    """Ultralytics' names by number, written as a Python dictionary."""
    new = ", ".join(f"{number}: {labels[number]!r}" for number in range(classes, len(labels)))
    body, brace = text.rstrip()[:-1], text.rstrip()[-1]
    if brace != "}":
        raise InputError("the model's metadata lists its names in a way that can't be added to.")
    return f"{body}, {new}{brace}"


_LABEL_TEXTS = {"character": _characters, "names": _numbered_names}


# ---------------------------------------------------------------------- small parts


def _dims(data: Data, parts: Sequence[Field]) -> list[int]:
    return [number for part in parts if part.number == _DIMS for number in _integers(data, part)]


def _integers(data: Data, part: Field) -> list[int]:
    """The numbers of a field, packed or alone."""
    if not part.is_delimited:
        return [number_in(data, part)]
    packed = bytes(data[part.start : part.end])
    numbers, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers


def _name(data: Data, message: Field, number: int = _NAME) -> str:
    names = (part for part in fields(data, message.start, message.end) if part.number == number)
    return "".join(_text(data, part) for part in names)


def _text(data: Data, field: Field) -> str:
    return bytes(data[field.start : field.end]).decode(errors="replace")
