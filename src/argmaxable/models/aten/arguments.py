"""The arguments of one call of an operation, bound to the names that its schema gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argmaxable.models.aten.handles import Handle, is_known_list

if TYPE_CHECKING:
    from argmaxable.models.aten.tape import Tape

# PyTorch's numbers of types; those of torch.export are translated before.
_TYPES = {5: 10, 6: 1, 7: 11, 15: 16}


class NoCounterpart(Exception):
    """An operation is not translated; never leaves this folder."""


@dataclass(frozen=True)
class CallArguments:
    """What an operation is given, by place and by name. All methods raise NoCounterpart."""

    op: str
    positional: Sequence[Any]
    named: Mapping[str, Any]

    def bound(self, *names: str, **defaults: Any) -> tuple[Any, ...]:
        """The arguments in the order of the schema; those not given are their default, or None."""
        order = (*names, *defaults)
        if len(self.positional) > len(order) or not self.named.keys() <= set(order[len(self.positional) :]):
            raise NoCounterpart("arguments")
        given = dict(zip(order, self.positional, strict=False)) | dict(self.named)
        return tuple(given.get(name, defaults.get(name)) for name in order)

    def tensor(self, value: Any) -> str:
        """The name of a tensor."""
        if not isinstance(value, Handle):
            raise NoCounterpart("tensor")
        return value.name

    def tensors(self, value: Any) -> list[str]:
        """The names in a list of tensors."""
        if not is_known_list(value):
            raise NoCounterpart("tensors")
        return [self.tensor(each) for each in value]

    def tensor_or_number(self, tape: Tape, value: Any) -> str:
        """The name of a tensor, or of a number that stands in the program."""
        return value.name if isinstance(value, Handle) else tape.number(self.number(value))

    def number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 2**63:
            raise NoCounterpart("number")
        return value

    def integer(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise NoCounterpart("integer")
        return value

    def integers(self, value: Any) -> tuple[int, ...]:
        """A list of whole numbers; one alone is a list too."""
        values = value if is_known_list(value) else (value,)
        return tuple(map(self.integer, values))

    def sizes(self, value: Any) -> list[int | Handle]:
        """A list of lengths, of which some may be worked out by the program."""
        if not is_known_list(value):
            raise NoCounterpart("sizes")
        return [each if isinstance(each, Handle) else self.integer(each) for each in value]

    def flag(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise NoCounterpart("flag")
        return value

    def cast_type(self, value: Any) -> int | None:
        """ONNX's number of a type of floats; None of another type."""
        return _TYPES.get(self.integer(value))
