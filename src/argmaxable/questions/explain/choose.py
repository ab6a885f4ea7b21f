"""Classes by number or label, as a user names them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.select import classes_named

if TYPE_CHECKING:
    from argmaxable.core.head import Head

# A label that looks like a number is told from a class's number by this.
LABEL = "label:"


def class_ids(head: Head, named: Sequence[int | str], *, one_each: bool = False) -> list[int]:
    """The classes named, in that order: by number, by label, or as label:TEXT where the label is a number.

    Raises InputError for what names no class, and with `one_each` for a label of several classes.
    """
    chosen: list[int] = []
    for name in named:
        found = [_numbered(head, name)] if _is_number(name) else _labelled(head, str(name))
        if one_each and len(found) > 1:
            raise InputError(
                f"{len(found)} classes have the label {name!r}: {', '.join(map(str, found[:10]))}. "
                "Pass one of these numbers."
            )
        chosen += [one for one in found if one not in chosen]
    return chosen


def _is_number(name: int | str) -> bool:
    return not isinstance(name, str) or name.lstrip("-").isdecimal()


def _numbered(head: Head, name: int | str) -> int:
    number = int(name) if len(str(name)) < 19 else head.classes
    if not 0 <= number < head.classes:
        raise InputError(
            f"class {str(name)[:20]} does not exist: the head has classes 0 to {head.classes - 1}. "
            f"For a class whose label is that number write {LABEL}{str(name)[:20]}."
        )
    return number


def _labelled(head: Head, name: str) -> list[int]:
    if head.labels is None:
        raise InputError(
            f"no class is called {name!r}: the head has no labels. Pass a number, or --labels FILE."
        )
    label = name.removeprefix(LABEL)
    try:
        return classes_named(head.labels, [label])
    except InputError:
        near = difflib.get_close_matches(label, dict.fromkeys(head.labels), n=5, cutoff=0.5)
        hint = f"Near to it: {', '.join(map(visible, near))}." if near else "Check its spelling."
        raise InputError(f"no class has the label {label!r} ({head.classes:,} classes). {hint}") from None
