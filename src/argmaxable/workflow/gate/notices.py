"""Rulings and check-ups as notices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from argmaxable.core.labels import visible
from argmaxable.report.answer import never_predicted
from argmaxable.report.notices.notice import Level, ModelNotices, Notice, shown_file
from argmaxable.workflow.gate.ruling import FailOn, Ruling

if TYPE_CHECKING:
    from argmaxable.core.verdict import Verdict
    from argmaxable.doctor.diagnosis import Checkup, Diagnosis

_UNARGMAXABLE, _UNDECIDED, _STOPPED = "unargmaxable-class", "undecided-class", "incomplete-run"
VERIFY_RULES = {
    _UNARGMAXABLE: "A class that no input can make the argmax.",
    _UNDECIDED: "A class that is proven neither argmaxable nor unargmaxable.",
    _STOPPED: "A run that was stopped before every class was decided.",
}
_MOST_CLASSES = 20


def notices_of_ruling(ruling: Ruling, model: str) -> ModelNotices:
    """A notice for each class that is not argmaxable."""
    result = ruling.result
    return ModelNotices(
        model=visible(result.facts.name),
        file=shown_file(model),
        notices=tuple(_of_verdicts(ruling)),
        passed=f"{len(result.argmaxable):,} of {result.verified:,} classes can be predicted",
        seconds=result.cost.seconds,
    )


def _of_verdicts(ruling: Ruling) -> Iterator[Notice]:
    yield from _of_unargmaxable(ruling)
    if not ruling.result.is_complete:
        left = (
            f"{len(ruling.result.undecided):,} classes are undecided: raise --time-limit, or resume the run."
        )
        level = Level.WARNING if ruling.fail_on is FailOn.NONE else Level.ERROR
        yield Notice(_STOPPED, "", level, "Stopped before the end", left)
        return
    level = Level.ERROR if ruling.fail_on is FailOn.UNDECIDED else Level.WARNING
    for verdict in ruling.undecided:
        yield Notice(
            _UNDECIDED, verdict.label, level, f"{_class(verdict)} is undecided", f"{verdict.reason}."
        )


def _of_unargmaxable(ruling: Ruling) -> Iterator[Notice]:
    accepted = dict.fromkeys(ruling.allowed.classes, f"allowed by {ruling.allowed.name}")
    known = {verdict.class_id for verdict in ruling.known}
    if ruling.baseline is not None:
        accepted |= dict.fromkeys(known, f"in the baseline {ruling.baseline.name}")
    failing = {verdict.class_id for verdict in ruling.failing if ruling.fail_on is not FailOn.NONE}
    domain = ruling.result.domain
    for verdict in ruling.result.unargmaxable:
        why = "" if verdict.class_id in failing else accepted.get(verdict.class_id, "")
        level = Level.ERROR if verdict.class_id in failing else Level.ACCEPTED if why else Level.WARNING
        yield Notice(
            rule=_UNARGMAXABLE,
            key=verdict.label,
            level=level,
            title=f"{_class(verdict)} {never_predicted(domain, ruling.result.domain_source)}",
            text=_why(verdict, str(domain)),
            is_new=None if ruling.baseline is None else verdict.class_id not in accepted,
            why_accepted=why,
        )


def _why(verdict: Verdict, domain: str) -> str:
    advice = f"`argmaxable explain MODEL {verdict.class_id}` names what blocks it."
    if verdict.is_tied:
        others = ", ".join(map(str, verdict.tied_with[:5]))
        return f"At best it ties with identical classes ({others}). Proven over the domain {domain}. {advice}"
    return f"Proven over the domain {domain}: at every input another class scores at least as high. {advice}"


def _class(verdict: Verdict) -> str:
    number = f"Class {verdict.class_id}"
    return number if verdict.label == str(verdict.class_id) else f"{number} {visible(verdict.label)}"


def notices_of_checkup(checkup: Checkup, model: str) -> ModelNotices:
    """A notice for each finding: concerns are errors, others notes."""
    return ModelNotices(
        model=visible(checkup.model),
        file=shown_file(model),
        notices=tuple(map(_of_diagnosis, checkup.diagnoses)),
        passed=f"{checkup.classes:,} classes examined",
    )


def doctor_rules(checkups: list[Checkup]) -> dict[str, str]:
    """The rules that these check-ups' findings are about."""
    found = (diagnosis for checkup in checkups for diagnosis in checkup.diagnoses)
    return {_rule(diagnosis): f"Rows that stand out: {diagnosis.kind.value}." for diagnosis in found}


def _of_diagnosis(diagnosis: Diagnosis) -> Notice:
    labels = "  ".join(visible(label) for label in diagnosis.labels[:_MOST_CLASSES])
    more = " …" if len(diagnosis.labels) > _MOST_CLASSES else ""
    which = f"{labels}{more}. " if labels else ""
    return Notice(
        rule=_rule(diagnosis),
        key=diagnosis.found,
        level=Level.ERROR if diagnosis.is_concern else Level.NOTE,
        title=diagnosis.found.rstrip("."),
        text=f"{which}{diagnosis.meaning} What to do: {diagnosis.advice}",
    )


def _rule(diagnosis: Diagnosis) -> str:
    return diagnosis.kind.value.replace(" ", "-")
