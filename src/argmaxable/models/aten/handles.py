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
    """A list of values; once a program has changed it in a way not followed, what is in it is not known."""

    is_known = True


def handles_in(values: Iterable[Any], depth: int = 4) -> Iterator[Handle]:
    """The handles among values, and in lists of them."""
    for value in values:
        if isinstance(value, Handle):
            yield value
        elif isinstance(value, list | tuple) and depth:
            yield from handles_in(value, depth - 1)


def is_known_list(value: Any) -> bool:
    """Whether a value is a list, and it is known what is in it."""
    return isinstance(value, list | tuple) and not (isinstance(value, Items) and not value.is_known)
