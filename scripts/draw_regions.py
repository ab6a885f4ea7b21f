"""Draw docs/regions.png: the rankings of four classes in the plane, without and with a bias."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from argmaxable.domain import Box
from argmaxable.head import Head
from argmaxable.theory.enumeration import enumerate_rankings

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

TARGET = Path(__file__).parent.parent / "docs" / "regions.png"
# Chosen so that no region is too small to see.
WEIGHT = np.array([[1.0, 1.9], [0.0, 0.5], [-1.7, 0.8], [0.8, -1.8]])
BIAS = np.array([0.5, 1.1, -0.3, -0.6])
REACH, PIXELS = 2.0, 400


def draw(axes: Any, head: Head, title: str) -> None:
    """Every region in a colour of its own, with its ranking written into it."""
    grid = np.linspace(-REACH, REACH, PIXELS)
    x = np.stack(np.meshgrid(grid, grid), axis=-1)
    order = np.argsort(-(x @ head.weight.T + head.biases()), axis=-1)
    codes = order @ (head.classes ** np.arange(head.classes))
    _, colours = np.unique(codes, return_inverse=True)
    extent = (-REACH, REACH, -REACH, REACH)
    palette = ListedColormap(matplotlib.colormaps["tab20"](np.arange(20)) * 0.5 + 0.5)
    numbers = colours.reshape(codes.shape)
    axes.imshow(
        numbers, cmap=palette, extent=extent, origin="lower", interpolation="nearest", vmin=0, vmax=19
    )
    rankings = enumerate_rankings(head, Box(-REACH, REACH))
    for ranked in rankings:
        name = "".join("abcd"[number] for number in ranked.classes)
        axes.text(*_middle(x, codes, ranked.classes), name, ha="center", va="center", fontsize=8)
    axes.set(title=f"{title}: {len(rankings)} rankings", xticks=[], yticks=[])


def _middle(x: Any, codes: Any, classes: tuple[int, ...]) -> Any:
    """The middle of a region's pixels."""
    return x[codes == np.dot(classes, len(classes) ** np.arange(len(classes)))].mean(axis=0)


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    draw(left, Head(WEIGHT), "no bias")
    draw(right, Head(WEIGHT, BIAS), "bias")
    figure.savefig(TARGET, dpi=80)
    sys.stdout.write(f"wrote {TARGET.name}\n")


if __name__ == "__main__":
    main()
