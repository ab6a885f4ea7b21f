"""Repairs keep their promises: the chosen classes win by the margin, the others stay, logits move little."""

from __future__ import annotations

import numpy as np
import pytest
from damaged import BOX, LABELS, damaged, random_damaged, unargmaxable

import argmaxable as am
from argmaxable import Repair

DOMAINS: dict[str, am.Domain] = {
    "box": BOX,
    "relu": am.Box(0.0, 20.0),
    "ball": am.Ball(20.0),
    "rmsnorm": am.RMSNorm(np.array([3.0, 5.0, 4.0]), np.array([0.5, 0.0, -0.25])),
    "layernorm": am.LayerNorm(np.array([3.0, 5.0, 4.0]), np.array([0.5, 0.0, -0.25])),
}


def assert_kept_its_promises(done: Repair) -> None:
    head, domain = done.before, done.domain
    before = am.verify(head, domain, engine=am.Engine(workers=1))
    after = am.verify(done.after, domain, engine=am.Engine(workers=1))
    can_win = {verdict.class_id for verdict in after.argmaxable}
    assert can_win >= {verdict.class_id for verdict in before.argmaxable}
    assert can_win >= set(done.chosen.tolist())
    claims = np.full(len(done.chosen), done.margin)
    gaps = am.Checker(done.after, domain).gaps(done.chosen, done.points, claims=claims)
    assert (gaps.lower >= done.margin).all()
    assert done.after.weight.dtype == head.weight.dtype
    assert (done.after.bias is None) == (head.bias is None)


@pytest.mark.parametrize(("seed", "name"), [*enumerate(DOMAINS)])
def test_every_unargmaxable_class_wins_by_the_margin_and_the_others_stay(seed: int, name: str) -> None:
    done = am.repair(
        random_damaged(seed, classes=24), DOMAINS[name], margin=0.01, engine=am.Engine(workers=1)
    )
    assert_kept_its_promises(done)
    assert not done.result.unargmaxable


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_repair_survives_rounding_to_the_heads_dtype(dtype: str) -> None:
    done = am.repair(damaged(dtype), BOX, engine=am.Engine(workers=1))
    assert_kept_its_promises(done)


def test_only_raised_biases_differ() -> None:
    done = am.repair(damaged(), BOX, engine=am.Engine(workers=1))
    raised = done.after.biases() - done.before.biases()
    assert set(np.flatnonzero(raised)) == {4, 5}
    assert (raised >= 0).all()
    assert not len(done.moved)
    assert np.array_equal(done.after.weight, done.before.weight)


def test_an_even_repair_halves_the_largest_change() -> None:
    raised = am.repair(damaged(), BOX, engine=am.Engine(workers=1))
    even = am.repair(damaged(), BOX, even=True, engine=am.Engine(workers=1))
    assert_kept_its_promises(even)
    assert even.largest == pytest.approx(raised.largest / 2, rel=0.05)
    assert even.reached == pytest.approx(even.largest, rel=1e-4)


def test_the_change_reached_lies_above_what_is_proven_to_be_needed() -> None:
    done = am.repair(random_damaged(5), BOX, engine=am.Engine(workers=1))
    assert done.least is not None
    assert done.reached is not None
    assert done.least <= done.reached <= done.least * 1.03


def test_a_single_chosen_class_is_repaired_and_others_are_left() -> None:
    done = am.repair(damaged(), BOX, only=[5], engine=am.Engine(workers=1))
    assert_kept_its_promises(done)
    assert done.chosen.tolist() == [5]
    assert done.after.biases()[4] == done.before.biases()[4]


def identical(copies: int, *, bias: bool = True) -> am.Head:
    rows = np.vstack([damaged().weight[:4], np.tile(np.float32([0.25, 0.125]), (copies, 1))])
    return am.Head(rows, np.zeros(len(rows), np.float32) if bias else None)


@pytest.mark.parametrize("copies", [2, 7])
@pytest.mark.parametrize("bias", [True, False])
def test_identical_rows_are_moved_apart(copies: int, bias: bool) -> None:
    done = am.repair(identical(copies, bias=bias), BOX, engine=am.Engine(workers=1))
    assert_kept_its_promises(done)
    assert len(done.moved) >= copies - 1
    assert not done.result.unargmaxable


def test_a_class_that_equals_an_argmaxable_one_moves_and_the_other_stays() -> None:
    head = am.Head(np.vstack([damaged().weight[:4], damaged().weight[:1]]), np.float32([0, 0, 0, 0, -0.5]))
    done = am.repair(head, BOX, only=[4], engine=am.Engine(workers=1))
    assert_kept_its_promises(done)
    assert done.moved.tolist() == [4]


def test_identical_rows_are_beyond_biases() -> None:
    with pytest.raises(am.InputError, match="same weights as class 4"):
        am.repair(identical(2), BOX, bias_only=True, engine=am.Engine(workers=1))


def test_a_head_without_bias_is_repaired_by_its_rows() -> None:
    done = am.repair(damaged(bias=False), BOX, engine=am.Engine(workers=1))
    assert_kept_its_promises(done)
    assert done.after.bias is None
    assert done.reached is None
    assert set(done.moved) >= {4, 5}


