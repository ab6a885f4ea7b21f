"""Lengths of axes, of which some are not known, and where one axis is after a change of shape."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Length:
    """A number times lengths that are not known, each of which has a name: the same name, the same length."""

    number: int
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "?" if self.unknown else str(self.number)

    def __mul__(self, other: Length) -> Length:
        return Length(self.number * other.number, tuple(sorted(self.unknown + other.unknown)))

    def over(self, other: Length) -> Length | None:
        """The quotient, or None where it is not certain to be whole."""
        left = Counter(self.unknown)
        left.subtract(other.unknown)
        if not other.number or self.number % other.number or min(left.values(), default=0) < 0:
            return None
        return Length(self.number // other.number, tuple(sorted(left.elements())))


ONE = Length(1)
Lengths = tuple[Length, ...]
# A shape to be taken on, in which 0 copies a length and −1 takes up the rest.
Target = tuple[int | Length, ...]


def size(lengths: Iterable[Length]) -> Length:
    """The product of lengths."""
    return math.prod(lengths, start=ONE)


def unknown(tensor: str, axis: int) -> Length:
    """The length of an axis that is known to equal no other."""
    return Length(1, (f"{tensor}\0{axis}",))


def declared_lengths(tensor: str, shape: tuple[int | str, ...]) -> Lengths:
    """The lengths of a tensor's axes as declared: numbers, names, and −1 where there is neither."""

    def length(axis: int, declared: int | str) -> Length:
        if isinstance(declared, str):
            return Length(1, (declared,))
        return Length(declared) if declared >= 0 else unknown(tensor, axis)

    return tuple(length(axis, declared) for axis, declared in enumerate(shape))


@dataclass(frozen=True)
class ClassPlace:
    """Where the classes are in a tensor: how many, and the lengths of the axes before and after theirs.

    `before` is None where even the number of axes is not known.
    """

    classes: int
    before: Lengths | None
    after: Lengths = ()

    @property
    def axis(self) -> int:
        """The axis of the classes, counted from the end."""
        return -1 - len(self.after)

    @property
    def lengths(self) -> Lengths | None:
        return None if self.before is None else (*self.before, Length(self.classes), *self.after)

    @property
    def rank(self) -> int | None:
        return None if self.before is None else len(self.before) + 1 + len(self.after)

    def moved(self, lengths: Lengths, *, is_whole: bool = True) -> ClassPlace | None:
        """Where the classes are in a tensor with other axes and the same entries in the same order.

        None where they are cut, or joined with something else, or that can't be told. Unless the lengths are
        the whole shape, there may be more axes before them.
        """
        for axis in reversed(range(len(lengths))):
            after = lengths[axis + 1 :]
            if lengths[axis] == Length(self.classes) and size(after) == size(self.after):
                return ClassPlace(self.classes, lengths[:axis] if is_whole else None, after)
        return None

    def reshaped(self, tensor: str, target: Target, *, is_whole: bool = True) -> ClassPlace | None:
        """The same for a tensor that takes on a target shape."""
        known = self.lengths if is_whole else None
        given = [
            each if isinstance(each, Length) else Length(each) if each > 0 else unknown(tensor, axis)
            for axis, each in enumerate(target)
        ]
        for axis in (axis for axis, each in enumerate(target) if each == 0 and known is not None):
            given[axis] = known[axis] if known is not None and axis < len(known) else given[axis]
        if known is not None and target.count(-1) == 1:
            free = target.index(-1)
            rest = size(known).over(size(given[:free] + given[free + 1 :]))
            given[free] = given[free] if rest is None else rest
        return self.moved(tuple(given), is_whole=is_whole)
