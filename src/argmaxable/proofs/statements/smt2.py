"""A statement in SMT-LIB 2.6, for any solver of linear real arithmetic: z3, cvc5, OpenSMT, Yices, …

The assertions say that the class beats all rivals of the proof at a point of the box. A solver that answers
`unsat` has proven the class unargmaxable by itself: the file holds no weights of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np

from argmaxable.proofs.statements.statement import Statement


def smt2_lines(statement: Statement) -> Iterator[str]:
    """The lines of the file."""
    yield from (f"; {line}" for line in statement.title)
    yield "; A solver proves this by answering unsat."
    yield "(set-logic QF_LRA)"
    for feature, (lo, hi) in enumerate(zip(statement.lo.tolist(), statement.hi.tolist(), strict=True)):
        yield f"(declare-const x{feature} Real)"
        if lo > -np.inf:
            yield f"(assert (>= x{feature} {_number(lo)}))"
        if hi < np.inf:
            yield f"(assert (<= x{feature} {_number(hi)}))"
    logits = zip(statement.classes, statement.rows.tolist(), statement.biases.tolist(), strict=True)
    for class_id, row, bias in logits:
        yield f"(define-fun s{class_id} () Real {_sum(row, bias)})"
    for rival in statement.rivals:
        yield f"(assert (> s{statement.class_id} s{rival}))"
    yield "(check-sat)"


def _sum(row: Iterable[float], bias: float) -> str:
    """b + w·x without the features whose weight is 0; a sum needs two terms."""
    terms = [f"(* {_number(weight)} x{feature})" for feature, weight in enumerate(row) if weight]
    return f"(+ {_number(bias)} {' '.join(terms)})" if terms else _number(bias)


def _number(value: float) -> str:
    """A float's exact decimal expansion: SMT-LIB has no negative literals and no exponents."""
    digits = f"{Decimal(abs(value)):f}"
    decimal = digits if "." in digits else f"{digits}.0"
    return f"(- {decimal})" if value < 0 else decimal
