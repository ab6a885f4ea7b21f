"""A small head with a class that can never be predicted, and examples of every class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import argmaxable as am

CLASSES, FEATURES, NEVER = 24, 8, 5
DOMAIN = am.Box(-100.0, 100.0)
ONE = am.Engine(workers=1)
LABELS = [f"c{number}" for number in range(CLASSES)]


def head() -> am.Head:
    """Class 5 is below the mean of all others everywhere."""
    weight = np.random.default_rng(0).normal(size=(CLASSES, FEATURES)).astype(np.float32)
    bias = np.zeros(CLASSES, np.float32)
    weight[NEVER] = np.delete(weight, NEVER, axis=0).mean(axis=0)
    bias[NEVER] = -2
    return am.Head(weight, bias, LABELS, name="small")


def classified(features: np.ndarray, labels: Sequence[str], sources: Sequence[str]) -> am.Examples:
    """Inputs of a classifier, a row each; "" for ordinary ones."""
    rows = np.array([row for row, label in enumerate(labels) if label], np.intp)
    return am.Examples(
        features.astype(np.float32),
        np.arange(len(features) + 1),
        tuple(sources),
        tuple(label for label in labels if label),
        np.stack([rows, rows + 1], axis=1),
    )


def arrays(seed: int = 1, *, new: str = "new") -> tuple[np.ndarray, list[str], list[str]]:
    """Features, labels and sources: 12 inputs of each class, of one that is not there, 300 ordinary ones."""
    rng = np.random.default_rng(seed)
    weight = head().weight.astype(float)
    centres = [*(2 * row for row in weight), 3 * np.random.default_rng(7).normal(size=FEATURES)]
    centres[NEVER] = 3 * np.random.default_rng(8).normal(size=FEATURES)
    labels = [label for label in (*LABELS, new) for _ in range(12)] + [""] * 300
    blobs = [centre + 0.3 * rng.normal(size=(12, FEATURES)) for centre in centres]
    features = np.concatenate([*blobs, 1.5 * rng.normal(size=(300, FEATURES))])
    return features, labels, ["left" if number % 2 else "right" for number in range(len(labels))]


def examples(*, without: Sequence[str] = ("new",)) -> am.Examples:
    features, labels, sources = arrays()
    chosen = [place for place, label in enumerate(labels) if label not in without]
    return classified(features[chosen], [labels[k] for k in chosen], [sources[k] for k in chosen])
