"""An ONNX model without its weights, so that a large file is never in memory as a whole.

The model is copied field by field; where a tensor's bytes are more than a few, their place in the file is
noted instead, in the way that ONNX notes the places of external data. On the way every tensor is checked to
have its values in one place only: protobuf takes the last of two fields, and other programs the first.
"""

from __future__ import annotations

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.protobuf import Data, Field, fields, number_in, varint

# The key of the note "start length". It can't be taken for external data, which has a "location".
PLACE = "argmaxable.place"

# Scalars, axes and shapes stay, they are looked at while searching.
_FEW_BYTES = 1024
# protobuf itself refuses messages that are nested deeper.
_DEEPEST = 100
# The messages that are looked into, with the numbers of the fields that lead there (onnx.proto).
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 8: "operator set", 14: "entry"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {13: "entry"},
    "operator set": {},
    "entry": {},
}
# The fields of these messages that may be there once.
_SINGLE: dict[str, dict[int, str]] = {
    "model": {1: "ir_version", 4: "domain", 5: "model_version", 7: "graph"},
    "graph": {2: "name"},
    "node": {3: "name", 4: "op_type", 7: "domain", 8: "overload"},
    "attribute": {1: "name", 2: "f", 3: "i", 4: "s", 5: "t", 6: "g", 20: "type", 21: "ref_attr_name"},
    "tensor": {2: "data_type", 3: "segment", 8: "name", 9: "raw_data", 14: "data_location"},
    "operator set": {1: "domain", 2: "version"},
    "entry": {1: "key", 2: "value"},
}
# Where a tensor's values may be; of these fields it has one.
_VALUES = {4: "float_data", 5: "int32_data", 6: "string_data", 7: "int64_data", 9: "raw_data"} | {
    10: "double_data",
    11: "uint64_data",
    13: "external_data",
}
# The type that an attribute declares for a value in each of these fields.
_ATTRIBUTE_TYPES = {
    **{2: "FLOAT", 3: "INT", 4: "STRING", 5: "TENSOR", 6: "GRAPH"},
    **{7: "FLOATS", 8: "INTS", 9: "STRINGS", 10: "TENSORS", 11: "GRAPHS"},
    **{22: "SPARSE_TENSOR", 23: "SPARSE_TENSORS", 14: "TYPE_PROTO", 15: "TYPE_PROTOS"},
}
_TYPE_NAMES = ("UNDEFINED", *_ATTRIBUTE_TYPES.values())
_KINDS = {"tensor": _VALUES, "attribute": _ATTRIBUTE_TYPES}
_ATTRIBUTE_NAME, _ATTRIBUTE_TYPE = 1, 20
# What ONNX Runtime knows of external data; it refuses other keys, which onnx leaves out.
_EXTERNAL_KEYS = frozenset({"location", "offset", "length", "checksum"})
_SEGMENT, _NAME, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 3, 8, 9, 13, 14
_KEY, _VALUE = 1, 2
_INTERNAL, _EXTERNAL = 0, 1


def outline(data: Data) -> bytes:
    """The model in a file, weights replaced by their places in it; raises LoadError."""
    return _copy(data, 0, len(data), "model", 0)