def test_a_random_head_without_bias_loses_no_class_by_its_repair() -> None:
    generator = np.random.default_rng(4)
    head = am.Head(generator.standard_normal((40, 4)).astype(np.float32))
    assert unargmaxable(head, BOX)
    assert_kept_its_promises(am.repair(head, BOX, engine=am.Engine(workers=1)))


@pytest.mark.parametrize("name", DOMAINS)
def test_no_logit_moves_farther_than_the_bound(name: str) -> None:
    domain = DOMAINS[name]
    plain = random_damaged(2, classes=24)
    rows = np.vstack([plain.weight, plain.weight[:2]])  # twins: rows move too
    head = am.Head(rows, np.append(plain.biases(), [0.0, 0.1]).astype(np.float32))
    done = am.repair(head, domain, engine=am.Engine(workers=1))
    points = np.random.default_rng(0).standard_normal((4000, 3))
    points *= np.sqrt(3) / np.sqrt((points**2).sum(axis=1, keepdims=True))
    if isinstance(domain, am.Box):
        points = np.random.default_rng(0).choice([float(domain.lo), float(domain.hi)], (4000, 3))
    elif isinstance(domain, am.Ball):
        points *= domain.radius / np.sqrt(3)
    else:
        assert isinstance(domain, am.RMSNorm | am.LayerNorm)
        centred = points - points.mean(axis=1, keepdims=True) if isinstance(domain, am.LayerNorm) else points
        points = domain.gain * centred + domain.shift
    moved = points @ (done.after.rows(slice(None)) - head.rows(slice(None))).T
    moved += done.after.biases() - head.biases()
    assert np.abs(moved).max() <= done.movement
    if isinstance(domain, am.Box):
        assert np.abs(moved).max() >= 0.9 * done.movement  # its corners are where logits move most


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("bias", [True, False])
def test_equal_biases_or_none_make_no_difference_to_the_promise(name: str, bias: bool) -> None:
    generator = np.random.default_rng(7)
    rows = generator.standard_normal((10, 3)).astype(np.float32)
    rows[:2] /= 16  # well inside
    head = am.Head(rows, np.full(10, 0.5, np.float32) if bias else None)
    assert_kept_its_promises(am.repair(head, DOMAINS[name], engine=am.Engine(workers=1)))


@pytest.mark.parametrize("power", [-60, 40])
def test_heads_of_any_size_are_repaired(power: int) -> None:
    small = damaged("float64")
    head = am.Head(np.ldexp(small.weight, power), np.ldexp(small.bias, power))
    done = am.repair(head, BOX, margin=float(np.ldexp(0.01, power)), engine=am.Engine(workers=1))
    assert_kept_its_promises(done)


def test_labels_and_shapes_stay() -> None:
    done = am.repair(damaged(), BOX, engine=am.Engine(workers=1))
    assert done.after.labels == LABELS
    assert done.after.weight.shape == (6, 2)


def test_a_class_that_is_argmaxable_already_is_refused() -> None:
    with pytest.raises(am.InputError, match=r"class 1 \('b'\) is argmaxable already"):
        am.repair(damaged(), BOX, only=[1, 4], engine=am.Engine(workers=1))


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(am.InputError, match="class 6 does not exist"):
        am.repair(damaged(), BOX, only=[6], engine=am.Engine(workers=1))


def test_a_head_without_unargmaxable_classes_needs_no_repair() -> None:
    with pytest.raises(am.InputError, match="nothing to repair"):
        am.repair(am.Head(np.eye(3)), BOX, engine=am.Engine(workers=1))


def test_bias_only_needs_a_bias() -> None:
    with pytest.raises(am.InputError, match="has no bias"):
        am.repair(damaged(bias=False), BOX, bias_only=True, engine=am.Engine(workers=1))


@pytest.mark.parametrize("domain", [am.Everywhere(), am.Box(0.0, np.inf)])
def test_an_unbounded_domain_is_refused(domain: am.Domain) -> None:
    with pytest.raises(am.DomainError, match="bounded"):
        am.repair(damaged(), domain, engine=am.Engine(workers=1))


@pytest.mark.parametrize("margin", [0.0, -1.0, np.nan, np.inf])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(am.InputError, match="margin must be"):
        am.repair(damaged(), BOX, margin=margin, engine=am.Engine(workers=1))


def test_a_margin_that_no_bias_can_give_says_so() -> None:
    with pytest.raises(am.InputError, match="no bias gives"):
        am.repair(damaged(), am.Box(-0.5, 0.5), margin=50.0, bias_only=True, engine=am.Engine(workers=1))


def test_no_time_is_not_called_impossible() -> None:
    with pytest.raises(
        am.InputError, match=r"the time limit of 1e-09 s passed .* Pass a larger --time-limit"
    ):
        am.repair(damaged(), BOX, seconds=1e-9, engine=am.Engine(workers=1))


def test_ctrl_c_is_not_called_a_time_limit() -> None:
    def press(_: am.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        am.repair(damaged(), BOX, engine=am.Engine(workers=1), progress=press)


def test_progress_names_the_rounds_and_the_largest_raise() -> None:
    seen: list[am.Progress] = []
    am.repair(damaged(), BOX, engine=am.Engine(workers=1), progress=seen.append)
    rounds = [one for one in seen if one.phase.startswith("raising biases, round ")]
    assert rounds
    assert all(one.done <= one.total and "largest raise at least" in one.note for one in rounds)
