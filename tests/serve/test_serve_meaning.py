"""What pages say about one class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.serve.rows import ClassRow, class_rows
from argmaxable.serve.sentences import distance, witness_in_words
from argmaxable.store import Named

MIXTURE = am.Certificate(np.array([5, 6, 7, 8]), np.array([0.00001, 0.5, 0.3, 0.2]))


def verdict(status: am.Status, lower: float, upper: float, **more: Any) -> am.Verdict:
    return am.Verdict(3, "x", status, lower, upper, am.Method.INTERIOR_POINT, am.Strength.FLOAT64, **more)


def row_of(verdict: am.Verdict, *names: Named) -> ClassRow:
    (row,) = class_rows([verdict], {name.class_id: name for name in names})
    return row


CAN, NEVER, OPEN = am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE, am.Status.UNDECIDED
LEAD = "Its best lead over all other classes is"


@pytest.mark.parametrize(
    ("status", "lower", "upper", "said"),
    [
        (CAN, 4.829, 1349.5, f"{LEAD} at least 4.82 and at most 1,350. It would still win somewhere if its "
         "bias were lower by less than 4.82."),
        (CAN, 0.5, math.inf, f"{LEAD} at least 0.5. It would still win somewhere if its bias were lower by "
         "less than 0.5."),
        (NEVER, -1.011, -0.01299, f"{LEAD} between −1.02 and −0.0129: it always lags. Raising its "
         "bias by up to 0.0129 is not enough. Raising its bias by more than 1.02 lets it win somewhere."),
        (NEVER, -2.0, 0.0, f"{LEAD} between −2 and 0: it never leads. Raising its bias by more than 2 lets "
         "it win somewhere."),
        (NEVER, -math.inf, -1e-9, f"{LEAD} at most −1e-09: it always lags. Raising its bias by up to 1e-09 "
         "is not enough."),
        (NEVER, 0.0, 0.0, f"{LEAD} exactly 0: it ties. Any rise of its bias is enough."),
        (OPEN, -1.0, 1.0, ""),
    ],
)  # fmt: skip
def test_the_distance_is_said_with_bounds_on_the_weak_side(
    status: am.Status, lower: float, upper: float, said: str
) -> None:
    found = verdict(status, lower, upper)
    assert distance(found, row_of(found)) == said


@pytest.mark.parametrize(
    ("status", "lower", "upper", "shown"),
    [
        (CAN, 4.829, 1349.5, "≥ 4.82"),
        (NEVER, -1.011, -0.01299, "−1.02 … −0.0129"),
        (NEVER, -math.inf, -0.5, "≤ −0.5"),
        (NEVER, 0.0, 0.0, "0"),
        (OPEN, -math.inf, math.inf, "–"),
        (OPEN, -1.0, math.inf, "≥ −1"),
    ],
)
def test_a_margin_is_shown_by_its_bounds(status: am.Status, lower: float, upper: float, shown: str) -> None:
    assert row_of(verdict(status, lower, upper)).margin == shown


def test_the_heaviest_blockers_are_named_and_the_others_counted() -> None:
    row = row_of(verdict(NEVER, -1, -1, certificate=MIXTURE), Named(6, "six", CAN), Named(7, "seven", NEVER))
    assert [(each.label, each.percent, each.role) for each in row.references] == [
        ("six", "50 %", "can"), ("seven", "30 %", "never"), ("class 8", "20 %", "open"),
    ]  # fmt: skip
    assert row.others == 1


def test_a_certificate_of_a_class_that_can_win_blocks_nobody() -> None:
    assert row_of(verdict(CAN, 1, 2, certificate=MIXTURE)).references == ()


@pytest.mark.parametrize(
    ("domain", "formula"),
    [(am.Box(-1.0, 1.0), "z = 2⁻³ · (w − mean"), (am.RMSNorm(np.ones(2)), "z = 2⁻³ · gain · (w − mean")],
)
def test_an_own_direction_is_written_as_a_formula(domain: am.Domain, formula: str) -> None:
    found = verdict(CAN, 1, 2, witness=am.OwnDirection(-3))
    assert formula in witness_in_words(found, domain)


def test_a_witness_that_float64_is_too_coarse_for_is_told_as_that() -> None:
    found = verdict(CAN, 1, 2, witness=am.FinePoint((1, 2), -80))
    assert "between the numbers of float64" in witness_in_words(found, am.Box(-1.0, 1.0))


def test_a_witness_of_an_unargmaxable_class_is_no_win() -> None:
    found = verdict(NEVER, -1, -0.5, witness=am.Point(np.zeros(2)))
    assert "does not win" in witness_in_words(found, am.Box(-1.0, 1.0))
