"""Plans and verdicts for tests of the store, and what it means to get them back."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Witness
from argmaxable.store import Plan

CLASSES = 60
CENTRE = np.array([0.5, -0.25, 0.1])
COST = Cost(
    seconds=1.25, phases={"own direction": 0.5, "solving": 0.75}, solves=3, mean_steps=2.5, mean_rows=9.0
)


def plan(**changes: Any) -> Plan:
    """A plan for a small head that nobody computed."""
    facts = Facts(
        name="model.onnx", sha256="5e" * 32, classes=CLASSES, features=3, bias=True, dtype="float32"
    )
    values: dict[str, Any] = {
        "facts": facts,
        "labels": tuple(f"label {k}" for k in range(CLASSES)),
        "domain": am.Box(-100.0, 100.0),
        "algorithm": am.Algorithm.AUTO,
        "patience": 30,
        "seed": 0,
    }
    return Plan(**{**values, **changes})


def verdicts(count: int = CLASSES) -> list[am.Verdict]:
    """Verdicts of every kind in turn; those of a kind share what runs share."""
    shared = am.Certificate(np.array([1, 2, 5]), np.array([0.25, 0.5, 0.25]), 3, np.array([0, 2]))
    group = tuple(range(4, count, 6))
    kinds = [own_direction, point, by_rival, certified(shared), tied(group), undecided]
    return [kinds[k % len(kinds)](k) for k in range(count)]


def verdict(class_id: int, status: am.Status, **changes: Any) -> am.Verdict:
    values: dict[str, Any] = {
        "label": f"label {class_id}",
        "lower": -math.inf,
        "upper": math.inf,
        "method": am.Method.NONE,
        "strength": None,
    }
    return am.Verdict(class_id=class_id, status=status, **{**values, **changes})


def own_direction(class_id: int) -> am.Verdict:
    return verdict(
        class_id, am.Status.ARGMAXABLE, lower=0.1 + class_id, upper=7.5, method=am.Method.OWN_DIRECTION,
        strength=am.Strength.FLOAT32, witness=am.OwnDirection(-3),
        certificate=am.Certificate(np.array([class_id + 1]), np.ones(1)),
    )  # fmt: skip


def point(class_id: int) -> am.Verdict:
    values = np.array([class_id, 0.1, -1e300])
    return verdict(
        class_id, am.Status.ARGMAXABLE, lower=5e-324, method=am.Method.INTERIOR_POINT, steps=7, rows=40,
        strength=am.Strength.EXACT, witness=am.Point(values), seconds=0.125, radius=0.5,
    )  # fmt: skip


def by_rival(class_id: int) -> am.Verdict:
    return verdict(
        class_id, am.Status.UNARGMAXABLE, upper=0.0, method=am.Method.TWIN, strength=am.Strength.FLOAT64,
        certificate=am.Certificate(np.array([class_id + 1]), np.ones(1)),
    )  # fmt: skip


def certified(shared: am.Certificate) -> Any:
    return lambda class_id: verdict(
        class_id, am.Status.UNARGMAXABLE, upper=-1e-17, method=am.Method.TRANSFER, certificate=shared,
        strength=am.Strength.INTERVAL,
    )  # fmt: skip


def tied(group: tuple[int, ...]) -> Any:
    return lambda class_id: verdict(
        class_id, am.Status.UNARGMAXABLE, lower=0.0, upper=0.0, method=am.Method.TWIN, tie_group=group,
        strength=am.Strength.FLOAT64, witness=am.OwnDirection(2),
        certificate=am.Certificate(np.array([group[0] + 1]), np.ones(1)),
    )  # fmt: skip


def undecided(class_id: int) -> am.Verdict:
    return verdict(class_id, am.Status.UNDECIDED, steps=100, rows=12, reason="no decision after 100 steps")


# ---------------------------------------------------------------------- the same again


def as_plain(verdict: am.Verdict) -> dict[str, Any]:
    """Everything a verdict says, as values that compare: arrays by their bits, NaN as a word."""
    said = {field.name: getattr(verdict, field.name) for field in fields(verdict)}
    said["witness"] = _plain_witness(verdict.witness)
    said["certificate"] = _plain_certificate(verdict.certificate)
    return {name: "NaN" if value != value else value for name, value in said.items()}


def _plain_witness(witness: Witness | None) -> Any:
    return _bits(witness.values) if isinstance(witness, am.Point) else getattr(witness, "exponent", None)


def _plain_certificate(certificate: am.Certificate | None) -> Any:
    if certificate is None:
        return None
    coordinates = None if certificate.coordinates is None else _bits(certificate.coordinates)
    return _bits(certificate.classes), _bits(certificate.weights), certificate.basis, coordinates


def _bits(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()
