"""A copy of an ONNX model with other values in some of its constants.

The file is walked as protobuf's wire format, so that nothing but the constants' bytes changes: no library
writes the model again. Data in files beside the model is copied along.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from argmaxable.core.errors import InputError
from argmaxable.models.protobuf import Data, Field, fields
from argmaxable.models.write.edit import Edit, Patch, copy_with, replacing

# Numbers of fields in onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 2, 4, 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 6, 11
_FLOAT_DATA, _NAME, _RAW_DATA, _DOUBLE_DATA, _EXTERNAL_DATA = 4, 8, 9, 10, 13
_KEY, _VALUE = 1, 2
# How the file packs numbers that are not in raw_data: floats and doubles, little-endian, one after the other.
_PACKED = {"float32": _FLOAT_DATA, "float64": _DOUBLE_DATA}
_DEEPEST = 100


@dataclass(frozen=True)
class _Tensor:
    """A constant of the model: its name, the places of its fields, and what it says about external data."""

    name: str
    fields: dict[int, Field]
    external: dict[str, str]


def write(source: Path, edits: Sequence[Edit], draft: Path, target: Path) -> Iterator[list[Path]]:
    """Files with external data go beside the target at once."""
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        tensors = list(_tensors(data))
    inside: list[Patch] = []
    outside: dict[str, list[Patch]] = {}
    for edit in edits:
        tensor = _named(tensors, edit)
        if tensor.external:
            location = _location(tensor.external)
            patch = Patch(int(tensor.external.get("offset") or 0), edit.bytes_after())
            outside.setdefault(location, []).append(patch)
        else:
            inside.append(_patch(tensor, edit))
    locations = {_location(tensor.external) for tensor in tensors if tensor.external}
    _require_free(source, target, locations)
    for location in sorted(locations):
        place = target.parent / location
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place, overwrite=False) as unfinished:
            copy_with(source.parent / location, unfinished, outside.get(location, []))
    copy_with(source, draft, inside)
    yield [target.parent / location for location in sorted(locations)]


def _require_free(source: Path, target: Path, locations: set[str]) -> None:
    for location in sorted(locations):
        if not (source.parent / location).is_file():
            raise InputError(f"the model's data file {location} is not beside it. Fetch it too.")
        if (target.parent / location).exists():
            raise InputError(
                f"{target.parent / location} exists already, and the model keeps its weights in a file of "
                "that name. Write the repaired model into another folder."
            )


def _named(tensors: list[_Tensor], edit: Edit) -> _Tensor:
    found = [tensor for tensor in tensors if tensor.name == edit.tensor.name]
    if len(found) != 1:
        raise InputError(
            f"{len(found)} constants of the model are called {edit.tensor.name!r}, expected one: it is not "
            "clear what to change. Export the model again."
        )
    return found[0]


def _patch(tensor: _Tensor, edit: Edit) -> Patch:
    data = edit.bytes_after()
    number = _RAW_DATA if _RAW_DATA in tensor.fields else _PACKED.get(edit.tensor.dtype, _RAW_DATA)
    field = tensor.fields.get(number)
    if field is None or field.end - field.start != len(data):
        raise InputError(
            f"constant {edit.tensor} is stored number by number, in a way that can't be changed in place. "
            "Save the model again with onnx.save."
        )
    return Patch(field.start, data)


def _location(external: dict[str, str]) -> str:
    location = external.get("location", "")
    path = PurePosixPath(location)
    if not location or path.is_absolute() or ".." in path.parts:
        raise InputError(f"the model keeps data in {location!r}, outside of its folder: not changed.")
    return location


def _tensors(data: Data) -> Iterator[_Tensor]:
    for field in fields(data):
        if field.number == _MODEL_GRAPH and field.is_delimited:
            yield from _tensors_of_graph(data, field, 0)


def _tensors_of_graph(data: Data, graph: Field, depth: int) -> Iterator[_Tensor]:
    if depth > _DEEPEST:
        raise InputError(f"the model's graphs are nested more than {_DEEPEST} deep: not changed.")
    for field in fields(data, graph.start, graph.end):
        if field.number == _GRAPH_INITIALIZER and field.is_delimited:
            yield _tensor(data, field, None)
        elif field.number == _GRAPH_NODE and field.is_delimited:
            yield from _tensors_of_node(data, field, depth)


def _tensors_of_node(data: Data, node: Field, depth: int) -> Iterator[_Tensor]:
    parts = list(fields(data, node.start, node.end))
    outputs = [_text(data, part) for part in parts if part.number == _NODE_OUTPUT]
    is_constant = any(part.number == _NODE_OP and _text(data, part) == "Constant" for part in parts)
    for attribute in (part for part in parts if part.number == _NODE_ATTRIBUTE):
        for part in fields(data, attribute.start, attribute.end):
            if part.number == _ATTRIBUTE_TENSOR and is_constant and outputs:
                yield _tensor(data, part, outputs[0])
            elif part.number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS) and part.is_delimited:
                yield from _tensors_of_graph(data, part, depth + 1)


def _tensor(data: Data, message: Field, name: str | None) -> _Tensor:
    parts: dict[int, Field] = {}
    external: dict[str, str] = {}
    for part in fields(data, message.start, message.end):
        if part.number == _EXTERNAL_DATA:
            entry = {field.number: _text(data, field) for field in fields(data, part.start, part.end)}
            external[entry.get(_KEY, "")] = entry.get(_VALUE, "")
        elif part.is_delimited:
            parts[part.number] = part
    own = _text(data, parts[_NAME]) if _NAME in parts else ""
    return _Tensor(own if name is None else name, parts, external)


def _text(data: Data, field: Field) -> str:
    return bytes(data[field.start : field.end]).decode(errors="replace")
