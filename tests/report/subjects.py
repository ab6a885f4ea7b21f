"""What reports are written about in these tests: a small verified head, and a large one made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from keeping import keep, lossy

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost
from argmaxable.report.page.subject import Subject, subject_of_run
from argmaxable.store import open_store

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!-- <script>",
    '"><svg onload=alert(3)>',
    "{{ 7 * 7 }} & | `x` [y](javascript:alert(4))",
    "\u202e\x1b[31m\ud800",
)


def read(database: Path, run_id: int) -> Subject:
    with open_store(str(database)) as store:
        return subject_of_run(store, store.run(run_id))


def small(database: Path, labels: tuple[str, ...] | None = None, **more: Any) -> Subject:
    """Six classes of which one is lost and two tie."""
    return read(database, keep(database, lossy(**({"labels": labels} if labels else {}), **more)))


def verdict(class_id: int, label: str, status: am.Status, **more: Any) -> am.Verdict:
    values: dict[str, Any] = {
        "lower": -math.inf,
        "upper": math.inf,
        "method": am.Method.NONE,
        "strength": None,
    }
    return am.Verdict(class_id=class_id, label=label, status=status, **{**values, **more})


def can(class_id: int, label: str, lower: float = 1.0, **more: Any) -> am.Verdict:
    return verdict(
        class_id, label, am.Status.ARGMAXABLE, lower=lower, method=am.Method.OWN_DIRECTION,
        strength=am.Strength.FLOAT32, **more,
    )  # fmt: skip


def never(class_id: int, label: str, certificate: am.Certificate | None = None, **more: Any) -> am.Verdict:
    values: dict[str, Any] = {"lower": -1.0, "upper": -0.25, "method": am.Method.INTERIOR_POINT}
    return verdict(
        class_id, label, am.Status.UNARGMAXABLE, strength=am.Strength.FLOAT64,
        certificate=certificate or am.Certificate(np.array([0]), np.ones(1)), **{**values, **more},
    )  # fmt: skip


def subject(*verdicts: am.Verdict, **more: Any) -> Subject:
    values: dict[str, Any] = {
        "facts": Facts("model.onnx", "5e" * 32, len(verdicts), 3, bias=True, dtype="float32"),
        "size": f"{len(verdicts):,} classes × 3 features",
        "domain": am.Box(-100.0, 100.0),
        "verdicts": verdicts,
        "wanted": len(verdicts),
        "is_complete": True,
        "has_evidence": True,
        "cost": Cost(seconds=2.0, phases={"solving": 1.5}, solves=1, mean_steps=4.0, mean_rows=9.0),
        "source": "Run 1.",
        "recheck": ("argmaxable check proofs model.onnx",),
    }
    return Subject(**{**values, **more})


def vocabulary(classes: int = 49_152) -> Subject:
    """A language model's vocabulary, one token in twenty lost to a mixture of 300 others."""
    rng = np.random.default_rng(0)
    pieces = ["tion", "ing", "er", "anda", "mento", "str", "Config", "ization", "ous", "the"]
    labels = [" " * (k % 2) + pieces[k % len(pieces)] + f"{k:x}" for k in range(classes)]
    leads = np.exp(rng.normal(1, 2, classes))
    return subject(
        *(
            never(k, labels[k], _mixture(rng, classes), steps=int(rng.integers(2, 40)), lower=-leads[k])
            if k % 20 == 7
            else can(k, labels[k], float(leads[k]), steps=int(rng.integers(0, 5) == 0))
            for k in range(classes)
        )
    )


def _mixture(rng: np.random.Generator, classes: int) -> am.Certificate:
    return am.Certificate(rng.integers(classes - 300) + np.arange(300), rng.random(300))
