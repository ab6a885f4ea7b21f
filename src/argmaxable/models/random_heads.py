"""Random heads, and heads that can't lose a class: the sanity checks of Grivas et al. 2022.

Rows of equal norm make every distinct row a vertex of the hull (no bias, 0 inside the domain); a
bias of −‖w‖²/2 makes class c win at x = w_c. The papers' appendix D.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head


class Distribution(StrEnum):
    """Of the entries of a random head."""

    NORMAL = "normal"  # standard normal
    UNIFORM = "uniform"  # on [−1, 1]


def random_head(
    classes: int,
    features: int,
    *,
    seed: int,
    distribution: Distribution = Distribution.NORMAL,
    bias: bool = False,
) -> Head:
    """A head with independent entries (float32)."""
    if classes < 1 or features < 1:
        raise InputError(f"a head needs at least one class and one feature, found {classes} × {features}.")
    if seed < 0:
        raise InputError(f"a seed can't be negative, found {seed}.")
    generator = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        if distribution is Distribution.UNIFORM:
            return generator.uniform(-1, 1, shape).astype(np.float32)
        return generator.standard_normal(shape).astype(np.float32)

    weight = draw(classes, features)
    return Head(weight, draw(classes) if bias else None, name=f"random {distribution} head, seed {seed}")


def with_equal_norms(head: Head) -> Head:
    """The head without bias, rows scaled to norm 1 (in float64, up to rounding)."""
    rows = head.rows(slice(None))
    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return Head(rows / np.where(norms > 0, norms, 1.0), None, head.labels, name=f"{head.name}, equal norms")


def with_voronoi_bias(head: Head) -> Head:
    """The head with b = −‖w‖²/2 (in float64), so that s_c(w_c) is the largest at x = w_c."""
    rows = head.rows(slice(None))
    return Head(rows, -(rows * rows).sum(axis=1) / 2, head.labels, name=f"{head.name}, b = -|w|^2/2")
