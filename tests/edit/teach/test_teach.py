"""teach: what is proven, what is measured, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from teaching_world import CLASSES, DOMAIN, LABELS, NEVER, ONE, classified, examples, head

import argmaxable as am
from argmaxable.core.examples import joined

ALIKE = am.TeachingRules(allow_look_alikes=True)


def taught(**options: Any) -> am.Taught:
    given = examples()
    options = {"held_out": given.from_sources({"right"}), "engine": ONE} | options
    return am.teach(head(), DOMAIN, given.from_sources({"left"}), [NEVER], **options)


@pytest.fixture(scope="module")
def done() -> am.Taught:
    return taught()


# ---------------------------------------------------------------------- what is promised


def test_a_class_that_could_never_be_predicted_is_read_on_held_out_examples(done: am.Taught) -> None:
    assert done.classes[0].was is am.Status.UNARGMAXABLE
    assert done.held_out is not None
    assert (done.held_out.read_before, done.held_out.read_after) == (am.Rate(0, 6), am.Rate(6, 6))


def test_every_class_is_argmaxable_afterwards(done: am.Taught) -> None:
    assert set(done.result.status) == {"argmaxable"}
    assert done.result.head is done.after


def test_the_witness_is_an_example_of_the_class(done: am.Taught) -> None:
    witness = done.classes[0].witness
    assert witness is not None
    point = examples().from_sources({"left"}).features[[witness.row]].astype(float)
    gap = am.Checker(done.after, DOMAIN).gaps(np.array([NEVER]), point).lower[0]
    assert gap == witness.margin > 0
    assert witness.moved == 0


def test_rows_that_are_not_taught_are_the_same_bit_for_bit(done: am.Taught) -> None:
    others = np.arange(CLASSES) != NEVER
    assert np.array_equal(done.before.weight[others], done.after.weight[others])
    assert np.array_equal(done.before.biases()[others], done.after.biases()[others])
    assert done.before.labels == done.after.labels


def test_the_same_seed_gives_the_same_head(done: am.Taught) -> None:
    assert taught().after.sha256() == done.after.sha256()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_an_output_changes_only_to_a_taught_class(done: am.Taught, seed: int) -> None:
    x = 3 * np.random.default_rng(seed).normal(size=(50, done.before.features))
    before, after = (
        (x @ each.rows(slice(None)).T + each.biases()).argmax(axis=1) for each in (done.before, done.after)
    )
    assert set(after[before != after].tolist()) <= {NEVER}


def test_a_head_without_bias_is_taught_by_its_row_alone() -> None:
    plain = am.Head(head().weight, None, LABELS)
    result = am.teach(plain, DOMAIN, examples(), [NEVER], rules=ALIKE, engine=ONE)
    assert result.after.bias is None
    assert result.classes[0].witness is not None


def test_a_class_that_the_head_never_had_is_inserted_where_asked() -> None:
    given = examples(without=())
    result = am.teach(
        head(), DOMAIN, given, [NEVER], add=["new"], rules=am.TeachingRules(add_at=CLASSES - 1), engine=ONE
    )
    assert result.after.labels == (*LABELS[:-1], "new", LABELS[-1])
    assert np.array_equal(result.after.weight[-1], result.before.weight[-1])
    assert [(each.class_id, each.was) for each in result.classes] == [
        (NEVER, am.Status.UNARGMAXABLE),
        (CLASSES - 1, None),
    ]
    assert {each.status for each in result.result.verdicts} == {am.Status.ARGMAXABLE}


def cornered() -> tuple[am.Head, am.Examples]:
    """Class b wins in one corner only, which a row that wins at (5, 0) and not at 0 takes along."""
    weight = np.array([[0, 0], [1, 1], [0, 0]], np.float32)
    small = am.Head(weight, np.array([0, -19, -30], np.float32), ["a", "b", "taught"])
    rng = np.random.default_rng(0)
    features = np.concatenate([[5, 0] + 0.3 * rng.normal(size=(20, 2)), rng.normal(size=(200, 2))])
    return small, classified(features, ["taught"] * 20 + [""] * 200, ["x"] * 220)


def test_a_class_that_the_fitted_row_beats_everywhere_gets_its_room_back() -> None:
    small, given = cornered()
    result = am.teach(small, am.Box(-10.0, 10.0), given, [2], engine=ONE)
    assert result.result_before.status.tolist() == ["argmaxable", "argmaxable", "unargmaxable"]
    assert set(result.result.status) == {"argmaxable"}
    assert result.refitted == 1
    assert result.classes[0].witness is not None


# ---------------------------------------------------------------------- what is measured


def test_permuted_labels_teach_nothing() -> None:
    """The control: a row fitted to rows that have nothing in common reads no held-out example."""
    given = examples().from_sources({"left"})
    mixed = np.random.default_rng(3).permutation(len(given.labels))
    control = replace(given, labels=tuple(given.labels[place] for place in mixed))
    held_out = examples().from_sources({"right"})
    result = am.teach(head(), DOMAIN, control, [NEVER], held_out=held_out, rules=ALIKE, engine=ONE)
    assert result.held_out is not None
    assert result.held_out.read_after.count == 0


def test_ordinary_inputs_that_change_are_counted_with_the_pair(done: am.Taught) -> None:
    assert done.held_out is not None
    changed = done.held_out.changed
    assert changed.total == 150
    assert changed.count == sum(each.count for each in done.held_out.substituted)
    assert {each.taught for each in done.held_out.substituted} <= {LABELS[NEVER]}
    moved = [
        place
        for place, pair in enumerate(zip(done.held_out.texts_before, done.held_out.texts_after, strict=True))
        if pair[0] != pair[1]
    ]
    assert len(moved) >= changed.count


def test_more_changes_than_allowed_are_refused() -> None:
    with pytest.raises(am.InputError, match=r"--max-change allows 0 %"):
        taught(rules=am.TeachingRules(max_change=0.0))


def test_few_changes_are_allowed() -> None:
    assert taught(rules=am.TeachingRules(max_change=0.5)).held_out is not None


def alike() -> am.Examples:
    """Forty inputs that read as c1, every other of them labelled as the class to teach."""
    rng = np.random.default_rng(0)
    twins = 2 * head().weight[1] + 0.3 * rng.normal(size=(40, head().features))
    return joined(
        examples(without=("new", LABELS[NEVER])),
        classified(twins, [LABELS[NEVER] if place % 2 else "c1" for place in range(40)], ["left"] * 40),
    )


def test_a_class_that_looks_like_another_is_named_and_left_out() -> None:
    with pytest.raises(am.InputError, match=r"c5 looks like c1 to the model"):
        am.teach(head(), DOMAIN, alike(), [NEVER], engine=ONE)


def test_look_alikes_are_taught_when_asked_for() -> None:
    result = am.teach(head(), DOMAIN, alike(), [NEVER], rules=ALIKE, engine=ONE)
    assert [(each.label, each.other) for each in result.look_alikes] == [("c5", "c1")]
    assert result.left_out == ()


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("classes", "options", "message"),
    [
        ([], {}, "nothing to teach"),
        ([99], {}, "class 99 does not exist"),
        ([NEVER], {"add": ["c1"]}, "has a class c1 already"),
        ([NEVER], {"add": ["x", "x"]}, "named twice"),
        ([], {"add": ["x"]}, "no example of x"),
        ([1], {}, "wins at all 12 of its examples already"),
        ([NEVER], {"rules": am.TeachingRules(blank=NEVER)}, "is the blank"),
        ([NEVER], {"rules": am.TeachingRules(max_change=0.1)}, "hold some out"),
        ([NEVER], {"time_limit": 1e-9}, "time limit"),
    ],
)
def test_what_makes_no_sense_is_refused(classes: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.teach(head(), DOMAIN, examples(), classes, engine=ONE, **options)


def test_examples_of_another_width_are_refused() -> None:
    given = examples()
    narrow = replace(given, features=given.features[:, :-1])
    with pytest.raises(am.InputError, match="7 features a row; the head has 8"):
        am.teach(head(), DOMAIN, narrow, [NEVER], engine=ONE)


def test_labels_that_the_head_lacks_are_refused() -> None:
    with pytest.raises(am.InputError, match="the examples name new, which the head has no class for"):
        am.teach(head(), DOMAIN, examples(without=()), [NEVER], engine=ONE)


def test_labels_without_classes_can_not_be_added_to_a_head_without_labels() -> None:
    with pytest.raises(am.InputError, match="has no labels"):
        am.teach(am.Head(head().weight), DOMAIN, examples(), [], add=["x"], engine=ONE)
