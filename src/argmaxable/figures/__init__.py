"""Figures: each a function that returns a matplotlib Figure, and a command `argmaxable figure NAME`.

The only package that knows matplotlib, which comes with the extra `plot`.
"""

from __future__ import annotations

from argmaxable.figures.braid import braid, construction, slices
from argmaxable.figures.counts import unargmaxable_counts
from argmaxable.figures.effort import Effort, effort_of, steps_needed, steps_over_classes
from argmaxable.figures.gallery import Group, all_figures, run_figures
from argmaxable.figures.hull import hull
from argmaxable.figures.plif import plif
from argmaxable.figures.random_heads import Measured, measure_random_heads, random_heads
from argmaxable.figures.regions import decision_regions
from argmaxable.figures.style import save

__all__ = [
    "Effort",
    "Group",
    "Measured",
    "all_figures",
    "braid",
    "construction",
    "decision_regions",
    "effort_of",
    "hull",
    "measure_random_heads",
    "plif",
    "random_heads",
    "run_figures",
    "save",
    "slices",
    "steps_needed",
    "steps_over_classes",
    "unargmaxable_counts",
]
