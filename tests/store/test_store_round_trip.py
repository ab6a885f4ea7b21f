"""A verdict read back is the one that was written, whatever it holds, on both databases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from drawn import ENCODABLE
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import CENTRE, CLASSES, COST, as_plain, plan, verdict, verdicts

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.store import Plan, State, Store, open_store, reading
from argmaxable.store import run as writing
from argmaxable.store.texts import from_column, to_column


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as store:
        yield store


def stored(store: Store, found: list[am.Verdict], its: Plan | None = None, *, finish: bool = True) -> int:
    with store.begin(its or plan(), centre=CENTRE) as run:
        run.record(found, COST)
        if finish:
            run.finish(COST)
    return run.run_id


def test_every_kind_of_verdict_comes_back_as_it_was(store: Store) -> None:
    run_id = stored(store, verdicts())
    assert [as_plain(back) for back in store.verdicts(run_id)] == [as_plain(its) for its in verdicts()]


def test_the_record_has_all_that_a_result_has_but_the_head(store: Store) -> None:
    record = store.read(stored(store, verdicts()))
    assert record.facts == plan().facts
    assert record.domain == plan().domain
    assert record.centre.tobytes() == CENTRE.tobytes()
    assert record.cost == COST
    assert record.is_complete
    assert [as_plain(back) for back in record.verdicts] == [as_plain(its) for its in verdicts()]


def test_verdicts_come_in_class_order_whatever_the_order_of_writing(store: Store) -> None:
    run_id = stored(store, verdicts()[::-1])
    assert [back.class_id for back in store.verdicts(run_id)] == list(range(CLASSES))


def test_shared_evidence_is_shared_again(store: Store) -> None:
    back = [verdict for verdict in store.read(stored(store, verdicts())).verdicts]
    certificates = [v.certificate for v in back if v.method is am.Method.TRANSFER]
    groups = [v.tie_group for v in back if v.tie_group]
    assert len(certificates) == len(groups) == 10
    assert len({id(certificate) for certificate in certificates}) == 1
    assert len({id(group) for group in groups}) == 1


def test_evidence_that_is_read_back_is_read_only(store: Store) -> None:
    back = list(store.verdicts(stored(store, verdicts())))
    witness, certificate = back[1].witness, back[3].certificate
    assert isinstance(witness, am.Point)
    assert certificate is not None
    assert not witness.values.flags.writeable
    assert not certificate.weights.flags.writeable
    assert not certificate.classes.flags.writeable


def test_verdicts_can_be_chosen_by_status(store: Store) -> None:
    run_id = stored(store, verdicts())
    for status in am.Status:
        expected = [its.class_id for its in verdicts() if its.status is status]
        assert [back.class_id for back in store.verdicts(run_id, status=status)] == expected


def test_without_evidence_a_verdict_still_says_what_it_is(store: Store) -> None:
    run_id = stored(store, verdicts())
    for back, its in zip(store.verdicts(run_id, with_evidence=False), verdicts(), strict=True):
        assert (back.status, back.lower, back.upper) == (its.status, its.lower, its.upper)
        assert back.tie_group == its.tie_group
        assert back.is_tied == its.is_tied
        assert not isinstance(back.witness, am.Point)


def test_more_verdicts_than_a_page_and_a_batch_come_back_in_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_BATCH", 1500)
    many = 3456
    assert many > 2 * writing._BATCH > 2 * reading._PAGE
    facts = Facts("large", "00" * 32, many, 3, False, "float32")
    run_id = stored(store, verdicts(many), plan(facts=facts, labels=None))
    back = list(store.verdicts(run_id))
    assert [v.class_id for v in back] == list(range(many))
    assert [as_plain(v) for v in back[::97]] == [as_plain(v) for v in verdicts(many)[::97]]
    assert store.run(run_id).counts.open == 0


def test_reading_may_stop_half_way(store: Store) -> None:
    run_id = stored(store, verdicts())
    for _ in range(20):  # more than a pool has connections
        assert next(store.verdicts(run_id)).class_id == 0
    reading = store.verdicts(run_id)
    next(reading)
    assert store.delete([run_id]) == 1
    assert len(list(reading)) == CLASSES - 1  # as it was when reading began


@pytest.mark.parametrize("lower", [-math.inf, math.inf, math.nan, 0.0, 5e-324, -1.7976931348623157e308])
def test_a_bound_survives(store: Store, lower: float) -> None:
    strange = verdict(0, am.Status.UNDECIDED, lower=lower, upper=-lower, seconds=lower)
    run_id = stored(store, [strange], finish=False)
    (back,) = store.verdicts(run_id)
    assert as_plain(back) == as_plain(strange)


@pytest.mark.parametrize(
    "label",
    [
        "",
        "\x00",
        "a\x00b",
        "\ud800",
        "\udfff\ud800",
        "\x1a",
        "\x1a0000",
        "\\",
        "\\N",
        "\t\n\r",
        "%",
        "'",
        "é漢😀",
    ],
)
def test_a_label_survives(store: Store, label: str) -> None:
    run_id = stored(store, [verdict(0, am.Status.UNDECIDED, label=label, reason=label)], finish=False)
    (back,) = store.verdicts(run_id)
    assert (back.label, back.reason) == (label, label)


def test_names_survive_and_can_be_searched(store: Store) -> None:
    for name in ("a\x00b", "\ud800x", "100%_safe", "100 percent", "Ünï/MODEL"):
        facts = Facts(name, name.encode("utf-8", "replace").hex(), CLASSES, 3, True, "float32")
        stored(store, [], plan(facts=facts, task=name, family=name, origin=name), finish=False)
    assert [run.facts.name for run in store.runs(name="\x00")] == ["a\x00b"]
    assert [run.task for run in store.runs(name="\ud800")] == ["\ud800x"]
    assert [run.family for run in store.runs(name="%_")] == ["100%_safe"]
    assert [run.origin for run in store.runs(name="model")] == ["Ünï/MODEL"]
    assert [run.facts.name for run in store.runs(task="100%_safe")] == ["100%_safe"]


@pytest.mark.parametrize(
    "domain",
    [
        am.Everywhere(),
        am.Ball(0.1),
        am.Box(0.0, math.inf),
        am.Box([0.1, -math.inf, 0.0], [0.3, 1.0, math.inf]),
        am.LayerNorm([0.1, 0.2, 0.3], 1e-300),
        am.RMSNorm([1.0, 2.0, 3.0]),
    ],
    ids=str,
)
def test_a_domain_survives(store: Store, domain: am.Domain) -> None:
    run_id = stored(store, [], plan(domain=domain), finish=False)
    assert store.run(run_id).domain == domain
    assert store.read(run_id).domain == domain


def test_huge_settings_survive(store: Store) -> None:
    run_id = stored(store, [], plan(seed=10**40, patience=10**30), finish=False)
    summary = store.run(run_id)
    assert (summary.seed, summary.patience) == (10**40, 10**30)


# ---------------------------------------------------------------------- random verdicts

TEXTS = st.text(st.characters(), max_size=12) | st.text(st.sampled_from("\x00\x1a\ud800\udfff0aA\\'"))
NUMBERS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan])
COUNTS = st.integers(0, 2**62)
IDS = st.integers(0, 2**40)
FLOATS = st.lists(st.floats(), min_size=1, max_size=5).map(np.array)


@st.composite
def certificates(draw: st.DrawFn) -> am.Certificate:
    classes = draw(st.lists(IDS, min_size=1, max_size=5))
    weights = draw(st.lists(st.floats(), min_size=len(classes), max_size=len(classes)))
    coordinates = draw(st.none() | st.lists(st.integers(0, 2**20), max_size=4))
    return am.Certificate(
        np.array(classes, np.intp),
        np.array(weights),
        draw(st.integers(0, len(classes))),
        None if coordinates is None else np.array(coordinates, np.intp),
    )


@st.composite
def any_verdicts(draw: st.DrawFn, class_id: int) -> am.Verdict:
    """Anything that the fields of a verdict can hold, sensible or not."""
    return am.Verdict(
        class_id=class_id,
        label=draw(TEXTS),
        status=draw(st.sampled_from(am.Status)),
        lower=draw(NUMBERS),
        upper=draw(NUMBERS),
        method=draw(st.sampled_from(am.Method)),
        strength=draw(st.none() | st.sampled_from(am.Strength)),
        witness=draw(st.none() | st.integers(-4000, 4000).map(am.OwnDirection) | FLOATS.map(am.Point)),
        certificate=draw(st.none() | certificates()),
        tie_group=tuple(draw(st.lists(IDS, max_size=4))),
        steps=draw(COUNTS),
        rows=draw(COUNTS),
        seconds=draw(NUMBERS),
        radius=draw(st.none() | st.floats(allow_nan=False)),
        reason=draw(TEXTS),
        ahead=draw(st.none() | COUNTS),
    )


@settings(max_examples=25)  # each writes and reads a run: 70 ms
@given(data=st.data(), count=st.integers(1, 8))
def test_any_verdicts_come_back(store: Store, data: st.DataObject, count: int) -> None:
    drawn = [data.draw(any_verdicts(class_id)) for class_id in range(count)]
    with store.begin(plan(), centre=CENTRE, overwrite=True) as run:
        run.record(drawn, COST)
    back = store.read(run.run_id).verdicts
    assert [as_plain(verdict) for verdict in back] == [as_plain(verdict) for verdict in drawn]
    assert store.run(run.run_id).counts.tied == sum(verdict.is_tied for verdict in drawn)
    assert store.run(run.run_id).state is State.INTERRUPTED


@given(TEXTS)
def test_any_text_comes_back_from_a_column_that_takes_it(text: str) -> None:
    column = to_column(text)
    assert from_column(column) == text
    assert "\x00" not in column
    column.encode()


@given(st.text(ENCODABLE))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    if not set(text) & {"\x00", "\x1a"}:
        assert to_column(text) == text
