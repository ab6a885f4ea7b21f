"""A comparison of two runs as text for people, as one JSON object, and as a grid of the changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from argmaxable.core.labels import visible
from argmaxable.report.comparison import Comparison, Matching, Pair
from argmaxable.report.grid import Column, Grid
from argmaxable.report.rows import finite, known_class
from argmaxable.store import RunSummary, State

if TYPE_CHECKING:
    from argmaxable.core.verdict import Status, Verdict

# Classes listed for each kind of change; --json and --format have all of them.
_MOST_LISTED = 40


def contradictions(before: RunSummary, after: RunSummary, comparison: Comparison) -> tuple[Pair, ...]:
    """Classes on which the runs proved opposites of one and the same statement: a bug of ours.

    Over one domain of one head that can't be; what others published proves nothing.
    """
    is_one_question = before.facts.sha256 == after.facts.sha256 and before.domain == after.domain
    is_proven = State.IMPORTED not in (before.state, after.state)
    return comparison.opposites if is_one_question and is_proven else ()


def describe(before: RunSummary, after: RunSummary, comparison: Comparison) -> list[str]:
    """What was compared, the answer, the classes it is about, and the margins that moved."""
    lines = [_run("before", before), _run("after", after), "", *_matched(comparison)]
    # Not known of every published model.
    if before.facts.sha256 and after.facts.sha256 and before.facts.sha256 != after.facts.sha256:
        lines.append("The runs are about different weights.")
    lines.append("")
    changes = len(comparison.changed)
    if not comparison.matched:
        return [*lines, "The runs have no class in common."]
    if changes:
        verb = "has" if changes == 1 else "have"
        lines.append(f"{changes:,} of {comparison.matched:,} classes {verb} a different verdict:")
        lines += _changes(comparison)
    else:
        lines.append(f"All {comparison.matched:,} classes have the same verdict in both.")
    if comparison.moved:
        lines += ["", "Largest proven changes of the margin, by at least:"]
        lines += [_movement(pair.certain_shift, pair, _bounds) for pair in comparison.moved]
    if comparison.shifted:
        lines += ["", "Largest changes of the lead in the class's own direction, w - mean:"]
        lines += [_movement(pair.own_shift, pair, _lead) for pair in comparison.shifted]
    return lines


def _run(which: str, run: RunSummary) -> str:
    # The size of features is not known of every published model.
    size = f"{run.facts.classes:,}" + (f" × {run.facts.features:,}" if run.facts.features else " classes")
    return f"{which:<7} run {run.run_id}  {visible(run.facts.name)}  {size}, {run.domain}, {run.state.value}"


def _matched(comparison: Comparison) -> Iterator[str]:
    yield (
        f"{comparison.matched:,} classes matched by {comparison.matching.value}"
        + "".join(
            f"; {count:,} {what}"
            for count, what in (
                (comparison.only_before, "only in the first run"),
                (comparison.only_after, "only in the second"),
                (comparison.ambiguous, "with a label that several classes share"),
            )
            if count
        )
        + "."
    )


def _changes(comparison: Comparison) -> Iterator[str]:
    for kind in sorted({_kind(pair) for pair in comparison.changed}):
        pairs = [pair for pair in comparison.changed if _kind(pair) == kind]
        shown = "  ".join(visible(pair.before.label) for pair in pairs[:_MOST_LISTED])
        rest = f"  … and {len(pairs) - _MOST_LISTED:,} more" if len(pairs) > _MOST_LISTED else ""
        tied = sum(pair.after.is_tied for pair in pairs)
        of_these = f", {tied:,} of them tied with an identical class" if tied else ""
        yield f"  {kind[0].value} → {kind[1].value}: {len(pairs):,}{of_these}"
        yield f"    {shown}{rest}"


def _kind(pair: Pair) -> tuple[Status, Status]:
    return pair.before.status, pair.after.status


def _movement(shift: float, pair: Pair, shown: Callable[[Verdict], str]) -> str:
    return f"  {shift:+10.4g}  ({shown(pair.before)} → {shown(pair.after)})  {visible(pair.before.label)}"


def _bounds(verdict: Verdict) -> str:
    return f"[{verdict.lower:.4g}, {verdict.upper:.4g}]"


def _lead(verdict: Verdict) -> str:
    return f"{verdict.lower:.4g}"


def as_record(before: RunSummary, after: RunSummary, comparison: Comparison) -> dict[str, Any]:
    """The object that `compare --json` prints."""
    return {
        "before": _run_record(before),
        "after": _run_record(after),
        "matched_by": "label" if comparison.matching is Matching.LABEL else "class",
        "matched": comparison.matched,
        "only_before": comparison.only_before,
        "only_after": comparison.only_after,
        "ambiguous": comparison.ambiguous,
        "statuses": [
            {"before": kind[0].value, "after": kind[1].value, "classes": count}
            for kind, count in sorted(comparison.counts.items())
        ],
        "changed": [_pair_record(pair) for pair in comparison.changed],
        "moved": [_pair_record(pair) | {"by_at_least": pair.certain_shift} for pair in comparison.moved],
        "own_direction": [_pair_record(pair) | {"by": pair.own_shift} for pair in comparison.shifted],
    }


def _run_record(run: RunSummary) -> dict[str, Any]:
    return {
        "run": run.run_id,
        "model": run.facts.name,
        "sha256": run.facts.sha256,
        "domain": str(run.domain),
        "state": run.state.value,
    }


def _pair_record(pair: Pair) -> dict[str, Any]:
    return {
        "label": pair.before.label,
        "before": _side_record(pair.before),
        "after": _side_record(pair.after),
    }


def _side_record(verdict: Verdict) -> dict[str, Any]:
    return {
        "class": known_class(verdict),
        "status": verdict.status.value,
        "lower": finite(verdict.lower),
        "upper": finite(verdict.upper),
    }


def changes_grid(pairs: Sequence[Pair]) -> Grid:
    """A row for each pair of verdicts."""
    columns = (
        Column("label", "label"),
        Column("class before", "class_before", is_number=True),
        Column("class after", "class_after", is_number=True),
        Column("before", "before"),
        Column("after", "after"),
        Column("lower before", "lower_before", is_number=True),
        Column("upper before", "upper_before", is_number=True),
        Column("lower after", "lower_after", is_number=True),
        Column("upper after", "upper_after", is_number=True),
    )
    return Grid(
        columns,
        tuple(
            (
                pair.before.label,
                known_class(pair.before),
                known_class(pair.after),
                pair.before.status.value,
                pair.after.status.value,
                finite(pair.before.lower),
                finite(pair.before.upper),
                finite(pair.after.lower),
                finite(pair.after.upper),
            )
            for pair in pairs
        ),
    )
