"""The answer: what it counts, what it is about, and what is not known, in the same words everywhere."""

from __future__ import annotations

from typing import Any

import pytest

import argmaxable as am
from argmaxable.report.answer import Tally, answer, domain_line

BOX, EVERYWHERE = am.Box(-100, 100), am.Everywhere()
PROVEN = am.DomainSource(am.Basis.PROVEN, "Relu")
ASSUMED = am.DomainSource(am.Basis.ASSUMED, "the file does not say what reaches the output layer")
GIVEN = am.DomainSource(am.Basis.GIVEN)


def tally(wanted: int, unargmaxable: int = 0, unknown: int = 0, **more: Any) -> Tally:
    settings: dict[str, Any] = {"classes": wanted, "is_complete": True, "domain": BOX, **more}
    return Tally(wanted=wanted, unargmaxable=unargmaxable, unknown=unknown, **settings)


@pytest.mark.parametrize("source", [None, GIVEN, ASSUMED], ids=["unknown", "given", "assumed"])
def test_an_answer_over_a_box_does_not_speak_of_every_input(source: am.DomainSource | None) -> None:
    never = "2 of 6 classes can never be predicted for features within ±100."
    assert answer(tally(6, 2, source=source)) == never
    assert answer(tally(6, source=source)) == "All 6 classes can be predicted for features within ±100."


@pytest.mark.parametrize(
    ("domain", "source"), [(am.Box(0, 6), PROVEN), (EVERYWHERE, GIVEN), (am.Box(-1e400, 1e400), None)]
)
def test_an_answer_about_all_that_can_happen_says_so(
    domain: am.Domain, source: am.DomainSource | None
) -> None:
    asked = {"domain": domain, "source": source}
    assert answer(tally(6, 2, **asked)) == "2 of 6 classes can never be predicted, whatever the input."
    assert answer(tally(6, **asked)) == "All 6 classes can be predicted."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (tally(1), "The only class is always predicted."),
        (tally(1, classes=9, domain=EVERYWHERE), "The class examined can be predicted."),
        (tally(1, 1, classes=9, domain=EVERYWHERE), "The class examined can never be predicted, whatever the "
         "input."),
        (tally(4, 1, 1, domain=EVERYWHERE), "1 of 4 classes can never be predicted, whatever the input; 1 is "
         "undecided."),
        (tally(4, 0, 2, domain=EVERYWHERE), "2 of 4 classes can be predicted; 2 are undecided."),
    ],
)  # fmt: skip
def test_numbers_agree_with_their_nouns_and_verbs(asked: Tally, said: str) -> None:
    assert answer(asked) == said


@pytest.mark.parametrize(
    ("unargmaxable", "unknown", "said"),
    [
        (0, 6, "Not finished: 6 of 6 classes are undecided."),
        (0, 1, "Not finished: 1 of 6 classes is undecided. The other 5 can be predicted."),
        (1, 5, "Not finished: 5 of 6 classes are undecided. The other class can never be predicted, "
         "whatever the input."),
        (2, 1, "Not finished: 1 of 6 classes is undecided. Of the other 5, 2 can never be predicted, "
         "whatever the input."),
    ],
)  # fmt: skip
def test_a_run_that_was_cut_short_begins_with_what_is_not_known(
    unargmaxable: int, unknown: int, said: str
) -> None:
    assert answer(tally(6, unargmaxable, unknown, is_complete=False, domain=EVERYWHERE)) == said


def test_over_a_hull_the_answer_does_not_say_never() -> None:
    domain = am.Hull([[0.0, 1.0], [1.0, 0.0]])
    assert (
        answer(tally(6, 2, domain=domain))
        == "2 of 6 classes can't be predicted at any mixture of these 2 inputs."
    )


@pytest.mark.parametrize(
    ("domain", "scope"),
    [
        (am.Box(0, float("inf")), "for features from 0 upwards"),
        (am.Box(-float("inf"), 6), "for features up to 6"),
        (am.Box(-1, 6), "for features from −1 to 6"),
        (am.Box([0, 0], [1, 2]), "for features within the ranges of the domain"),
        (am.Ball(10), "for feature vectors of length at most 10"),
        (am.RMSNorm(1.0), "for outputs of the RMSNorm"),
        (am.Hull([[0.0, 1.0]]), "at this one input"),
    ],
)
def test_every_domain_says_what_the_answer_is_about(domain: am.Domain, scope: str) -> None:
    assert answer(tally(6, 2, domain=domain)) == f"2 of 6 classes can never be predicted {scope}."


def test_the_second_line_says_where_the_domain_comes_from() -> None:
    assert domain_line(BOX, None) == "Domain: box ±100."
    assert domain_line(BOX, GIVEN) == "Domain: box ±100, as asked."
    assert domain_line(am.Box(0, 6), PROVEN) == "Domain: box [0, 6], which the file itself proves: Relu."
    assumed = domain_line(BOX, ASSUMED)
    assert assumed.startswith("Domain: box ±100, an assumption: the file does not say")
    assert assumed.endswith("Choose another with --domain.")
