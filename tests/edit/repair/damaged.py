"""Heads with classes that can't win, for repairs to mend."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import argmaxable as am

BOX = am.Box(-100.0, 100.0)
# Four corners and two classes inside: one at the centre, half a logit too low, one beside it and lower.
ROWS = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [0.25, 0.125]])
BIASES = np.array([0.0, 0.125, -0.125, 0.0625, -0.5, -0.75])
LABELS = ("a", "b", "c", "d", "middle", "beside")
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}


def damaged(dtype: str = "float32", *, bias: bool = True, name: str = "damaged") -> am.Head:
    """The corners and the two unargmaxable classes; without a bias the one in the middle is at best tied."""
    kind = DTYPES[dtype]
    return am.Head(ROWS.astype(kind), BIASES.astype(kind) if bias else None, LABELS, name=name)


def random_damaged(seed: int, *, classes: int = 40, features: int = 3) -> am.Head:
    """A random head of which some classes are unargmaxable, and the biases of a few lowered by hand."""
    generator = np.random.default_rng(seed)
    bias = generator.standard_normal(classes) / 4
    bias[:3] -= 3.0
    return am.Head(generator.standard_normal((classes, features)).astype(np.float32), bias.astype(np.float32))


def unargmaxable(head: am.Head, domain: am.Domain) -> list[int]:
    return [verdict.class_id for verdict in am.verify(head, domain, engine=am.Engine(workers=1)).unargmaxable]
