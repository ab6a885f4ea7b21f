"""An ONNX model without its weights, so that a large file is never in memory as a whole.

The model is copied field by field; where a tensor's bytes are more than a few, their place in the file is
noted instead, in the way that ONNX notes the places of external data.
"""

from __future__ import annotations

from argmaxable.core.errors import LoadError
from argmaxable.models.protobuf import Data, Field, fields, varint

# The key of the note "start length". It can't be taken for external data, which has a "location".
PLACE = "argmaxable.place"

# Scalars, axes and shapes stay, they are looked at while searching.
_FEW_BYTES = 1024
# protobuf itself refuses messages that are nested deeper.
_DEEPEST = 100
# The messages that hold tensors, with the numbers of the fields that lead there (onnx.proto).
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
_RAW_DATA, _EXTERNAL_DATA, _KEY, _VALUE = 9, 13, 1, 2


def outline(data: Data) -> bytes:
    """The model in a file, weights replaced by their places in it; raises LoadError."""
    return _copy(data, 0, len(data), "model", 0)


def _copy(data: Data, start: int, end: int, message: str, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise LoadError(f"messages are nested more than {_DEEPEST} deep")
    parts = []
    for field in fields(data, start, end):
        inside = _INSIDE[message].get(field.number)
        if inside is not None and field.is_delimited:
            parts.append(_delimited(field.number, _copy(data, field.start, field.end, inside, depth + 1)))
        elif message == "tensor" and field.number == _RAW_DATA and field.end - field.start > _FEW_BYTES:
            parts.append(_note(field))
        else:
            parts.append(data[field.begin : field.end])
    return b"".join(parts)


def _note(field: Field) -> bytes:
    entry = _delimited(_KEY, PLACE.encode())
    entry += _delimited(_VALUE, f"{field.start} {field.end - field.start}".encode())
    return _delimited(_EXTERNAL_DATA, entry)


def _delimited(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value
