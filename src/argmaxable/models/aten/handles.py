"""What a program of PyTorch's operations holds: handles of tensors, and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Handle:
    """The tensor (or number) of this name, which may change.

    `group` is shared with all handles that may be views of the same numbers. `member` is where a stored
    tensor's numbers are. `is_tensor` is False where it may be something else, such as None.
    """

    name: str
    group: list[Handle]
    member: str = ""
    is_tensor: bool = True


class Items(list[Any]):
    """A list of values; once a program has changed it in a way not followed, what is in it is not known.

    `owner` says which attribute it is, by the id of the record and the name.
    """

    is_known = True
    owner: tuple[int, str] | None = None


def handles_in(values: Iterable[Any]) -> Iterator[Handle]:
    """The handles among values, and in lists and dictionaries of them, each of which is entered once."""
    pending, entered = list(values)[::-1], set[int]()
    while pending:
        value = pending.pop()
        if isinstance(value, Handle):
            yield value
        elif isinstance(value, list | tuple | dict) and id(value) not in entered:
            entered.add(id(value))
            pending += reversed(list(value.values() if isinstance(value, dict) else value))


def is_known_list(value: Any) -> bool:
    """Whether a value is a list, and it is known what is in it."""
    return isinstance(value, list | tuple) and not (isinstance(value, Items) and not value.is_known)
