"""What a format's operations are translated from and into: a node of ONNX's, or none at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from argmaxable.models.graph.nodes import Attribute


class NotTranslated(Exception):
    """An operation is not translated; never leaves the folder of its format."""


def from_end(axis: int, rank: int | None) -> int:
    """The axis counted from the end (the last is −1). `rank` is the number of axes, None if unknown."""
    if axis < 0:
        return axis
    if rank is None or axis >= rank:
        raise NotTranslated("axis")
    return axis - rank


@dataclass(frozen=True)
class Given:
    """What an operation is given: the names of its inputs, their shapes (None if not known), and the values
    of short lists of numbers among them. `are_stored` says which inputs are constants, perhaps cast.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    numbers: tuple[tuple[float, ...] | None, ...]
    are_stored: tuple[bool, ...]

    def shape(self, place: int = 0) -> tuple[int, ...]:
        found = self.shapes[place] if place < len(self.shapes) else None
        if found is None:
            raise NotTranslated("shape")
        return found

    def integers(self, place: int) -> tuple[int, ...]:
        values = self.numbers[place] if place < len(self.numbers) else None
        if values is None or any(value != int(value) for value in values):
            raise NotTranslated("integers")
        return tuple(map(int, values))

    def from_end(self, axis: int) -> int:
        """An axis of the first input, counted from the end."""
        rank = len(self.shape())
        if not -rank <= axis < rank:
            raise NotTranslated("axis")
        return axis if axis < 0 else axis - rank


@dataclass(frozen=True)
class Translated:
    """A node of ONNX's, without its outputs."""

    op: str
    names: tuple[str, ...]
    attributes: dict[str, Attribute] = field(default_factory=dict)
