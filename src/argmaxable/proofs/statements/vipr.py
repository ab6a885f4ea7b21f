"""A statement with its proof as a VIPR certificate, which viprchk checks in rational arithmetic.

VIPR (Cheung, Gleixner, Steffy: Verifying Integer Programming Results, IPCO 2017) is about linear programmes.
Ours has the margin t as its objective, to be maximised under t ≤ s_c − s_i for every rival i. The class is
unargmaxable if t ≤ 0. The weights λ of the certificate prove it by one sum of constraints:

    Σ λ_i (t − s_c + s_i ≤ 0)  +  Σ λ_i (s_c − w_c·x = b_c)  −  Σ λ_i (s_i − w_i·x = b_i)  +  u·(lo ≤ x ≤ hi)

leaves Σ λ_i t ≤ h(u) + Σ λ_i (b_c − b_i), with u = Σ λ_i (w_c − w_i) and h(u) the largest u·x over the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.solutions import exact_weights, with_independent_basis
from argmaxable.exact.dyadic import Dyadic
from argmaxable.proofs.statements.statement import Statement

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker

Terms = Iterable[tuple[int, Fraction | int]]


@dataclass(frozen=True)
class _Bound:
    """One end of a feature's range: L (x ≤ limit) or G (x ≥ limit)."""

    feature: int
    sense: str
    limit: float

    def __str__(self) -> str:
        limit, term = Fraction(self.limit), _listed([(1 + self.feature, 1)])
        return f"{self.sense}{self.feature} {self.sense} {limit} {term}"


def vipr_lines(statement: Statement, weights: tuple[int, ...]) -> Iterator[str]:
    """The lines of the file; `weights` are those of the rivals, as `rational_weights` gives them."""
    features, classes = statement.rows.shape[1], statement.classes
    bounds = list(_bounds(statement))
    first_logit = 1 + features  # variables are numbered: t, then x, then s
    yield from (f"% {line}" for line in statement.title)
    yield "% t is the margin: it is to be at most 0 wherever t ≤ s_c − s_i holds for each rival i of class c."
    yield "VER 1.0"
    yield f"VAR {1 + features + len(classes)}"
    yield " ".join(["t", *(f"x{feature}" for feature in range(features)), *(f"s{k}" for k in classes)])
    yield "INT 0"
    yield f"OBJ max {_listed([(0, 1)])}"
    yield f"CON {len(bounds) + 2 * len(classes) - 1} {len(bounds)}"
    yield from map(str, bounds)
    for place, (row, bias) in enumerate(zip(statement.rows, statement.biases.tolist(), strict=True)):
        used = [(1 + j, -Fraction(row[j])) for j in np.flatnonzero(row).tolist()]
        yield f"logit{classes[place]} E {Fraction(bias)} {_listed([(first_logit + place, 1), *used])}"
    for place, rival in enumerate(statement.rivals, 1):
        yield f"above{rival} L 0 {_listed([(0, 1), (first_logit, -1), (first_logit + place, 1)])}"
    yield "RTP range -inf 0"
    yield "SOL 0"
    yield "DER 2"
    total, last = sum(weights), len(bounds) + 2 * len(classes) - 1
    yield f"sum L 0 {_listed([(0, total)])} {{ lin {_listed(_multipliers(statement, weights, bounds))} }} -1"
    yield f"margin L 0 OBJ {{ lin {_listed([(last, Fraction(1, total))])} }} -1"


def rational_weights(checker: Checker, statement: Statement) -> tuple[int, ...] | None:
    """Whole numbers for the rivals that prove the statement: its certificate's exact weights, up to a factor.
    None where they can't be computed: of many solutions, the one that is tried may have negative weights."""
    certificate = with_independent_basis(checker.head, checker.domain, statement.certificate)
    weights: Dyadic | None = Dyadic.of(certificate.weights)
    if certificate.basis:
        weights = exact_weights(checker.head, checker.domain, statement.class_id, certificate)
    if weights is None:
        return None
    by_class = dict(zip(certificate.classes.tolist(), map(int, weights.integers), strict=True))
    found = tuple(by_class[rival] for rival in statement.rivals)
    common = math.gcd(*found)
    found = tuple(weight // common for weight in found)
    u, offset = _combined(statement, found)
    return found if checker.domain.support_is_at_most(u, offset * -1) else None


def _multipliers(statement: Statement, weights: tuple[int, ...], bounds: list[_Bound]) -> Terms:
    """The constraints that are added up (by number), and how often each is taken."""
    u, _ = _combined(statement, weights)
    # A lower bound is taken a negative number of times, which turns it round.
    wanted = {1: "L", -1: "G", 0: ""}
    signs = u.sign().tolist()
    for number, bound in enumerate(bounds):
        if wanted[signs[bound.feature]] == bound.sense:
            yield number, u[bound.feature].fraction()
    yield len(bounds), sum(weights)
    for number, weight in enumerate(weights, len(bounds) + 1):
        yield number, -weight
    for number, weight in enumerate(weights, len(bounds) + 1 + len(weights)):
        yield number, weight


def _combined(statement: Statement, weights: tuple[int, ...]) -> tuple[Dyadic, Dyadic]:
    """u = Σ λ_i (w_c − w_i) and Σ λ_i (b_c − b_i)."""
    factors = Dyadic(np.array([sum(weights), *(-weight for weight in weights)], dtype=object), 0)
    return factors @ Dyadic.of(statement.rows), factors @ Dyadic.of(statement.biases)


def _bounds(statement: Statement) -> Iterator[_Bound]:
    for feature, (lo, hi) in enumerate(zip(statement.lo.tolist(), statement.hi.tolist(), strict=True)):
        if lo > -math.inf:
            yield _Bound(feature, "G", lo)
        if hi < math.inf:
            yield _Bound(feature, "L", hi)


def _listed(terms: Terms) -> str:
    """How many there are, then number and coefficient of each; what is 0 is left out."""
    used = [f"{number} {value}" for number, value in terms if value]
    return " ".join([str(len(used)), *used])