def _copy(data: Data, start: int, end: int, message: str, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise LoadError(f"messages are nested more than {_DEEPEST} deep")
    single = _SINGLE[message]
    seen: dict[int, Field] = {}
    parts = []
    for field in fields(data, start, end):
        if field.number in single and field.number in seen:
            raise ambiguous(f"the {message} at byte {start:,} has the field {single[field.number]} twice")
        if field.number in single or field.number in _KINDS.get(message, ()):
            seen[field.number] = field
        inside = _INSIDE[message].get(field.number)
        if inside is not None and field.is_delimited:
            parts.append(_delimited(field.number, _copy(data, field.start, field.end, inside, depth + 1)))
        elif message == "tensor" and field.number == _RAW_DATA and field.end - field.start > _FEW_BYTES:
            parts.append(_note(field))
        else:
            parts.append(data[field.begin : field.end])
    if message == "tensor":
        _require_one_place(data, seen)
        _require_single_keys(data, start, end)
    elif message == "attribute":
        _require_declared_type(data, seen)
    return b"".join(parts)


def _require_one_place(data: Data, seen: dict[int, Field]) -> None:
    """Refuse a tensor unless its values are in one field, and that the one where data_location says."""
    name = "a tensor" if _NAME not in seen else f"tensor {_text(data, seen[_NAME])!r}"
    places = [_VALUES[number] for number in sorted(seen.keys() & _VALUES.keys())]
    if len(places) > 1:
        raise ambiguous(f"{name} has values in {' and in '.join(places)}")
    location = seen.get(_DATA_LOCATION)
    where = _INTERNAL if location is None else number_in(data, location)
    if where not in (_INTERNAL, _EXTERNAL) or (where == _EXTERNAL) != (_EXTERNAL_DATA in seen):
        has = f"has its values in {places[0]}" if places else "has no values"
        location_name = {_INTERNAL: "DEFAULT", _EXTERNAL: "EXTERNAL"}.get(where, str(where))
        raise ambiguous(f"{name} {has}, but its data_location is {location_name}")
    if _SEGMENT in seen:
        raise ambiguous(f"{name} is a segment of a larger one")


def _require_declared_type(data: Data, seen: dict[int, Field]) -> None:
    """Refuse an attribute with a value of another type than it declares: some programs ask for the value,
    others for the type first."""
    number = number_in(data, seen[_ATTRIBUTE_TYPE]) if _ATTRIBUTE_TYPE in seen else 0
    declared = _TYPE_NAMES[number] if number < len(_TYPE_NAMES) else str(number)
    others = {_ATTRIBUTE_TYPES[each] for each in seen.keys() & _ATTRIBUTE_TYPES.keys()} - {declared}
    if others:
        name = _text(data, seen[_ATTRIBUTE_NAME]) if _ATTRIBUTE_NAME in seen else ""
        raise ambiguous(f"the attribute {name!r} is of type {declared} and has a value of type {min(others)}")


def _require_single_keys(data: Data, start: int, end: int) -> None:
    """Refuse external data that has a key twice, one that programs do not share, or a name cut by a zero."""
    entries = [field for field in fields(data, start, end) if field.number == _EXTERNAL_DATA]
    keys = [_entry_key(data, entry) for entry in entries]
    if PLACE in keys:
        raise ambiguous(f"a tensor's external_data has the key {PLACE!r}, by which argmaxable notes places")
    repeated = twice(keys)
    if repeated is not None:
        raise ambiguous(f"a tensor's external_data has the key {repeated!r} twice")
    strange = sorted(set(keys) - _EXTERNAL_KEYS)
    if strange:
        raise ambiguous(f"a tensor's external_data has the key {strange[0]!r}, which only some programs heed")
    if any(b"\0" in data[each.start : each.end] for entry in entries for each in _values(data, entry)):
        raise ambiguous("a tensor's external_data has a zero byte, at which some programs end a file's name")


def _entry_key(data: Data, entry: Field) -> str:
    keys = [field for field in fields(data, entry.start, entry.end) if field.number == _KEY]
    return _text(data, keys[0]) if keys else ""


def _values(data: Data, entry: Field) -> list[Field]:
    return [field for field in fields(data, entry.start, entry.end) if field.number == _VALUE]


def _text(data: Data, field: Field) -> str:
    return bytes(data[field.start : field.end][:80]).decode(errors="backslashreplace")


def _note(field: Field) -> bytes:
    entry = _delimited(_KEY, PLACE.encode())
    entry += _delimited(_VALUE, f"{field.start} {field.end - field.start}".encode())
    return _delimited(_EXTERNAL_DATA, entry)


def _delimited(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value
