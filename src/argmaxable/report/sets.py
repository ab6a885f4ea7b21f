"""Sets of labels in words and for machines: how many can never be predicted, which, and what of the data that
is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from argmaxable.core.feasibility import Feasibility
from argmaxable.core.label_sets import LabelSets, SetClaim, SetKind
from argmaxable.report.answer import counted, never_predicted

if TYPE_CHECKING:
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.questions.sets.every import EverySet

# Sets listed in text; --json and bundles have all of them.
_MOST_LISTED = 20
# Labels of a proof named in text.
_MOST_LABELS = 6
_MEANING = {
    SetKind.EXACTLY: "exactly these labels above {} and every other label below",
    SetKind.TOP: "these labels above every other label",
    SetKind.AT_LEAST: "these labels above {}",
}


def describe_sets(found: LabelSets, source: DomainSource | None, *, everything: bool = False) -> list[str]:
    """The answer, then the sets that can never be predicted, those of most examples first."""
    lines = [headline(found, source), meaning(found)]
    never = by_examples(found.having(Feasibility.INFEASIBLE))
    listed = never if everything else never[:_MOST_LISTED]
    lines += [f"  {set_line(claim)}" for claim in listed]
    if len(never) > len(listed):
        lines.append(f"  … and {len(never) - len(listed):,} more (--all lists them)")
    tied = sum(claim.is_at_best_tied for claim in never)
    if tied:
        what = "another label's score" if found.test.kind is SetKind.TOP else "its threshold"
        lines.append(
            f"{tied:,} of them at best tied: some input reaches them but for a score that equals {what}."
        )
    for claim in found.having(Feasibility.UNDECIDED)[:_MOST_LISTED]:
        lines.append(f"  undecided: {claim.name()}: {claim.reason}")
    return lines


def meaning(found: LabelSets) -> str:
    """What it means that a set is predicted, with the thresholds."""
    return f"A set is predicted where some input puts {_MEANING[found.test.kind].format(_limits(found))}."


def _limits(found: LabelSets) -> str:
    """The thresholds on the logits: one, or the range of them."""
    low, high = float(found.test.thresholds.min()), float(found.test.thresholds.max())
    return f"a logit of {low:g}" if low == high else f"their thresholds (logits from {low:g} to {high:g})"


def stored_line(run_id: int, *, was_known: bool, is_complete: bool) -> str:
    """Where the answer is stored."""
    if was_known:
        return f"Already stored as sets:{run_id}; --overwrite computes it again."
    more = "" if is_complete else "; run the same command again to resume"
    return f"Stored as sets:{run_id} (argmaxable show sets:{run_id}){more}."


def headline(found: LabelSets, source: DomainSource | None) -> str:
    """How many sets can never be predicted, and how many examples that is."""
    total = len(found.claims)
    never, unknown = found.having(Feasibility.INFEASIBLE), len(found.having(Feasibility.UNDECIDED))
    left = f" {counted(unknown, 'set is', 'sets are')} undecided." if unknown else ""
    if not found.is_complete:
        left = f" Not finished:{left}" if left else " Not finished."
    if unknown == total:
        return f"No label set is decided.{left}"
    if not never:
        return f"{total - unknown:,} of {counted(total, 'label set', 'label sets')} can be predicted.{left}"
    share = ""
    if any(claim.count != 1 for claim in found.claims):
        part = sum(claim.count for claim in never) / found.examples
        share = f"; they are {_percent(part)} of {counted(found.examples, 'example', 'examples')}"
    verb = never_predicted(found.domain, source)
    return f"{len(never):,} of {counted(total, 'label set', 'label sets')} {verb}{share}.{left}"


def _percent(share: float) -> str:
    """At least two digits of it, but no more than one behind the point where there are two before it."""
    return f"{100 * share:.1f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def by_examples(claims: tuple[SetClaim, ...]) -> list[SetClaim]:
    """Sets of most examples first, then the smallest."""
    return sorted(claims, key=lambda claim: (-claim.count, len(claim.members), claim.members))


def set_line(claim: SetClaim) -> str:
    """One infeasible set: its labels, how many examples have it, how far off it is."""
    examples = f", {counted(claim.count, 'example', 'examples')}" if claim.count != 1 else ""
    return f"{claim.name()}{examples} (margin at most {claim.upper:.3g})"


def describe_every(found: EverySet) -> list[str]:
    """The answer about every set of at most k labels."""
    what = f"every set of at most {counted(found.active, 'label', 'labels')} can be predicted"
    if found.refuted_by is not None:
        return [f"Refuted: not {what}. This one never is:", f"  {set_line(found.refuted_by)}"]
    if found.status.value == "proven":
        return [f"Proven: {what}; {found.why}."]
    return [f"Open: it is not known whether {what}; {found.why}."]


# ---------------------------------------------------------------------- for machines


def sets_record(found: LabelSets) -> dict[str, Any]:
    """The object that --json prints, without what the command knows about model and domain."""
    return {
        "kind": found.test.kind.value,
        "thresholds": found.test.thresholds.tolist(),
        **{status.value: len(found.having(status)) for status in Feasibility},
        "examples": found.examples,
        "examples_infeasible": sum(claim.count for claim in found.having(Feasibility.INFEASIBLE)),
        "complete": found.is_complete,
        "seconds": found.seconds,
        "sets": [_claim_record(claim) for claim in found.claims],
    }


def _claim_record(claim: SetClaim) -> dict[str, Any]:
    certificate = claim.certificate
    record: dict[str, Any] = {
        "set": list(claim.members),
        "labels": list(claim.labels),
        "count": claim.count,
        "status": claim.status.value,
        "tied": claim.is_at_best_tied,
        "lower": claim.lower if math.isfinite(claim.lower) else None,
        "upper": claim.upper if math.isfinite(claim.upper) else None,
        "method": claim.method.value,
    }
    if certificate is not None:
        record["because_of"] = certificate.classes[
            certificate.weights.argsort()[::-1][:_MOST_LABELS]
        ].tolist()
    return record | ({"reason": claim.reason} if claim.reason else {})


def every_record(found: EverySet) -> dict[str, Any]:
    """The same for every set of at most k labels."""
    return {
        "active": found.active,
        "status": found.status.value,
        "why": found.why,
        "refuted_by": None if found.refuted_by is None else _claim_record(found.refuted_by),
        "tried": 0 if found.tried is None else len(found.tried.claims),
    }
