"""Comparing runs: which classes are the same, what changed, and what may be said about margins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from argmaxable.core.verdict import Method, OwnDirection, Point, Status, Verdict, Witness, status_of
from argmaxable.report.comparison import Comparison, Matching, Verdicts, compare


def verdict(
    class_id: int,
    label: str | None = None,
    bounds: tuple[float, float] = (1.0, 2.0),
    witness: Witness | None = None,
) -> Verdict:
    return Verdict(
        class_id=class_id,
        label=str(class_id) if label is None else label,
        status=status_of(*bounds),
        lower=bounds[0],
        upper=bounds[1],
        method=Method.NONE,
        strength=None,
        witness=witness,
    )


LOST, WON, OPEN = (-1.0, -0.5), (0.5, 1.0), (-1.0, 1.0)


def of(verdicts: Sequence[Verdict]) -> Verdicts:
    def read() -> Iterator[Verdict]:
        return iter(verdicts)

    return read


def compared(before: Sequence[Verdict], after: Sequence[Verdict], *, most_moved: int = 10) -> Comparison:
    return compare(of(before), of(after), most_moved=most_moved)


def labelled(*labels: str, bounds: tuple[float, float] = WON) -> list[Verdict]:
    return [verdict(class_id, label, bounds) for class_id, label in enumerate(labels)]


def test_the_same_run_twice_has_no_changes() -> None:
    run = labelled("a", "b", "c")
    comparison = compared(run, run)
    assert comparison.matching is Matching.LABEL
    assert (comparison.matched, comparison.changed, comparison.moved, comparison.shifted) == (3, (), (), ())
    assert comparison.counts == {(Status.ARGMAXABLE, Status.ARGMAXABLE): 3}


def test_classes_are_matched_by_label_where_numbers_differ() -> None:
    before = [verdict(0, "a", WON), verdict(1, "b", LOST)]
    after = [verdict(0, "b", LOST), verdict(1, "a", LOST)]
    comparison = compared(before, after)
    assert [(pair.before.class_id, pair.after.class_id) for pair in comparison.changed] == [(0, 1)]
    assert comparison.matching is Matching.LABEL


def test_classes_are_matched_by_number_where_one_run_has_no_labels() -> None:
    comparison = compared(labelled("1", "0"), [verdict(0, bounds=WON), verdict(1, bounds=LOST)])
    assert comparison.matching is Matching.CLASS
    assert [pair.before.class_id for pair in comparison.changed] == [1]


def test_classes_of_one_run_alone_are_counted() -> None:
    comparison = compared([verdict(0), verdict(2), verdict(4)], [verdict(2), verdict(3)])
    assert (comparison.matched, comparison.only_before, comparison.only_after) == (1, 2, 1)


def test_labels_of_one_run_alone_are_counted() -> None:
    comparison = compared(labelled("a", "b", "x"), labelled("b", "a"))
    assert (comparison.matched, comparison.only_before, comparison.only_after) == (2, 1, 0)


def test_a_label_of_several_classes_is_matched_in_order_if_both_runs_have_as_many() -> None:
    before = [verdict(0, "pad", WON), verdict(1, "pad", LOST), verdict(2, "a")]
    after = [verdict(0, "a"), verdict(1, "pad", WON), verdict(2, "pad", WON)]
    comparison = compared(before, after)
    assert [(pair.before.class_id, pair.after.class_id) for pair in comparison.changed] == [(1, 2)]
    assert comparison.ambiguous == 0


def test_a_label_of_more_classes_in_one_run_is_compared_with_nothing() -> None:
    comparison = compared(labelled("pad", "pad", "a"), labelled("a", "pad"))
    assert (comparison.matched, comparison.ambiguous) == (1, 3)
    assert (comparison.only_before, comparison.only_after) == (0, 0)


def test_runs_without_a_common_class_have_nothing_matched() -> None:
    comparison = compared([verdict(0)], [verdict(1)])
    assert (comparison.matched, comparison.only_before, comparison.only_after) == (0, 1, 1)


def test_an_undecided_class_that_gets_decided_has_changed_but_is_no_opposite() -> None:
    comparison = compared([verdict(0, bounds=OPEN)], [verdict(0, bounds=LOST)])
    assert len(comparison.changed) == 1
    assert comparison.opposites == ()


def test_classes_decided_both_ways_are_opposites() -> None:
    comparison = compared([verdict(0, bounds=WON)], [verdict(0, bounds=LOST)])
    assert comparison.opposites == comparison.changed


@pytest.mark.parametrize(
    ("before", "after", "shift"),
    [
        ((1.0, 2.0), (3.0, 5.0), 1.0),
        ((3.0, 5.0), (1.0, 2.0), -1.0),
        ((1.0, 3.0), (2.0, 5.0), 0.0),
        ((1.0, 2.0), (2.0, 3.0), 0.0),
        ((0.5, 1.0), (-1.0, -0.5), -1.0),
        ((1.0, math.inf), (3.0, math.inf), 0.0),
        ((-math.inf, math.inf), (3.0, 4.0), 0.0),
    ],
)
def test_a_margin_moved_for_certain_by_the_distance_of_its_bounds(
    before: tuple[float, float], after: tuple[float, float], shift: float
) -> None:
    comparison = compared([verdict(0, bounds=before)], [verdict(0, bounds=after)])
    assert [pair.certain_shift for pair in comparison.moved] == ([shift] if shift else [])


def test_leads_are_compared_at_the_same_own_direction_only() -> None:
    witnesses: list[Witness] = [OwnDirection(3), OwnDirection(4), Point(np.zeros(2))]
    before = [verdict(k, bounds=(1.0, 9.0), witness=OwnDirection(3)) for k in range(3)]
    after = [verdict(k, bounds=(2.0, 9.0), witness=witness) for k, witness in enumerate(witnesses)]
    assert [pair.before.class_id for pair in compared(before, after).shifted] == [0]


def test_the_largest_shifts_come_first_whatever_their_sign() -> None:
    before = [verdict(k, bounds=(0.0, 0.1)) for k in range(5)]
    after = [verdict(k, bounds=(shift, shift)) for k, shift in enumerate([1.0, -5.0, 3.0, 1.0, 0.05])]
    comparison = compared(before, after, most_moved=3)
    assert [pair.before.class_id for pair in comparison.moved] == [1, 2, 0]
