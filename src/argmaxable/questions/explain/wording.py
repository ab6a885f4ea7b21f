"""Explanations in plain words, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status
from argmaxable.questions.best_rank.wording import span

if TYPE_CHECKING:
    from argmaxable.core.best_rank import BestRank
    from argmaxable.questions.explain.explanation import Competitor, Explanation
    from argmaxable.questions.explain.growth import Growth
    from argmaxable.questions.explain.margin import Margin

# Classes of a mixture that are named; --json has all of them.
_MOST_NAMED = 8


def first_lines(explanation: Explanation) -> list[str]:
    """The verdict, what holds the class down and by how much: all that an explanation just begun has."""
    verdict = explanation.verdict
    opening = f"{visible(verdict.label)} (class {verdict.class_id}) {_verdict(explanation)}"
    return [opening, *_under_headings(_first(explanation))]


def last_lines(explanation: Explanation) -> list[str]:
    """What takes longer to find: how far a row must grow, the best rank, the input and who is near there."""
    return list(_under_headings(_last(explanation)))


def _under_headings(rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    return (f"  {heading:<10} {text}" for heading, text in rows)


def _verdict(explanation: Explanation) -> str:
    verdict, domain = explanation.verdict, explanation.domain
    if verdict.status is Status.ARGMAXABLE:
        return f"can be predicted over the domain {domain}."
    if verdict.status is Status.UNDECIDED:
        return f"is undecided over the domain {domain}: {verdict.reason}."
    if explanation.margin.upper < 0:
        return f"can never be predicted: no input of the domain {domain} makes it the argmax."
    return (
        f"can never be predicted: no input of the domain {domain} makes it the only argmax; at best it ties."
    )


def _first(explanation: Explanation) -> Iterator[tuple[str, str]]:
    if explanation.verdict.status is Status.ARGMAXABLE:
        yield "margin", lead(explanation.margin)
        return
    if explanation.mixture:
        yield "why", _why(explanation)
        yield "", _mixture(explanation)
    if found := deficit(explanation.margin):
        yield "deficit", found


def _last(explanation: Explanation) -> Iterator[tuple[str, str]]:
    verdict, growth, width = explanation.verdict, explanation.growth, explanation.width
    if growth is not None:
        yield "to free it", _growth(growth)
    if explanation.rank is not None:
        yield "best rank", _rank(explanation.rank)
    if width is not None:
        yield (
            "widest",
            f"at the widest input found it is {_down(width.margin, 4)} logits ahead, "
            f"and stays ahead within a distance of {width.radius:.4g}",
        )
    if explanation.competitors:
        yield from _nearest(explanation.competitors)
    if verdict.tie_group:
        others = ", ".join(str(other) for other in verdict.tied_with[:_MOST_NAMED])
        more = len(verdict.tied_with) - _MOST_NAMED
        yield "identical", f"same row and bias as {others}" + (f" and {more:,} more" if more > 0 else "")


def _why(explanation: Explanation) -> str:
    count, upper = len(explanation.mixture), explanation.margin.upper
    some = "class" if count == 1 else f"mixture of {count} classes"
    if upper < 0:
        return f"at every input this {some} scores at least {_down(-upper, 4)} logits more:"
    if upper == 0:
        return f"at every input this {some} scores at least as much:"
    return f"at every input this {some} scores at most {_up(upper, 3)} logits less (no proof yet):"


def _mixture(explanation: Explanation) -> str:
    shares = explanation.mixture[:_MOST_NAMED]
    named = " + ".join(f"{100 * share.weight:.3g} % {visible(share.label)}" for share in shares)
    rest = explanation.mixture[_MOST_NAMED:]
    if not rest:
        return named
    classes = "class" if len(rest) == 1 else "classes"
    return f"{named} + {len(rest)} more {classes} ({100 * sum(share.weight for share in rest):.3g} %)"


def deficit(margin: Margin) -> str:
    """By how much the bias of an unargmaxable class must rise; "" where that is not known."""
    least, enough = margin.deficit
    if math.isfinite(enough) and enough > 0:
        low = f"up to {_down(least, 7)} more is too little, " if least > 0 else ""
        return f"its bias must rise: {low}anything above {_up(enough, 7)} logits frees it"
    return "none: it can tie at the top, and any rise of its bias frees it" if enough == 0 else ""


def _growth(growth: Growth) -> str:
    is_found = math.isfinite(growth.upper)
    upper = f"at {_up(growth.upper, 4)} it can win" if is_found else "no factor found frees it"
    still = f"at {_down(growth.lower, 4)} it still can't"
    return f"its row must grow away from the mean row by a factor: {still}, {upper}"


def _rank(rank: BestRank) -> str:
    known = f"{span(rank)}: " + (f"at every input {rank.lower - 1} or more classes are not below it; ")
    if rank.point is None:
        return known + "no input was counted"
    return known + f"at the input found, {rank.upper - 1} are"


def lead(margin: Margin) -> str:
    """How far ahead an argmaxable class can be."""
    if math.isinf(margin.lower):
        return "the only class: it has no rival"
    upper = f", never by more than {_up(margin.upper, 6)}" if math.isfinite(margin.upper) else ""
    return f"some input puts it {_down(margin.lower, 6)} logits ahead of all other classes{upper}"


def _nearest(nearest: tuple[Competitor, ...]) -> Iterator[tuple[str, str]]:
    named = ", ".join(f"{visible(one.label)} ({one.ahead:+.3g})" for one in nearest)
    which = "not below it there" if nearest[0].ahead >= 0 else "behind it there"
    yield "nearest", f"{which} (their logit minus its own): {named}"


def as_record(explanation: Explanation) -> dict[str, Any]:
    """The object that `explain --json` prints for a class."""
    verdict, margin, growth = explanation.verdict, explanation.margin, explanation.growth
    width = explanation.width
    record: dict[str, Any] = {
        "class": verdict.class_id,
        "label": verdict.label,
        "status": verdict.status.value,
        "domain": str(explanation.domain),
        "margin": {"lower": _finite(margin.lower), "upper": _finite(margin.upper)},
        "mixture": [{"class": s.class_id, "label": s.label, "weight": s.weight} for s in explanation.mixture],
        "growth": None if growth is None else {"lower": growth.lower, "upper": _finite(growth.upper)},
        "best_rank": None if explanation.rank is None else explanation.rank.as_record(),
        "widest": None if width is None else {"margin": width.margin, "radius": _finite(width.radius)},
        "nearest": [
            {
                "class": one.class_id,
                "label": one.label,
                "ahead": _finite(one.ahead),
                "distance": _finite(one.distance),
            }
            for one in explanation.competitors
        ],
        "tied_with": list(verdict.tied_with),
        "input": None if explanation.input is None else explanation.input.tolist(),
    }
    return record | {"reason": verdict.reason} if verdict.reason else record


def _down(value: float, digits: int) -> str:
    """The number with so many digits, never above it: a claim that stays true when rounded."""
    return f"{Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(value):g}"


def _up(value: float, digits: int) -> str:
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value):g}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
