"""A check-up of a model's output layer: rows that stand out are named, and what they mean is proven.

Statistics only choose suspects. Whether such a class is unargmaxable is decided by `verify`, and whether a
machine's arithmetic leaves it a chance by `survival`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import HeadError, LoadError
from argmaxable.core.select import padding_classes, special_classes
from argmaxable.core.verdict import Status, Verdict
from argmaxable.doctor.diagnosis import Checkup, Diagnosis, Standing
from argmaxable.doctor.faults import faults_of
from argmaxable.doctor.remarks import Patient, diagnoses_of
from argmaxable.doctor.roles import ending_classes, ordinary_classes
from argmaxable.doctor.rows import OddRows, odd_rows
from argmaxable.models import model_name, read_head
from argmaxable.questions.argmax import DEFAULT_DOMAIN, verify
from argmaxable.questions.arithmetic.formats import PRECISIONS, Float
from argmaxable.questions.arithmetic.survival import Outcome, survival

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.result import Result
    from argmaxable.models.finding import Finding

# Classes of each kind that are looked at closer: a kind's members mostly share their fate.
_MOST_VERIFIED = 64


@dataclass(frozen=True)
class Tests:
    """How to look closer: over which domain (None: the one the file proves, else box ±100), in which
    arithmetic (None: the one the weights are stored in), for how many seconds at most."""

    domain: Domain | None = None
    number: Float | None = None
    time_limit: float | None = 60.0


def examine(finding: Finding, model: str | os.PathLike[str], tests: Tests | None = None) -> Checkup:
    """The check-up of the head that was found in a model.

    Raises LoadError when it can't be read. An output layer that can be read but is no head (a bias of
    another length, numbers that are not finite) is a finding, and nothing else is looked at then.
    """
    tests = tests or Tests()
    try:
        head = read_head(finding, model)
    except LoadError as error:
        faults = faults_of(finding) if isinstance(error.__cause__, HeadError) else ()
        if not faults:
            raise
        return _checkup(finding, model, faults)
    odd, padding = odd_rows(head), padding_classes(head.labels or ())
    ends = ending_classes(os.fspath(model), head)
    special = special_classes(head.labels or (), finding.special)
    suspects = _suspects(odd, padding, sorted(ends) + special)
    domain = tests.domain or _proven(finding) or DEFAULT_DOMAIN
    number = tests.number or _stored_in(head)
    standings = _standings(head, domain, number, suspects, tests.time_limit)
    subject = Patient(
        head=head, odd=odd, ends=ends, special=frozenset(special), padding=frozenset(padding),
        ordinary=ordinary_classes(head, finding.special), standings=standings,
    )  # fmt: skip
    found = sorted(diagnoses_of(subject), key=lambda diagnosis: not diagnosis.is_concern)
    return _checkup(finding, model, tuple(found), str(domain), number.value, len(standings))


def _checkup(
    finding: Finding,
    model: str | os.PathLike[str],
    diagnoses: tuple[Diagnosis, ...],
    domain: str = "",
    number: str = "",
    verified: int = 0,
) -> Checkup:
    return Checkup(
        model=model_name(model), classes=finding.classes, features=finding.features,
        has_bias=finding.bias is not None, diagnoses=diagnoses, domain=domain if verified else "",
        number=number if verified else "", verified=verified,
    )  # fmt: skip


def _suspects(odd: OddRows, *others: list[int]) -> list[int]:
    kinds = [odd.zero, odd.at_mean, odd.near_mean, odd.shadowed, odd.norm, odd.bias, *map(np.array, others)]
    return sorted({int(class_id) for kind in kinds for class_id in kind[:_MOST_VERIFIED]})


def _proven(finding: Finding) -> Domain | None:
    return None if finding.inputs is None else finding.inputs.domain


def _stored_in(head: Head) -> Float:
    """The format logits are computed in unless somebody says otherwise; float64 is rarely used for it."""
    fitting = (name for name, each in PRECISIONS.items() if each.dtype == head.weight.dtype)
    return next(fitting, Float.FP32)


def _standings(
    head: Head, domain: Domain, number: Float, suspects: list[int], time_limit: float | None
) -> Mapping[int, Standing]:
    if not suspects:
        return {}
    result = verify(head, domain, only=suspects, time_limit=time_limit)
    thin = _on_paper_only(result, number)
    return {verdict.class_id: _standing(verdict, thin) for verdict in result.verdicts}


def _on_paper_only(result: Result, number: Float) -> frozenset[int]:
    if not result.argmaxable:
        return frozenset()
    fates = survival(result, number).fates
    return frozenset(fate.class_id for fate in fates if fate.outcome is not Outcome.SURVIVES)


def _standing(verdict: Verdict, thin: frozenset[int]) -> Standing:
    if verdict.status is Status.UNDECIDED:
        return Standing.UNDECIDED
    if verdict.status is Status.ARGMAXABLE:
        return Standing.ON_PAPER_ONLY if verdict.class_id in thin else Standing.ARGMAXABLE
    return Standing.TIED if verdict.is_tied else Standing.UNARGMAXABLE
