"""Changing one row and one bias of a model, and looking at what that did to the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import argmaxable as am
from argmaxable.models import find_head, read_head
from argmaxable.models.write import write_head


def rewrite(source: Path, target: Path) -> am.Head:
    """Write a copy in which one row and one bias are changed; returns the head that was meant."""
    finding = find_head(source)
    before = read_head(finding, source)
    weight, bias = np.array(before.weight), np.array(before.biases(), np.float32)
    weight[1] += 0.5
    bias[3] = 2.5
    after = am.Head(weight, bias, before.labels, name=before.name)
    write_head(str(source), finding, before, after, target)
    return after


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
