"""What changed from one run to another, as the rows of a page: filtered as its address says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.comparison import Comparison, Pair
from argmaxable.report.page.columns import shown_label
from argmaxable.serve.rows import ClassRow, class_rows

Kind = tuple[Status, Status]

_LONGEST_SEARCH = 200


@dataclass(frozen=True)
class ChangeChoice:
    """Which changes are shown: those of one kind, with a text in their label."""

    kind: Kind | None = None
    search: str = ""

    @staticmethod
    def of(query: Mapping[str, str]) -> ChangeChoice:
        """The choice that an address makes; what makes no sense in it is left out."""
        kinds = {name_of(kind): kind for kind in KINDS}
        return ChangeChoice(kinds.get(query.get("kind", "")), query.get("search", "")[:_LONGEST_SEARCH])

    def takes(self, pair: Pair) -> bool:
        is_of_kind = self.kind is None or self.kind == (pair.before.status, pair.after.status)
        text = self.search.strip().lower()
        numbers = {str(pair.before.class_id), str(pair.after.class_id)}
        return is_of_kind and (not text or text in numbers or text in shown_label(pair.before.label).lower())


KINDS: tuple[Kind, ...] = tuple((one, other) for one in Status for other in Status if one is not other)


def name_of(kind: Kind) -> str:
    """A kind of change in an address."""
    return f"{kind[0].value}-{kind[1].value}"


def address_of_kind(kind: Kind, before: int, after: int) -> str:
    """The address of the changes of that kind."""
    return "/compare?" + urlencode({"before": before, "after": after, "kind": name_of(kind)})


@dataclass(frozen=True)
class ChangeRow:
    """The same class in both runs, and by how much its margin or lead moved, where that is known."""

    before: ClassRow
    after: ClassRow
    shift: str = ""


def change_rows(pairs: Sequence[Pair]) -> list[ChangeRow]:
    return [ChangeRow(_row(pair.before), _row(pair.after)) for pair in pairs]


def moved_rows(comparison: Comparison) -> list[ChangeRow]:
    """The margins that moved most for certain."""
    return [ChangeRow(_row(p.before), _row(p.after), _signed(p.certain_shift)) for p in comparison.moved]


def shifted_rows(comparison: Comparison) -> list[ChangeRow]:
    """The leads in classes' own directions that moved most."""
    return [ChangeRow(_row(p.before), _row(p.after), _signed(p.own_shift)) for p in comparison.shifted]


def _row(verdict: Verdict) -> ClassRow:
    (row,) = class_rows([verdict], {})
    return row


def _signed(shift: float) -> str:
    return f"{'−' if shift < 0 else '+'}{abs(shift):.3g}"


def headline_of(comparison: Comparison) -> str:
    """The answer in a line."""
    if not comparison.matched:
        return "The runs have no class in common"
    gone = comparison.counts.get((Status.ARGMAXABLE, Status.UNARGMAXABLE), 0)
    back = comparison.counts.get((Status.UNARGMAXABLE, Status.ARGMAXABLE), 0)
    other = len(comparison.changed) - gone - back
    parts = [
        f"{count:,} {'class' if count == 1 else 'classes'} {what}"
        for count, what in (
            (gone, "can no longer be predicted"),
            (back, "can be predicted again"),
            (other, "decided in one run only"),
        )
        if count
    ]
    return ", ".join(parts) or f"All {comparison.matched:,} classes have the same verdict"
