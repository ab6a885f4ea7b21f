"""Claims about probabilities, each with one thing wrong, against values known in closed form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.ceilings import failed_ceilings
from argmaxable.check.checker import Checker
from argmaxable.check.mixtures import mixture_bound
from argmaxable.check.probabilities import CeilingChecker, never_enters
from argmaxable.core.ceiling import Ceiling, CeilingClaim, Entry, Membership, Mixture
from argmaxable.core.verdict import Certificate

# Scores x, 0, −x and −10 over [−1, 1]. The first is most likely at 1, the second and the last at 0.
LINE = am.Head([[1.0], [0.0], [-1.0], [0.0]], [0.0, 0.0, 0.0, -10.0])
BOX = am.Box(-1, 1)


def softmax(class_id: int, x: float, temperature: float = 1.0) -> float:
    scores = [x, 0.0, -x, -10.0]
    return 1 / sum(math.exp((score - scores[class_id]) / temperature) for score in scores)


def at(x: float) -> np.ndarray:
    return np.array([x])


def mixture(on: dict[int, float], margin: float = 0.0, basis: int = 0) -> Mixture:
    return Mixture(Certificate(np.array(list(on)), np.array(list(on.values())), basis), margin)


def claim(class_id: int, lower: float = 0.0, upper: float = 1.0, **more: Any) -> CeilingClaim:
    member = None
    if "entry" in more:
        member = Membership(class_id, "", more.pop("entry"), 0.0, more.pop("entry_point", None))
    return CeilingClaim(Ceiling(class_id, "", lower, upper, **more), member)


def failures(
    *claims: CeilingClaim,
    head: am.Head = LINE,
    domain: am.Domain = BOX,
    temperature: float = 1.0,
    top_p: float | None = None,
) -> list[Any]:
    checker = Checker(head, domain)
    return [one.key for one in failed_ceilings(checker, claims, temperature=temperature, top_p=top_p)]


FIRST, SECOND, LAST = softmax(0, 1.0), softmax(1, 0.0), softmax(3, 0.0)
# Σλ_i exp(H) = 2 for halves: 1/(1 + 2) for a class in the middle of two.
THIRD = 1 / 3
MORE, LESS = 1 + 1e-9, 1 - 1e-9
SOUND = {
    "nothing": claim(0),
    "a probability at a point": claim(0, FIRST * LESS, point=at(1.0)),
    "a tangent": claim(0, 0.0, FIRST * MORE, point=at(1.0)),
    "both": claim(0, FIRST * LESS, FIRST * MORE, point=at(1.0)),
    "a tangent elsewhere": claim(1, 0.0, SECOND * MORE, point=at(0.0)),
    "a mixture": claim(1, 0.0, THIRD * MORE, mixture=mixture({0: 0.5, 2: 0.5})),
    "a mixture solved for": claim(1, 0.0, THIRD * MORE, mixture=mixture({0: 0.4, 2: 0.4}, basis=2)),
    "a mixture beside a point": claim(
        1, SECOND * LESS, THIRD * MORE, point=at(0.0), mixture=mixture({0: 0.5, 2: 0.5})
    ),
}
FORGED = {
    "too likely at its point": claim(0, FIRST * MORE, point=at(1.0)),
    "likely elsewhere": claim(0, FIRST * LESS, point=at(0.9)),
    "a point outside": claim(0, FIRST * LESS, point=at(1.5)),
    "a point too long": claim(0, FIRST * LESS, point=np.array([1.0, 0.0])),
    "a probability without a point": claim(0, 0.1),
    "a probability beside a mixture alone": claim(1, 0.1, THIRD * MORE, mixture=mixture({0: 0.5, 2: 0.5})),
    "a ceiling too low": claim(0, 0.0, FIRST * LESS, point=at(1.0)),
    "a tangent that allows more": claim(0, 0.0, FIRST * MORE, point=at(0.0)),
    "a ceiling without anything": claim(0, 0.0, 0.9),
    "a mixture too low": claim(1, 0.0, THIRD * LESS, mixture=mixture({0: 0.5, 2: 0.5})),
    "a mixture that has too little entropy": claim(1, 0.0, THIRD * MORE, mixture=mixture({0: 0.25, 2: 0.75})),
    "a mixture with a margin too small": claim(0, 0.0, 0.9, mixture=mixture({1: 1.0}, margin=0.99)),
    "a mixture that solves nothing": claim(0, 0.0, 0.9, mixture=mixture({1: 0.5, 3: 0.5}, basis=2)),
    "a mixture beside a tangent": claim(0, 0.0, 0.5, point=at(1.0), mixture=mixture({1: 1.0}, margin=1.0)),
    "a negative probability": claim(0, -0.1),
    "a probability above 1": claim(0, 0.0, 1.1),
    "ends that are crossed": claim(0, 0.5, 0.4, point=at(1.0)),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_what_the_evidence_proves_passes(sound: CeilingClaim) -> None:
    assert failures(sound) == []


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_the_evidence_does_not_prove_is_named_once(forged: CeilingClaim) -> None:
    other = claim(3, LAST * LESS, LAST * MORE, point=at(0.0))
    assert failures(forged, other) == [forged.class_id]


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_temperature_divides_the_scores(temperature: float) -> None:
    true = softmax(0, 1.0, temperature)
    assert failures(claim(0, true * LESS, true * MORE, point=at(1.0)), temperature=temperature) == []
    assert failures(claim(0, true * MORE, point=at(1.0)), temperature=temperature) == [0]
    assert failures(claim(0, 0.0, true * LESS, point=at(1.0)), temperature=temperature) == [0]
    # One rival with a margin of at most 1: P ≤ 1/(1 + exp(−1/T)).
    rival = 1 / (1 + math.exp(-1 / temperature))
    by_rival = {"mixture": mixture({1: 1.0}, margin=1.0), "temperature": temperature}
    assert mixture_bound(Checker(LINE, BOX), 0, **by_rival) == pytest.approx(rival, rel=1e-12)
    assert failures(
        claim(0, 0.0, rival * LESS, mixture=mixture({1: 1.0}, margin=1.0)), temperature=temperature
    ) == [0]


def test_a_mixture_bound_is_never_below_its_formula_and_hardly_above() -> None:
    checker = Checker(LINE, BOX)
    for on, margin in (({0: 0.5, 2: 0.5}, 0.0), ({0: 3.0, 2: 3.0, 3: 1.0}, 2.0), ({0: 0.3, 2: 0.3}, 1e-9)):
        found = mixture_bound(checker, 1, mixture(on, margin), temperature=1.0)
        with flint.ctx.workprec(300):
            total = sum((flint.arb(value) for value in on.values()), flint.arb(0))
            shares = [flint.arb(value) / total for value in on.values()]
            entropy = -sum((share * share.log() for share in shares), flint.arb(0))
            true = 1 / (1 + (entropy - flint.arb(margin)).exp())
            assert true <= flint.arb(found) <= true * (1 + flint.arb(2) ** -50)


def test_a_mixture_that_proves_nothing_allows_everything() -> None:
    checker = Checker(LINE, BOX)
    assert mixture_bound(checker, 0, mixture({1: 1.0}, margin=0.99), temperature=1.0) == 1.0
    assert mixture_bound(checker, 0, mixture({1: 0.5, 2: 0.5}, basis=2), temperature=1.0) == 1.0
    assert mixture_bound(checker, 1, mixture({0: 0.5, 2: 0.5, 3: 0.0}), temperature=1.0) < 0.34
    assert mixture_bound(checker, 1, mixture({0: 0.5, 2: 0.5}, margin=1e300), temperature=1e-9) == 1.0


def test_a_large_basis_has_no_weights_of_its_own_and_so_no_entropy() -> None:
    """Three rows for two equations: the margin is proven, but by weights that are not known."""
    spread = mixture({0: 0.25, 2: 0.25, 3: 0.5}, basis=3)
    flat = am.Head([[1.0], [0.0], [-1.0], [0.0]])
    assert Checker(flat, BOX).proves(1, spread.certificate, 0.0)
    assert mixture_bound(Checker(flat, BOX), 1, spread, temperature=1.0) == 1.0


def test_what_is_proven_to_the_last_digit_may_be_claimed() -> None:
    ids, here = np.array([0]), np.ones((1, 1))
    bounds = CeilingChecker(Checker(LINE, BOX))
    lower, upper = float(bounds.reached(ids, here)[0]), float(bounds.allowed(ids, here)[0])
    assert failures(claim(0, lower, upper, point=at(1.0))) == []
    assert failures(claim(0, math.nextafter(lower, 1), upper, point=at(1.0))) == [0]
    assert failures(claim(0, lower, math.nextafter(upper, 0), point=at(1.0))) == [0]
    middle = mixture({0: 0.5, 2: 0.5})
    upper = mixture_bound(Checker(LINE, BOX), 1, middle, temperature=1.0)
    assert failures(claim(1, 0.0, upper, mixture=middle)) == []
    assert failures(claim(1, 0.0, math.nextafter(upper, 0), mixture=middle)) == [1]
    mass = float(bounds.mass_above(ids, here)[0])
    entering = claim(0, entry=Entry.YES, entry_point=at(1.0))
    assert failures(entering, top_p=mass) == [0]
    assert failures(entering, top_p=math.nextafter(mass, 1)) == []


def test_an_only_class_is_certain_whatever_is_claimed() -> None:
    alone = am.Head([[1.0]])
    assert failures(claim(0, 1.0, 1.0), head=alone) == []
    assert failures(claim(0, 1.0, 1.0, point=np.zeros(2)), head=alone) == [0]
    assert failures(claim(0, 1.0, 2.0), head=alone) == [0]
    assert CeilingChecker(Checker(alone, BOX)).allowed(np.array([0]), np.zeros((1, 1))).tolist() == [1.0]


# ---------------------------------------------------------------------- the nucleus

# At x = 0 the first three tie: the other two have 2/3 of the mass but for e^−10.
TIED = 2 / (3 + math.exp(-10))


@pytest.mark.parametrize(("top_p", "failed"), [(TIED * MORE, []), (TIED * LESS, [1]), (1.0, []), (0.1, [1])])
def test_a_class_enters_where_those_above_it_have_less_than_p(top_p: float, failed: list[int]) -> None:
    assert failures(claim(1, entry=Entry.YES, entry_point=at(0.0)), top_p=top_p) == failed


def test_an_entry_needs_a_point_of_the_domain() -> None:
    assert failures(claim(1, entry=Entry.YES), top_p=0.9) == [1]
    assert failures(claim(0, entry=Entry.YES, entry_point=at(1.5)), top_p=0.9) == [0]
    assert failures(claim(0, entry=Entry.YES, entry_point=np.zeros(2)), top_p=0.9) == [0]
    assert failures(claim(0, entry=Entry.UNKNOWN), top_p=0.9) == []


@pytest.mark.parametrize("top_p", [None, 1.5, math.nan])
def test_an_answer_about_a_nucleus_needs_its_mass(top_p: float | None) -> None:
    claims = claim(1, entry=Entry.YES, entry_point=at(0.0)), claim(0), claim(3, entry=Entry.NO)
    assert failures(*claims, top_p=top_p) == [1, 3]


def test_a_low_ceiling_keeps_a_class_out() -> None:
    """Those above have at least 1 − 4K."""
    upper = LAST * MORE
    never = claim(3, 0.0, upper, point=at(0.0), entry=Entry.NO)
    assert failures(never, top_p=0.999) == []
    assert failures(never, top_p=1.0) == [3]
    assert failures(claim(1, 0.0, 0.3334, point=at(0.0), entry=Entry.NO), top_p=0.1) == [1]
    assert never_enters(0.025, 4, float(1 - 4 * Fraction(0.025)) - 2.0**-53)
    assert never_enters(0.25, 3, 0.25)
    assert not never_enters(0.25, 3, math.nextafter(0.25, 1))


def test_one_false_end_among_more_than_a_batch_is_found() -> None:
    for bad in (0, 1023, 1024, 1029):
        claims = [claim(0, FIRST * (MORE if k == bad else LESS), point=at(1.0)) for k in range(1030)]
        assert len(failures(*claims)) == 1
