"""Claims about classes, each with one thing wrong: the check names the class, and passes sound ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.verdicts import failed_in_rationals, failed_verdicts
from argmaxable.core.verdict import Certificate, FinePoint, Method, OwnDirection, Point, Verdict

INF = math.inf
YES, NO, OPEN = am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE, am.Status.UNDECIDED
BOX = am.Box(-100, 100)
# Four corners, their middle, and the first corner again. At (−1, −1) corner 0 leads by 2, but for its twin.
SQUARE = am.Head([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])
TWINS = am.Head([*SQUARE.rows(slice(None)), [0.0, 0.0]])
ABOVE, BELOW = math.nextafter(2.0, INF), math.nextafter(0.0, -INF)


def claim(class_id: int, status: am.Status, lower: float = -INF, upper: float = INF, **more: Any) -> Verdict:
    return Verdict(class_id, str(class_id), status, lower, upper, Method.NONE, None, **more)


def point(*values: float) -> Point:
    return Point(np.array(values))


def weights(on: dict[int, float], basis: int = 0, **more: Any) -> Certificate:
    return Certificate(np.array(list(on)), np.array(list(on.values())), basis, **more)


def failures(*claims: Verdict, head: am.Head = SQUARE, domain: am.Domain = BOX) -> list[Any]:
    return [failure.key for failure in failed_verdicts(Checker(head, domain), claims)]


CORNER = point(-1.0, -1.0)
MIDDLE = weights({0: 0.5, 3: 0.5})
SOUND = {
    "the gap itself": claim(0, YES, 2.0, witness=CORNER),
    "a fine point": claim(0, YES, 2.0, witness=FinePoint((-4, -4), -2)),
    "an own direction": claim(0, YES, 2.0, witness=OwnDirection(0)),
    "a loss": claim(4, OPEN, -2.0, witness=CORNER),
    "nothing": claim(4, OPEN),
    "a middle": claim(4, NO, upper=0.0, certificate=MIDDLE),
    "a middle with whole weights": claim(
        4, NO, upper=0.0, certificate=weights({0: 1.0, 3: 0.0}, whole=(1, 1))
    ),
    "a middle solved for": claim(4, NO, upper=0.0, certificate=weights({0: 0.4, 3: 0.4}, 2)),
    "one rival": claim(0, OPEN, upper=200.0, certificate=weights({1: 1.0})),
    "both bounds": claim(4, NO, -2.0, 0.0, witness=CORNER, certificate=MIDDLE),
}
FORGED = {
    "a gap too large": claim(0, YES, ABOVE, witness=CORNER),
    "a fine gap too large": claim(0, YES, ABOVE, witness=FinePoint((-4, -4), -2)),
    "an own gap too large": claim(0, YES, ABOVE, witness=OwnDirection(0)),
    "a loss too small": claim(4, OPEN, math.nextafter(-2.0, INF), witness=CORNER),
    "another class's point": claim(1, YES, 2.0, witness=CORNER),
    "a point outside": claim(0, YES, 2.0, witness=point(-101.0, -1.0)),
    "a point that is too long": claim(0, YES, 2.0, witness=point(-1.0, -1.0, 0.0)),
    "a fine point that is too short": claim(0, YES, 2.0, witness=FinePoint((-4,), -2)),
    "a gap without a point": claim(0, YES, 2.0),
    "a loss without a point": claim(4, OPEN, -2.0),
    "a gap that decides nothing": claim(0, OPEN, 2.0, witness=CORNER),
    "a loss that decides": claim(4, YES, -2.0, witness=CORNER),
    "a tie that wins": claim(0, YES, 0.0, witness=point(0.0, 0.0)),
    "a bound too low": claim(4, NO, upper=BELOW, certificate=MIDDLE),
    "a bound above 0": claim(4, NO, upper=1.0, certificate=MIDDLE),
    "a bound of 0 that decides nothing": claim(4, OPEN, upper=0.0, certificate=MIDDLE),
    "a bound without weights": claim(4, NO, upper=0.0),
    "another class's weights": claim(1, NO, upper=0.0, certificate=MIDDLE),
    "the wrong middle": claim(4, NO, upper=0.0, certificate=weights({0: 0.5, 1: 0.5})),
    "the wrong whole weights": claim(4, NO, upper=0.0, certificate=weights({0: 0.5, 3: 0.5}, whole=(1, 2))),
    "the wrong middle solved for": claim(4, NO, upper=0.0, certificate=weights({0: 0.5, 1: 0.5}, 2)),
    "itself as a rival": claim(4, NO, upper=0.0, certificate=weights({4: 1.0})),
    "a rival too strong": claim(0, OPEN, upper=math.nextafter(200.0, 0), certificate=weights({1: 1.0})),
    "a rival that the head has not got": claim(4, NO, upper=0.0, certificate=weights({5: 1.0})),
    "a rival counted from the end": claim(4, NO, upper=0.0, certificate=weights({-1: 1.0})),
    "half of a rival": claim(0, OPEN, upper=100.0, certificate=weights({1: 0.5})),
    "itself as a rival for a margin": claim(0, OPEN, upper=1.0, certificate=weights({0: 1.0})),
    "minus a rival": claim(0, OPEN, upper=200.0, certificate=weights({1: -1.0})),
    "no weight on a rival": claim(0, OPEN, upper=200.0, certificate=weights({1: 0.0})),
    "one good bound of two": claim(4, NO, -1.0, 0.0, witness=CORNER, certificate=MIDDLE),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_what_the_evidence_proves_passes(sound: Verdict) -> None:
    assert failures(sound) == []


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_the_evidence_does_not_prove_is_named_once(forged: Verdict) -> None:
    assert failures(forged) == [forged.class_id]


BESIDE = {name: forged for name, forged in FORGED.items() if "rival" in name or "bound" in name}


@pytest.mark.parametrize("forged", BESIDE.values(), ids=BESIDE)
def test_sound_claims_beside_a_forged_one_pass(forged: Verdict) -> None:
    others = [claim(0, YES, 2.0, witness=CORNER), claim(4, NO, upper=0.0, certificate=MIDDLE), claim(2, OPEN)]
    assert failures(*(one for one in others if one.class_id != forged.class_id), forged) == [forged.class_id]


def test_a_hull_has_no_own_directions() -> None:
    hull = am.Hull([[-1.0, -1.0], [1.0, 1.0]])
    assert failures(claim(0, OPEN, -2.0, witness=OwnDirection(0)), domain=hull) == [0]
    assert failures(claim(0, YES, 2.0, witness=point(1.0, 0.0)), domain=hull) == []


def test_an_only_class_wins_wherever_it_has_a_point() -> None:
    alone = am.Head([[1.0, 2.0]])
    here, outside = point(0.0, 0.0), point(101.0, 0.0)
    assert failures(claim(0, YES, INF, witness=here), head=alone) == []
    assert failures(claim(0, YES, 0.0, witness=here), head=alone) == []
    assert failures(claim(0, YES, INF, witness=outside), head=alone) == [0]
    assert failures(claim(0, YES), head=alone) == [0]
    assert failures(claim(0, NO, witness=here), head=alone) == [0]


# ---------------------------------------------------------------------- ties


def test_a_tie_group_has_equal_rows_and_biases_and_the_class_itself() -> None:
    tie = (0, 5)
    assert failures(claim(0, OPEN, tie_group=tie), claim(5, OPEN, tie_group=tie), head=TWINS) == []
    assert failures(claim(1, OPEN, tie_group=tie), head=TWINS) == [1]
    assert failures(claim(0, OPEN, tie_group=(0, 5, 1)), head=TWINS) == [0]
    assert failures(claim(0, OPEN, tie_group=(0, 6)), head=TWINS) == [0]
    assert failures(claim(5, OPEN, tie_group=(5, -6)), head=TWINS) == [5]
    lifted = am.Head(TWINS.rows(slice(None)), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert failures(claim(0, OPEN, tie_group=tie), head=lifted) == [0]


def test_a_false_tie_is_named_once_and_its_bounds_are_not_believed() -> None:
    tie = (0, 5)
    assert failures(claim(1, YES, 2.0, witness=CORNER, tie_group=tie), head=TWINS) == [1]
    stranger = claim(1, OPEN, 0.0, witness=CORNER, tie_group=tie)
    assert failures(claim(0, OPEN, 0.0, witness=CORNER, tie_group=tie), stranger, head=TWINS) == [1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CORNER, point(0.0, 0.0)),
        (OwnDirection(0), OwnDirection(1)),
        (FinePoint((-4, -4), -2), FinePoint((4, 4), -2)),
        (CORNER, OwnDirection(0)),
    ],
)
def test_members_of_a_tie_group_share_a_check_only_with_the_same_bound_and_witness(
    one: Any, other: Any
) -> None:
    """The twins tie, so that 0 is the gap of both wherever they lead."""
    tie = (0, 5)
    both = [claim(c, OPEN, 0.0, witness=witness, tie_group=tie) for c, witness in ((0, one), (5, one))]
    assert failures(*both, head=TWINS) == []
    more = claim(5, YES, 1.0, witness=one, tie_group=tie)
    assert failures(both[0], more, head=TWINS) == [5]
    lost = claim(5, OPEN, 0.0, witness=point(1.0, 1.0), tie_group=tie)
    assert failures(both[0], lost, head=TWINS) == [5]
    elsewhere = claim(5, OPEN, -4.0, witness=other, tie_group=tie)
    assert failures(both[0], elsewhere, head=TWINS) == []


def test_fine_points_with_equal_steps_are_told_apart() -> None:
    tie = (0, 5)
    leading, lost = FinePoint((-4, -4), -2), FinePoint((4, 4), -2)
    claims = [claim(c, OPEN, 0.0, witness=z, tie_group=tie) for c, z in ((0, leading), (5, lost))]
    assert failures(*claims, head=TWINS) == [5]


def test_a_fine_point_keeps_all_digits_of_its_numbers() -> None:
    """At (3/2, −1 + 2^−63) class 1 leads by 2 − 2^−62; with entries of 53 bits it would be 2."""
    fine = FinePoint((2**63 + 2**62, 1 - 2**63), -63)
    assert failures(claim(1, YES, 2.0, witness=fine)) == [1]
    assert failures(claim(1, YES, math.nextafter(2.0, 0), witness=fine)) == []


def test_a_failure_of_a_shared_check_is_one_of_every_member() -> None:
    tie = (0, 5)
    both = [claim(c, YES, 1.0, witness=CORNER, tie_group=tie) for c in tie]
    assert failures(*both, head=TWINS) == [0, 5]


# ---------------------------------------------------------------------- many at once


def circle(count: int) -> am.Head:
    angles = 2 * np.pi * np.arange(count) / count
    return am.Head(np.stack([np.cos(angles), np.sin(angles)], axis=1))


@pytest.mark.parametrize("bad", [0, 2047, 2048, 2099])
def test_one_false_gap_among_thousands_is_found(bad: int) -> None:
    head = circle(2100)
    gap = 1 - math.cos(2 * math.pi / 2100)
    rows = head.rows(slice(None))
    claims = [
        claim(c, YES, gap * (1.001 if c == bad else 0.999), witness=Point(rows[c])) for c in range(2100)
    ]
    assert failures(*claims, head=head) == [bad]


@pytest.mark.parametrize("bad", [None, 3, 29])
def test_one_false_own_direction_among_many_is_found(bad: int | None) -> None:
    """Some of the points 2^k · row are in the box as they are, some are clipped to it."""
    head, domain = circle(30), am.Box(-1.5, 1.5)
    checker = Checker(head, domain)
    exponents = [c % 2 for c in range(30)]
    exact = [
        checker.gaps(np.array([c]), checker.rebuild(np.array([c]), np.array([e]))).lower[0]
        for c, e in enumerate(exponents)
    ]
    claims = [
        claim(
            c,
            YES if low > 0 else OPEN,
            low + (0.01 if c == bad else -1e-9 if low > 1e-9 else 0.0),
            witness=OwnDirection(exponents[c]),
        )
        for c, low in enumerate(exact)
    ]
    assert failures(*claims, head=head, domain=domain) == ([] if bad is None else [bad])


def test_certificates_over_the_same_rows_are_told_apart() -> None:
    """Three classes inside a triangle, with weights to be solved for over its corners; one lies outside."""
    triangle = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]
    head = am.Head([*triangle, [1.0, 1.0], [0.5, 0.5], [1.0, 0.25], [2.0, 2.0]], [0, 0, 0, -1, 0, 0, 0])
    near = {
        3: (1 / 3, 1 / 3, 1 / 3),
        4: (2 / 3, 1 / 6, 1 / 6),
        5: (7 / 12, 1 / 3, 1 / 12),
        6: (0.1, 0.45, 0.45),
    }
    proofs = {c: Certificate(np.arange(3), np.array(values), 3) for c, values in near.items()}
    sound = [claim(c, NO, upper=0.0, certificate=proofs[c]) for c in (3, 4, 5)]
    assert failures(*sound, head=head) == []
    assert failures(*sound, claim(6, NO, upper=0.0, certificate=proofs[6]), head=head) == [6]
    lower = claim(3, NO, upper=-0.999, certificate=proofs[3])
    assert failures(lower, *sound[1:], head=head) == []
    too_low = claim(4, NO, upper=-0.001, certificate=proofs[4])
    assert failures(sound[0], too_low, sound[2], head=head) == [4]
    other = claim(5, NO, upper=0.0, certificate=Certificate(np.array([0, 1, 3]), np.array(near[5]), 3))
    assert failures(*sound[:2], other, head=head) == [5]
    whole = claim(
        5, NO, upper=0.0, certificate=Certificate(np.arange(3), np.array(near[5]), 3, whole=(1, 1, 1))
    )
    assert failures(*sound[:2], whole, head=head) == [5]
    chosen = claim(
        5, NO, upper=0.0, certificate=Certificate(np.arange(3), np.array(near[5]), 3, np.array([0]))
    )
    assert failures(*sound[:2], chosen, head=head) == [5]


def test_classes_that_share_one_certificate_are_each_judged() -> None:
    head = am.Head([[0.0], [2.0], [1.0], [1.0], [3.0]], [0.0, 0.0, -1.0, 0.5, 0.0])
    shared = weights({0: 0.5, 1: 0.5})
    claims = [claim(2, NO, upper=-1.0, certificate=shared), claim(3, NO, upper=0.0, certificate=shared)]
    assert failures(*claims, head=head) == [3]
    assert failures(claims[0], claim(4, NO, upper=0.0, certificate=shared), head=head) == [4]


# ---------------------------------------------------------------------- rationals alone


def test_rationals_alone_prove_what_they_can_and_progress_is_told() -> None:
    heard: list[tuple[int, int]] = []
    claims = [
        claim(4, NO, upper=0.0, certificate=MIDDLE),
        claim(0, YES, 2.0, witness=CORNER),
        claim(1, NO, upper=0.0, certificate=MIDDLE),
        claim(2, NO, upper=0.0),
    ]
    found = failed_in_rationals(
        Checker(SQUARE, BOX), claims, lambda step: heard.append((step.done, step.total))
    )
    assert [failure.key for failure in found] == [1, 2]
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]
