"""The objects that a .skops archive describes (schema.json), as plain records: none is ever made.

Each node says how skops would load it: an object with its attributes, a list, a JSON value, an array in a
member of the archive. What else there is stays unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json

SCHEMA = "schema.json"
# Deeper than any pipeline of pipelines.
_DEEPEST = 60


@dataclass(frozen=True)
class ArrayMember:
    """An array that is a member of the archive, without its ending .npy."""

    name: str


@dataclass(frozen=True)
class Described:
    """An object: its class with its module, and its attributes."""

    kind: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Unreadable:
    """Something that is not supported."""

    loader: str


def parse_schema(data: bytes) -> Any:
    """What an archive describes; raises LoadError."""
    root = parse_json(data, SCHEMA)
    return _Schema(root).value(root, 0)


class _Schema:
    """One description, in which an object that was described already is only named by its number."""

    def __init__(self, root: Any) -> None:
        self._arrays: dict[Any, str] = {}
        self._collect(root)

    def _collect(self, root: Any) -> None:
        pending = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                if node.get("__loader__") == "NdArrayNode" and isinstance(node.get("file"), str):
                    number = node.get("__id__")
                    known = self._arrays.setdefault(number if isinstance(number, int) else None, node["file"])
                    if isinstance(number, int) and known != node["file"]:
                        raise ambiguous(f"the object {number} is stored in {known[:80]!r} and elsewhere")
                pending += node.values()
            elif isinstance(node, list):
                pending += node

    def value(self, node: Any, depth: int) -> Any:
        """The record for a node; raises LoadError."""
        if not isinstance(node, dict) or depth > _DEEPEST:
            raise LoadError(f"{SCHEMA} is damaged, or nested more than {_DEEPEST} deep")
        loader, content = node.get("__loader__"), node.get("content")
        if loader == "JsonNode" and isinstance(content, str):
            return parse_json(content, SCHEMA)
        if loader == "NdArrayNode" and node.get("type") == "numpy" and isinstance(node.get("file"), str):
            return ArrayMember(node["file"].removesuffix(".npy"))
        if loader == "CachedNode" and isinstance(node.get("__id__"), int) and node["__id__"] in self._arrays:
            return ArrayMember(self._arrays[node["__id__"]].removesuffix(".npy"))
        if loader in ("ListNode", "TupleNode") and isinstance(content, list):
            return [self.value(each, depth + 1) for each in content]
        if loader == "DictNode" and isinstance(content, dict):
            return {key: self.value(each, depth + 1) for key, each in content.items()}
        if loader == "ObjectNode" and isinstance(content, dict):
            attributes = self.value(content, depth + 1)
            if isinstance(attributes, dict):
                return Described(f"{node.get('__module__')}.{node.get('__class__')}", attributes)
        return Unreadable(str(loader)[:80])
