"""Figures: each a function that returns a matplotlib Figure, and a command `argmaxable figure NAME`.

The only package that knows matplotlib, which comes with the extra `plot`.
"""

from __future__ import annotations

from argmaxable.report.figures.braid import braid, construction, slices
from argmaxable.report.figures.counts import unargmaxable_counts
from argmaxable.report.figures.effort import Effort, effort_of, steps_needed, steps_over_classes
from argmaxable.report.figures.gallery import FigureGroup, all_figures, run_figures
from argmaxable.report.figures.hull import hull
from argmaxable.report.figures.plif import plif
from argmaxable.report.figures.random_heads import Measured, measure_random_heads, random_heads
from argmaxable.report.figures.reflections import reflections
from argmaxable.report.figures.regions import decision_regions
from argmaxable.report.figures.style import save

__all__ = [
    "Effort",
    "FigureGroup",
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
    "reflections",
    "run_figures",
    "save",
    "slices",
    "steps_needed",
    "steps_over_classes",
    "unargmaxable_counts",
]
