"""All classes of a report as compact columns: the JSON from which a page's table is drawn.

A vocabulary of 50,000 takes about 1 MB. What most classes lack (steps, evidence) is kept sparse; bounds
have three digits, rounded to the weak side so that they stay true.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import groupby
from typing import Any

import numpy as np

from argmaxable.core.labels import visible, visible_text
from argmaxable.core.verdict import Certificate, Status, Verdict
from argmaxable.report.page.groups import LabelKind, kinds_of, scripts
from argmaxable.report.page.wording import STATUSES
from argmaxable.report.rows import known_class

_DOWN, _UP = Context(prec=3, rounding=ROUND_FLOOR), Context(prec=3, rounding=ROUND_CEILING)
# Blockers listed for a proof: 12, or fewer where proofs are many, 10 bytes each.
_MOST_BLOCKERS, _FEWEST_BLOCKERS, _BLOCKERS_IN_ALL = 12, 3, 20_000
_MOST_TIED = 12
# A label can be a whole text.
_LONGEST_LABEL = 160
# A row that names a choice does so by its place among these letters.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def columns(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The columns; `detailed` has the places of the classes with more to tell: unargmaxable and undecided."""
    numbers = [known_class(verdict) for verdict in verdicts]
    more = [place for place, verdict in enumerate(verdicts) if verdict.status is not Status.ARGMAXABLE]
    kinds, certificates, ties = kinds_of(verdicts), _Shelf(), _Shelf()
    evidence = [
        (certificates.place(verdicts[place].certificate), ties.place(verdicts[place].tie_group or None))
        for place in more
    ]
    stepped = [place for place, verdict in enumerate(verdicts) if verdict.steps]
    return {
        "classes": None if numbers == list(range(len(numbers))) else numbers,
        "labels": [shown_label(verdict.label) for verdict in verdicts],
        "status": _coded([STATUSES[verdict.status] for verdict in verdicts], list(STATUSES.values())),
        "method": _coded([verdict.method.value for verdict in verdicts]),
        "character": LabelKind.CHARACTER.value,
        "kind": _coded([kind.value for kind in kinds]),
        "script": _coded(scripts(verdicts, kinds)),
        "lower": [short_lower(verdict.lower) for verdict in verdicts],
        "steps": {"at": stepped, "value": [verdicts[place].steps for place in stepped]},
        "detailed": {
            "at": more,
            "upper": [short_upper(verdicts[place].upper) for place in more],
            "ahead": [verdicts[place].ahead for place in more],
            "name": [
                character_name(verdicts[place].label) if kinds[place] is LabelKind.CHARACTER else ""
                for place in more
            ],
            "proof": [proof for proof, _ in evidence],
            "tie": [tie for _, tie in evidence],
            "reason": [visible_text(verdicts[place].reason) for place in more],
        },
        "proofs": _proofs(certificates.items),
        "ties": [[len(group), *group[:_MOST_TIED]] for group in ties.items],
    }


class _Shelf:
    """Things that classes share, each once; a place of -1 stands for nothing."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[int, int] = {}

    def place(self, item: Any) -> int:
        if item is None:
            return -1
        if id(item) not in self._places:
            self._places[id(item)] = len(self.items)
            self.items.append(item)
        return self._places[id(item)]


def _coded(values: Sequence[str], known: Sequence[str] = ()) -> dict[str, Any]:
    """Choices as letters, each with the length of its run: "AAAB" is A3B. Choices beyond the letters become
    "other"."""
    names = list(dict.fromkeys([*known, *values]))
    if len(names) > len(_LETTERS):
        names = [*names[: len(_LETTERS) - 1], "other"]
    letters = dict(zip(names, _LETTERS, strict=False))
    rest = _LETTERS[len(names) - 1]
    runs = ((letter, len(list(run))) for letter, run in groupby(letters.get(value, rest) for value in values))
    return {
        "names": names,
        "of": "".join(letter if length == 1 else f"{letter}{length}" for letter, length in runs),
    }


def short_lower(bound: float) -> float | int | None:
    """A lower bound with three digits, rounded down so that it stays true; None where it says nothing."""
    return _short(bound, _DOWN)


def short_upper(bound: float) -> float | int | None:
    """An upper bound with three digits, rounded up so that it stays true; None where it says nothing."""
    return _short(bound, _UP)


def _short(number: float, context: Context) -> float | int | None:
    if not math.isfinite(number):
        return None
    rounded = float(context.create_decimal_from_float(number))
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def blockers(certificate: Certificate, most: int) -> list[tuple[int, float]]:
    """The heaviest classes of a certificate and their shares of its weight."""
    weights = certificate.weights
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(weights.sum())
    if not (0 < total < math.inf and (weights >= 0).all()):  # of a bundle, which nobody has checked
        return []
    order = np.argsort(-weights, kind="stable")[:most]
    return [(int(certificate.classes[k]), float(weights[k]) / total) for k in order]


def _proofs(certificates: Sequence[Certificate]) -> list[list[Any]]:
    """Of each certificate: how many classes it has, the heaviest of them, and their weights in 1/1000."""
    most = max(_FEWEST_BLOCKERS, min(_MOST_BLOCKERS, _BLOCKERS_IN_ALL // max(len(certificates), 1)))
    return [
        [
            int(np.count_nonzero(certificate.weights)),
            [class_id for class_id, _ in shown],
            [round(1000 * share) for _, share in shown],
        ]
        for certificate, shown in ((each, blockers(each, most)) for each in certificates)
    ]


def character_name(label: str) -> str:
    """Code point and Unicode name of a label that is one character, "" of any other."""
    if len(label) != 1:
        return ""
    name = unicodedata.name(label, "")
    return f"U+{ord(label):04X} {name}".rstrip()


def labels_by_class(verdicts: Iterable[Verdict]) -> dict[int, str]:
    """Labels as printed, to name the classes that others refer to."""
    return {verdict.class_id: shown_label(verdict.label) for verdict in verdicts}


def shown_label(label: str) -> str:
    """The label as printed, cut short where it would fill the page."""
    return visible(label if len(label) <= _LONGEST_LABEL else label[:_LONGEST_LABEL] + "…")
