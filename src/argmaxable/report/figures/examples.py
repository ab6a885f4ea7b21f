"""Small heads that show something: what figures are about unless another head is given."""

from __future__ import annotations

import numpy as np

from argmaxable.core.head import Head

# Class d lies inside the triangle of the others: Figure 1 of Grivas et al. 2022.
UNARGMAXABLE_CLASS = Head(
    [[1.0, 0.2], [-0.7, 0.9], [-0.4, -1.0], [-0.15, 0.1]], labels="abcd", name="four classes, two features"
)
# The same with a bias that gives d a region of its own.
ARGMAXABLE_CLASS = Head(
    UNARGMAXABLE_CLASS.weight, [0.0, 0.0, 0.0, 0.3], labels="abcd", name="the same with a bias"
)
# Chosen so that no region of its rankings is too small to see, without the bias and with it.
FOUR_IN_PLANE = Head(
    [[1.0, 1.9], [0.0, 0.5], [-1.7, 0.8], [0.8, -1.8]], [0.5, 1.1, -0.3, -0.6], labels="abcd",
    name="four classes, two features",
)  # fmt: skip
# Class c takes four reflections from x = w_c to a point where it wins, and meets three others on the way.
HARD_CLASS = Head(
    [[0.0, -2.3], [0.8, -1.0], [0.9, -0.7], [2.5, 0.0], [2.4, -0.2]], labels="abcde",
    name="five classes, two features",
)  # fmt: skip
THREE_ON_LINE = Head(
    [[1.0], [0.2], [-0.9]], [-0.2, 0.5, -0.3], labels="abc", name="three classes, one feature"
)


def without_bias(head: Head) -> Head:
    """The head with its bias left out."""
    return Head(head.weight, None, head.labels, name=head.name)


def ball_of_classes(classes: int, features: int, *, seed: int) -> Head:
    """Rows from a ball, most of them near its surface: about as many vertices of the hull as others."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((classes, features))
    rows *= generator.uniform(0.4, 1.0, (classes, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return Head(rows.astype(np.float32), name=f"{classes} classes, {features} features")
