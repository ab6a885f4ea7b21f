"""What a TorchScript program handles beside tensors, and the few operations on it that decide which way the
program takes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from argmaxable.models.aten.handles import Handle, Items

# Says that the result is unknown.
NOT_PLAIN: Any = object()
_LARGEST = 2**63

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    **{"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge},
    **{"add": operator.add, "sub": operator.sub, "mul": operator.mul},
}
_EQUAL: dict[str, Callable[[Any, Any], Any]] = {"eq": operator.eq, "ne": operator.ne}


class Raised(Exception):
    """The program raises an exception here."""


class Function:
    """A function or class of the archive, by its qualified name."""

    def __init__(self, name: str) -> None:
        self.name = name


class Returned:
    """What a block of statements returns."""

    def __init__(self, value: Any) -> None:
        self.value = value


def computed(name: str, values: Sequence[Any]) -> Any:
    """What an operation gives for these values; NOT_PLAIN where that is not known."""
    if name == "len" and len(values) == 1:
        return _length(values[0])
    if name in ("__is__", "__isnot__") and len(values) == 2:
        same = _is_same(*values)
        return same if same is NOT_PLAIN else same == (name == "__is__")
    if name in ("__not__", "bool") and len(values) == 1 and isinstance(values[0], bool):
        return values[0] == (name == "bool")
    if name in _EQUAL and len(values) == 2 and all(isinstance(each, str) for each in values):
        return _EQUAL[name](*values)
    function = _COMPARED.get(name) or _EQUAL.get(name)
    if function is None or len(values) != 2 or not all(isinstance(each, int | float) for each in values):
        return NOT_PLAIN
    result = function(*values)
    return result if isinstance(result, bool | float) or abs(result) < _LARGEST else NOT_PLAIN


def _length(value: Any) -> Any:
    is_known = isinstance(value, tuple | dict) or (isinstance(value, Items) and value.is_known)
    return len(value) if is_known else NOT_PLAIN


def _is_same(first: Any, second: Any) -> Any:
    """Whether both are None, or just one of them."""
    if first is not None and second is not None:
        return NOT_PLAIN
    other = second if first is None else first
    return NOT_PLAIN if isinstance(other, Handle) and not other.is_tensor else other is None


def dotted_name(node: ast.expr) -> str:
    """The text of a.b.c; empty where it is something else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
