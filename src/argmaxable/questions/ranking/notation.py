"""Orders as people write them: "cat > dog > the", by label or by class number.

A part is a label, as it is or as it is printed; a number is a class. What holds ">" or would be misread
stands in double quotes (doubled inside), and "#" marks what is no label: #7 is class 7. The last part may be
"rest", all classes that the order does not name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.orders import Order, chain, top
from argmaxable.core.select import classes_named

if TYPE_CHECKING:
    from argmaxable.core.head import Head

_REST = "rest"
# A part of an order: quoted, with nothing but spaces around it, or plain up to the next ">".
_PART = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^>"\s][^>]*?)|)\s*(?P<end>>|$)', re.DOTALL)
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Chain:
    """Classes in descending order; with `has_rest` all other classes come below the last."""

    classes: tuple[int, ...]
    has_rest: bool

    def order(self, classes: int) -> Order:
        """Its pairs, for a head with so many classes."""
        return top(self.classes, of=classes) if self.has_rest else chain(self.classes)

    def text(self, head: Head) -> str:
        """The chain in labels."""
        names = [visible(head.label(number)) for number in self.classes]
        return " > ".join([*names, "every other class"] if self.has_rest else names)


def parse_chain(text: str, head: Head) -> Chain:
    """The chain that a text means; raises InputError where it is not clear."""
    parts = _parts(text)
    has_rest = parts[-1] == (f"#{_REST}", False)
    if parts[-1] == (_REST, False):
        named = [] if head.labels is None else _named(head.labels, _REST)
        if named:
            raise InputError(
                f'{text!r}: class {named[0]} has the label {visible(head.label(named[0]))}. Write "rest" in '
                "quotes for it, or #rest for all other classes."
            )
        has_rest = True
    named_parts = parts[:-1] if has_rest else parts
    classes = tuple(_class(part, quoted, text, head) for part, quoted in named_parts)
    if len(classes) + has_rest < 2:
        raise InputError(f'{text!r} compares nothing. Write an order like "cat > dog > rest".')
    return Chain(classes, has_rest)


def join(chains: Sequence[Chain], classes: int) -> Order:
    """The order in which all chains hold."""
    return Order(np.vstack([each.order(classes).pairs for each in chains]))


def _parts(text: str) -> list[tuple[str, bool]]:
    """The parts between ">", and which of them were quoted."""
    parts, at, end = [], 0, ">"
    while end == ">":
        match = _PART.match(text, at)
        if match is None:
            raise InputError(f"{text!r}: a quote is not closed, or does not stand alone between two >.")
        quoted, plain, end = match["quoted"], match["plain"], match["end"]
        if quoted is None and plain is None:
            raise InputError(f"{text!r}: a class is missing beside a >. Quote labels that hold one.")
        parts.append((plain, False) if quoted is None else (quoted.replace('""', '"'), True))
        at = match.end()
    return parts


def _class(part: str, quoted: bool, text: str, head: Head) -> int:
    """The class that one part names."""
    if not quoted and re.fullmatch(r"#[0-9]+", part):
        return _numbered(part[1:], text, head)
    is_number = not quoted and re.fullmatch(r"[0-9]+", part) is not None
    named = [] if head.labels is None else _named(head.labels, part)
    if is_number and set(named) <= {int(part[:10])}:
        return _numbered(part, text, head)
    if is_number:
        raise InputError(
            f"{text!r}: {part} is a class number, and the label of class {named[0]}. Write #{part} for the "
            f'number or "{part}" for the label.'
        )
    if len(named) == 1:
        return named[0]
    if head.labels is None:
        raise InputError(f"{text!r}: the head has no labels. Name classes by number, or pass --labels FILE.")
    if not named:
        raise InputError(f"{text!r}: no class has the label {part!r} ({len(head.labels):,} labels).")
    shown = ", ".join(f"#{number}" for number in named[:_MOST_SHOWN])
    raise InputError(f"{text!r}: {len(named)} classes have the label {part!r}. Write one of {shown}.")


def _numbered(digits: str, text: str, head: Head) -> int:
    if len(digits) > 10 or int(digits) >= head.classes:
        raise InputError(
            f"{text!r}: class {digits[:20]} does not exist: the head has classes 0 to {head.classes - 1}."
        )
    return int(digits)


def _named(labels: Sequence[str], part: str) -> list[int]:
    try:
        return classes_named(labels, [part])
    except InputError:
        return []
