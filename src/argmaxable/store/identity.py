"""What makes two models or two runs the same: digests of what they are about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath

from argmaxable.core.head import labels_sha256
from argmaxable.store.plan import Plan, PublishedVerdict, SetPlan


def tidied(plan: Plan) -> Plan:
    """The plan with its classes sorted, each once, None for all of them, and no path in its names."""
    only = None if plan.only is None else tuple(sorted(set(plan.only)))
    if only is not None and len(only) == plan.facts.classes:
        only = None
    facts = replace(plan.facts, name=without_path(plan.facts.name))
    return replace(plan, facts=facts, only=only, origin=without_path(plan.origin))


def without_path(name: str) -> str:
    """A name that tells nothing about the machine: of an absolute path only the last part."""
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(name).is_absolute() or name.startswith("~"):
            return kind(name).name
    return name


def model_key(plan: Plan) -> bytes:
    """The same for two plans exactly when they are about the same head with the same labels and name."""
    return _digest(["model", plan.facts.sha256, labels_sha256(plan.labels), plan.facts.name])


def run_key(plan: Plan) -> bytes:
    """The same for two plans exactly when they ask the same question in the same way."""
    return _digest(
        [
            *("run", plan.facts.sha256, labels_sha256(plan.labels)),
            *(plan.domain.as_record(), plan.algorithm, plan.patience, plan.seed, plan.only),
        ]
    )


def set_model_key(plan: SetPlan) -> bytes:
    """Of the model of a question about sets: the same as of its runs."""
    return _digest(["model", plan.facts.sha256, labels_sha256(plan.labels), without_path(plan.facts.name)])


def set_run_key(plan: SetPlan) -> bytes:
    """The same for two plans exactly when they ask about the same sets in the same way."""
    return _digest(
        [
            *("sets", plan.facts.sha256, labels_sha256(plan.labels)),
            *(plan.domain.as_record(), plan.test.as_record(), sorted(plan.sets.items())),
        ]
    )


def published_model_key(plan: Plan) -> bytes:
    """Of a model that is known by name only."""
    return _digest(["published model", plan.facts.name, plan.origin, plan.task, plan.family])


def published_key(plan: Plan, verdicts: Sequence[PublishedVerdict]) -> bytes:
    """The same for the same verdicts about the same model."""
    said = [[verdict.class_id, verdict.label, verdict.status] for verdict in verdicts]
    return _digest(["published", published_model_key(plan).hex(), plan.domain.as_record(), said])


def _digest(values: Sequence[object]) -> bytes:
    # Not as ASCII: there two halves of a surrogate pair look like the character they would make.
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
