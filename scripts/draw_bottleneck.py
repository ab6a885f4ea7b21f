"""Draw docs/bottleneck.png: what the rank bottleneck does to spectra, squared error and cross-entropy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from scipy.special import log_softmax, logsumexp

from argmaxable.core.head import Head
from argmaxable.theory.bounds import nearest_logits, squared_error_bounds
from argmaxable.theory.cross_entropy import by_features, entropy
from argmaxable.theory.pointwise import approximate
from argmaxable.theory.rank import measure_rank
from argmaxable.theory.spectrum import rows_of

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TARGET = Path(__file__).parent.parent / "docs" / "bottleneck.png"
CONTEXTS, CLASSES, FEATURES = 400, 60, 10


def draw_spectra(axes: Any, generator: np.random.Generator) -> None:
    """Singular values of log P of three heads with the same features and weights."""
    weight = generator.standard_normal((CLASSES, FEATURES))
    parts = generator.standard_normal((3, CONTEXTS, FEATURES))
    logits = parts @ weight.T
    plif = approximate(lambda z: 2 * z - np.logaddexp(0, z), reach=15.0, bins=1000)
    heads = {
        "linear": log_softmax(logits[0], axis=1),
        "PLIF": log_softmax(plif(logits[0]), axis=1),
        "mixture of 3": logsumexp(log_softmax(logits, axis=2), axis=0) - np.log(3),
    }
    for name, log_p in heads.items():
        spectrum = measure_rank(rows_of(log_p)).plain
        values = np.maximum(spectrum.values / spectrum.values[0], 1e-17)
        axes.semilogy(np.arange(1, CLASSES + 1), values, ".-", label=f"{name}: rank {spectrum.rank}")
    axes.axvline(FEATURES + 1, color="gray", linewidth=1, linestyle=":")
    axes.set(title=f"Singular values of log P, d = {FEATURES}", xlabel="number")
    axes.legend()


def draw_squared_error(axes: Any, targets: Any) -> None:
    """Both bounds, and what a softmax over the best logits makes of them."""
    log_p, dims = np.log(targets), np.arange(0, CLASSES, 3)
    bounds, contexts = squared_error_bounds(log_p), len(targets)
    errors = [((log_softmax(nearest_logits(log_p, int(d)), axis=1) - log_p) ** 2).sum() for d in dims]
    axes.plot(dims, np.array(errors) / contexts, ".-", label="softmax of the best logits")
    axes.plot(dims, bounds.centred[dims] / contexts, label="row means removed")
    axes.plot(dims, bounds.plain[dims] / contexts, "--", label="Theorem 1")
    axes.set(title="Squared error of log P a context", xlabel="features d")
    axes.legend()


def draw_cross_entropy(axes: Any, targets: Any, generator: np.random.Generator) -> None:
    head = Head(generator.standard_normal((CLASSES, CLASSES)))
    dims = range(1, CLASSES + 1, 3)
    falls = by_features(head, targets[:100], dims).mean(axis=1)
    axes.plot(dims, falls, ".-", label="least cross-entropy")
    axes.axhline(entropy(targets[:100]).mean(), color="gray", linestyle=":", label="H(P*)")
    axes.set(title="Theorem 2, random weights (nats)", xlabel="features d", ylim=(0, None))
    axes.legend()


def main() -> None:
    generator = np.random.default_rng(0)
    targets = generator.dirichlet(np.full(CLASSES, 0.5), CONTEXTS)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    draw_spectra(left, generator)
    draw_squared_error(middle, targets)
    draw_cross_entropy(right, targets, generator)
    figure.savefig(TARGET, dpi=80)
    sys.stdout.write(f"wrote {TARGET.name}\n")


if __name__ == "__main__":
    main()
