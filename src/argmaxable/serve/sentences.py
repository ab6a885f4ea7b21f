"""What a verdict about one class means, in sentences for people who know none of the theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from argmaxable.core.verdict import FinePoint, OwnDirection, Status, Verdict
from argmaxable.questions.explain.wording import deficit, lead

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.questions.explain.margin import Margin
    from argmaxable.report.page.wording import Noun
    from argmaxable.serve.rows import ClassRow

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def meaning(verdict: Verdict, noun: Noun, *, is_proven: bool) -> str:
    """The verdict itself."""
    if not is_proven:
        return "This verdict was published elsewhere and was not checked here."
    if verdict.status is Status.ARGMAXABLE:
        return (
            f"Some input of the domain gives this {noun.one} a higher score than all others. That input is "
            "known and was checked; whether real data ever reaches it is a separate question."
        )
    if verdict.status is Status.UNDECIDED:
        return f"Nothing is proven about this {noun.one}: {verdict.reason or 'no verdict yet'}."
    if verdict.is_tied:
        count = len(verdict.tied_with)
        others = "another class has" if count == 1 else f"{count:,} other classes have"
        return (
            f"It can never win alone: {others} the very same weights and bias, so that their scores are "
            "always equal. A framework's argmax returns the first of them."
        )
    blocked = _blocked(verdict, noun)
    return (
        f"No input of the domain gives this {noun.one} a higher score than all other classes, "
        "whatever the rest of "
        f"the model does: {blocked}"
    )


def _blocked(verdict: Verdict, noun: Noun) -> str:
    count = 0 if verdict.certificate is None else int((verdict.certificate.weights > 0).sum())
    if count < 2:
        return f"one other {noun.one} always scores at least as high."
    return (
        f"a mixture of the scores of {noun.count(count)} is at least as high at every input, so the "
        "highest of them is too."
    )


def distance(verdict: Verdict, row: ClassRow) -> str:
    """How far the class is from the other verdict, as a change of its bias; "" where that is not known.

    A bias that grows by δ raises the class's lead over every other by δ at every input, and so its margin.
    """
    if verdict.status is Status.ARGMAXABLE and row.lower:
        at_most = f" and at most {row.upper}" if row.upper else ""
        return (
            f"Its best lead over all other classes is at least {row.lower}{at_most}. It would still win "
            f"somewhere if its bias were lower by less than {row.lower}."
        )
    if verdict.status is not Status.UNARGMAXABLE or not row.upper:
        return ""
    if row.lower == row.upper == "0":
        return "Its best lead over all other classes is exactly 0: it ties. Any rise of its bias is enough."
    return " ".join(part for part in (_lag(row), _not_enough(row), _enough(row)) if part)


def _lag(row: ClassRow) -> str:
    between = f"between {row.lower} and {row.upper}" if row.lower else f"at most {row.upper}"
    does = "never leads" if row.upper == "0" else "always lags"
    return f"Its best lead over all other classes is {between}: it {does}."


def _not_enough(row: ClassRow) -> str:
    return "" if row.upper == "0" else f"Raising its bias by up to {row.upper.lstrip('−')} is not enough."


def _enough(row: ClassRow) -> str:
    if not row.lower:
        return ""
    return f"Raising its bias by more than {row.lower.lstrip('−')} lets it win somewhere."


def exact_margin(verdict: Verdict, margin: Margin) -> str:
    """The same as `argmaxable explain` tells it, mostly to seven digits; "" where nothing more is known."""
    if verdict.is_tied or math.isinf(margin.upper):  # a lead that has no bound says nothing
        return ""
    told = lead(margin) if verdict.status is Status.ARGMAXABLE else deficit(margin)
    return f"More closely: {told}." if told else ""


def witness_in_words(verdict: Verdict, domain: Domain) -> str:
    """Where the class wins, or comes as near to it as is known; "" without a witness."""
    if verdict.witness is None:
        return ""
    does = "wins" if verdict.status is Status.ARGMAXABLE else "does not win, but gets to its lower bound"
    if isinstance(verdict.witness, FinePoint):
        return f"It {does} at a vector of features between the numbers of float64, which the proofs have."
    if not isinstance(verdict.witness, OwnDirection):
        return f"It {does} at the following vector of features."
    power = f"2{str(verdict.witness.exponent).translate(_RAISED)}"
    gain = "gain · " if not domain.is_identity else ""
    return (
        f"It {does} in its own direction, z = {power} · {gain}(w − mean of all rows), moved into the domain "
        "where it sticks out. This vector is rebuilt from the weights when it is checked, so none is stored."
    )
