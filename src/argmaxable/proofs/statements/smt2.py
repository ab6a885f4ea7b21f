"""A statement in SMT-LIB 2.6, for any solver of linear real arithmetic: z3, cvc5, OpenSMT, Yices, …

The plain statement: at some point x of the box, s_c > s_i for every rival i of the proof. A solver that says
`unsat` has proven the class unargmaxable. With a hundred features z3 takes more than minutes for it. So the
file asserts something weaker:

    (y_c > y_i for every rival i, and Λ y_c ≤ Σ λ_i y_i)   or   Λ s_c > Σ λ_i s_i

for some numbers y and some point x of the box, with the proof's weights λ and their sum Λ. Where the plain
statement is true, so is this one (take y = s). If this one is unsatisfiable, so is the plain one. It takes
solvers seconds. The weights need not be trusted, because wrong ones only make it satisfiable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal

from argmaxable.proofs.statements.statement import Statement


def smt2_lines(statement: Statement, weights: Sequence[int] | None) -> Iterator[str]:
    """The lines of the file; without weights of the rivals (`rational_weights`) it states things plainly."""
    yield from (f"; {line}" for line in statement.title)
    yield "; A solver proves this by answering unsat."
    yield "(set-logic QF_LRA)"
    for feature, (lo, hi) in enumerate(zip(statement.lo.tolist(), statement.hi.tolist(), strict=True)):
        yield f"(declare-const x{feature} Real)"
        if lo > -math.inf:
            yield f"(assert (>= x{feature} {_number(lo)}))"
        if hi < math.inf:
            yield f"(assert (<= x{feature} {_number(hi)}))"
    logits = zip(statement.classes, statement.rows.tolist(), statement.biases.tolist(), strict=True)
    for class_id, row, bias in logits:
        terms = [f"(* {_number(weight)} x{feature})" for feature, weight in enumerate(row) if weight]
        yield f"(define-fun s{class_id} () Real {_sum([_number(bias), *terms])})"
    if weights is None:
        yield f"(assert {_beats_all(statement, 's')})"
    else:
        yield from _weakened(statement, weights)
    yield "(check-sat)"


def _weakened(statement: Statement, weights: Sequence[int]) -> Iterator[str]:
    """What follows from the plain statement and is refuted at once."""
    yield from (
        "; If class c beats all rivals i at x, then what follows is true with y = s, whatever the weights:",
        ";   (y_c > y_i for all i, and the weighted sum of all y_c - y_i is not positive)",
        ";   or the weighted sum of all s_c - s_i is positive at x.",
        "; So if what follows is unsatisfiable, class c beats them all nowhere.",
    )
    yield from (f"(declare-const y{class_id} Real)" for class_id in statement.classes)
    above = {name: _is_above_mean(statement, weights, name) for name in "ys"}
    yield f"(assert (or (and {_beats_all(statement, 'y')} (not {above['y']})) {above['s']}))"


def _beats_all(statement: Statement, name: str) -> str:
    gaps = [f"(> {name}{statement.class_id} {name}{rival})" for rival in statement.rivals]
    return gaps[0] if len(gaps) == 1 else f"(and {' '.join(gaps)})"


def _is_above_mean(statement: Statement, weights: Sequence[int], name: str) -> str:
    """Λ s_c > Σ λ_i s_i: the weighted sum of all gaps is positive."""
    pairs = zip(weights, statement.rivals, strict=True)
    terms = [f"(* {weight}.0 {name}{rival})" for weight, rival in pairs if weight]
    return f"(> (* {sum(weights)}.0 {name}{statement.class_id}) {_sum(terms)})"


def _sum(terms: Sequence[str]) -> str:
    """A sum of SMT-LIB has two terms at least."""
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def _number(value: float) -> str:
    """A float's exact decimal expansion: SMT-LIB has no negative literals and no exponents."""
    digits = f"{Decimal(abs(value)):f}"
    decimal = digits if "." in digits else f"{digits}.0"
    return f"(- {decimal})" if value < 0 else decimal
