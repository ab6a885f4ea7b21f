"""What `teach` did, in lines for people, as a record for machines and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.labels import visible
from argmaxable.report.answer import counted
from argmaxable.report.page.teaching import ReadingRow, ShownReading, TeachingPage

if TYPE_CHECKING:
    from argmaxable.core.examples import Examples
    from argmaxable.core.rate import Rate
    from argmaxable.edit.teach.measure import HeldOut, LabelReading, Substituted
    from argmaxable.edit.teach.plan import Taught
    from argmaxable.workflow.example_set import ExampleSet

_SHOWN = 12
_SHOWN_INPUTS = 60


def lines_of(taught: Taught) -> list[str]:
    """What was done, what is proven and what was measured."""
    return [
        f"{topic:<12}{sentence}" if number == 0 else f"{'':<12}{sentence}"
        for topic, sentences in _topics(taught)
        for number, sentence in enumerate(sentences)
    ]


def _topics(taught: Taught) -> Iterator[tuple[str, list[str]]]:
    labels = [each.label for each in taught.classes]
    added = sum(each.was is None for each in taught.classes)
    yield "taught", [f"{counted(len(labels))}{f', {added:,} of them new' if added else ''}: {listed(labels)}"]
    yield "proven", _proven(taught)
    if taught.held_out is not None:
        yield "measured", list(_measured(taught.held_out))
    if taught.left_out:
        yield "left out", [f"{visible(each.label)}: {each.reason}" for each in taught.left_out[:_SHOWN]]


def _proven(taught: Taught) -> list[str]:
    """What holds for every input of the domain."""
    witnessed = sum(each.witness is not None for each in taught.classes)
    others = len(taught.classes) - witnessed
    by_example = f"{counted(witnessed)} can be predicted, at the features of a real example"
    by_search = f"{counted(others)} can be predicted, at an input that verify found, not an example"
    never = len(taught.result_before.unargmaxable), len(taught.result.unargmaxable)
    again = f"; {counted(taught.refitted, 'row', 'rows')} fitted again for that" if taught.refitted else ""
    return [
        *([by_example] if witnessed else []),
        *([by_search] if others else []),
        f"every other class that could be predicted still can{again}",
        f"{never[0]:,} classes could never be predicted, now {never[1]:,}"
        + (f" ({len(taught.result.undecided):,} undecided)" if taught.result.undecided else ""),
    ]


def _measured(held_out: HeldOut) -> Iterator[str]:
    """What was counted on inputs that the fit never saw."""
    yield f"{held_out.read_after} held-out examples are read (before: {held_out.read_before.count:,})"
    changed = held_out.changed
    yield f"{changed} held-out ordinary inputs read differently{_bounded(changed)}"
    if held_out.taken.total:
        yield f"{held_out.taken} other examples are no longer right{_bounded(held_out.taken)}"
    for pairs, where in ((held_out.substituted, "ordinary inputs"), (held_out.taken_by, "other examples")):
        if pairs:
            yield f"taken in {where}: {_pairs(pairs)}"


def _paragraph(lines: Sequence[str]) -> str:
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in lines)


def _bounded(rate: Rate) -> str:
    return f": at most {100 * rate.bound:.3g} % of all (95 % bound)" if rate.total else ""


def _pairs(pairs: Sequence[Substituted]) -> str:
    shown = ", ".join(
        f"{visible(each.label)} → {visible(each.taught)} ({each.count:,})" for each in pairs[:_SHOWN]
    )
    return shown + (f" and {len(pairs) - _SHOWN:,} pairs more" if len(pairs) > _SHOWN else "")


def listed(labels: Sequence[str]) -> str:
    """The first labels, and how many more there are."""
    if not labels:
        return "none"
    more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    return ", ".join(visible(label) for label in labels[:_SHOWN]) + more


def record_of(taught: Taught) -> dict[str, Any]:
    """The same for machines; `proven` and `measured` are told apart."""
    return {
        "classes": [
            {
                "class": each.class_id,
                "label": each.label,
                "before": None if each.was is None else each.was.value,
                "examples": each.fit.positives,
                "negatives": each.fit.negatives,
                "steps": each.fit.steps,
                "witness": None if each.witness is None else vars(each.witness),
            }
            for each in taught.classes
        ],
        "left_out": [vars(each) for each in taught.left_out],
        "look_alikes": [vars(each) for each in taught.look_alikes],
        "proven": {
            "unargmaxable_before": len(taught.result_before.unargmaxable),
            "argmaxable": len(taught.result.argmaxable),
            "unargmaxable": len(taught.result.unargmaxable),
            "undecided": len(taught.result.undecided),
            "refitted": taught.refitted,
        },
        "measured": None if taught.held_out is None else _measured_record(taught.held_out),
        "seconds": taught.phases,
    }


def _measured_record(held_out: HeldOut) -> dict[str, Any]:
    return {
        "read_before": rate_record(held_out.read_before),
        "read_after": rate_record(held_out.read_after),
        "ordinary_changed": rate_record(held_out.changed),
        "others_taken": rate_record(held_out.taken),
        "readings": [vars(each) for each in held_out.readings],
        "substituted": [vars(each) for each in held_out.substituted],
        "taken_by": [vars(each) for each in held_out.taken_by],
    }


def rate_record(rate: Rate) -> dict[str, Any]:
    """A count, its sample, and the bound where there is one."""
    return {"count": rate.count, "total": rate.total, "bound": rate.bound if rate.total else None}


def page_of(taught: Taught, examples: ExampleSet, model: str) -> TeachingPage:
    """The page about held-out inputs; raises nothing where none were measured: it is shorter then."""
    held_out = taught.held_out
    title = f"{counted(len(taught.classes))} taught" + (
        "" if held_out is None else f": {held_out.read_after} held-out examples read"
    )
    facts = tuple((f"{topic.capitalize()}:", _paragraph(sentences)) for topic, sentences in _topics(taught))
    shown, changed = ((), ()) if held_out is None else _shown(taught, held_out, examples)
    return TeachingPage(model, title, facts, tuple(_rows(taught)), shown, changed)


def _own(held_out: HeldOut, label: str) -> list[LabelReading]:
    return [each for each in held_out.readings if each.label == label]


def _rows(taught: Taught) -> Iterator[ReadingRow]:
    for each in taught.classes:
        mine = [] if taught.held_out is None else _own(taught.held_out, each.label)
        yield ReadingRow(
            visible(each.label), "not there" if each.was is None else each.was.value,
            sum(one.occurrences for one in mine), sum(one.before for one in mine), sum(one.after for one in
            mine),
        )  # fmt: skip


def _shown(
    taught: Taught, held_out: HeldOut, examples: ExampleSet
) -> tuple[tuple[ShownReading, ...], tuple[ShownReading, ...]]:
    """Inputs with taught labels, each label once first; and ordinary inputs that changed."""
    held = examples.held_out
    labels = {each.label for each in taught.classes}
    taught_inputs = np.flatnonzero(held.holding(labels)).tolist()
    first = {
        label: place
        for place, label in zip(held.inputs_of(held.spans).tolist()[::-1], held.labels[::-1], strict=True)
        if label in labels
    }
    order = dict.fromkeys([*sorted(first.values()), *taught_inputs])
    moved = [
        place
        for place, (old, new) in enumerate(zip(held_out.texts_before, held_out.texts_after, strict=True))
        if old != new and place not in order
    ]
    return _pictured(list(order), held_out, examples), _pictured(moved, held_out, examples)


def _pictured(places: list[int], held_out: HeldOut, examples: ExampleSet) -> tuple[ShownReading, ...]:
    held, wanted = examples.held_out, _wanted(examples.held_out)
    return tuple(
        ShownReading(
            wanted.get(place, ""), held.sources[place], visible(held_out.texts_before[place]),
            visible(held_out.texts_after[place]), examples.pictures.get(place),
        )
        for place in places[:_SHOWN_INPUTS]
    )  # fmt: skip


def _wanted(held: Examples) -> dict[int, str]:
    """What each labelled input holds, as far as its occurrences say."""
    parts: dict[int, list[str]] = {}
    for place, label in zip(held.inputs_of(held.spans).tolist(), held.labels, strict=True):
        parts.setdefault(place, []).append(label)
    return {place: visible("".join(labels)) for place, labels in parts.items()}
