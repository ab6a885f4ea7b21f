"""Which stored tensor a variable is, as TensorFlow's Python loader finds out: by walking the objects of a
SavedModel and those of its checkpoint side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.protobuf import (
    BYTES,
    NUMBER,
    NUMBERS,
    Data,
    Field,
    dictionary,
    inside,
    parts_of,
    signed,
    signed_numbers,
    single,
    text,
)

_OBJECTS = {1: BYTES, 2: BYTES}
_OBJECT = {1: BYTES, 2: BYTES}
_CHILD = {1: NUMBER, 2: BYTES}
_CONCRETE = {2: NUMBERS}
_ATTRIBUTE = {1: BYTES, 3: BYTES}
_VALUE = "VARIABLE_VALUE"

Children = tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class SavedObjects:
    """The children of each object by name, and which objects each function is bound to."""

    children: Children
    bound: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class StoredObjects:
    """The children of each object of a checkpoint by name, and the key of its value, or ""."""

    children: Children
    keys: tuple[str, ...]


def parse_saved(data: Data, field: Field) -> SavedObjects:
    """The SavedObjectGraph in a field; raises LoadError."""
    parts = inside(data, field, _OBJECTS)
    functions = dictionary(data, parts[2], "the function")
    bound = {
        name: tuple(signed_numbers(data, inside(data, each, _CONCRETE)[2], 32))
        for name, each in functions.items()
    }
    return SavedObjects(tuple(_children(data, inside(data, each, _OBJECT)[1]) for each in parts[1]), bound)


def parse_stored(data: bytes) -> StoredObjects:
    """A TrackableObjectGraph; raises LoadError."""
    objects = [inside(data, each, _OBJECT) for each in parts_of(data, 0, len(data), {1: BYTES})[1]]
    return StoredObjects(
        tuple(_children(data, each[1]) for each in objects), tuple(_key(data, each[2]) for each in objects)
    )


def keys_of(saved: SavedObjects, stored: StoredObjects) -> dict[int, str]:
    """The key in the checkpoint of each object of the SavedModel that has one."""
    found: dict[int, str] = {}
    seen, pending = set[tuple[int, int]](), [(0, 0)]
    while pending:
        pair = pending.pop()
        if pair in seen or not (pair[0] < len(saved.children) and pair[1] < len(stored.children)):
            continue
        seen.add(pair)
        key = stored.keys[pair[1]]
        if key and found.setdefault(pair[0], key) != key:
            raise ambiguous(f"a variable is stored as {key[:80]!r} and as {found[pair[0]][:80]!r}")
        theirs = stored.children[pair[1]]
        pending += [(own, theirs[name]) for name, own in saved.children[pair[0]].items() if name in theirs]
    return found


def _children(data: Data, found: list[Field]) -> dict[str, int]:
    children = []
    for field in found:
        parts = inside(data, field, _CHILD)
        number, name = single(parts, 1, "a child's number"), single(parts, 2, "a child's name")
        children.append(
            ("" if name is None else text(data, name), 0 if number is None else signed(data, number, 32))
        )
    repeated = twice(name for name, _ in children)
    if repeated is not None:
        raise ambiguous(f"an object has two children called {repeated[:80]!r}")
    if any(number < 0 for _, number in children):
        raise LoadError("a child of an object has a negative number")
    return dict(children)


def _key(data: Data, found: list[Field]) -> str:
    keys = []
    for field in found:
        parts = inside(data, field, _ATTRIBUTE)
        name, key = single(parts, 1, "an attribute's name"), single(parts, 3, "an attribute's key")
        if name is not None and key is not None and text(data, name) == _VALUE:
            keys.append(text(data, key))
    if len(keys) > 1:
        raise ambiguous("an object of the checkpoint has two values")
    return keys[0] if keys else ""
