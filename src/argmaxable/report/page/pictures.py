"""The charts of a report: margins, steps over the vocabulary, norms against margins, the spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.page.charts import Captions, Chart, curve, histogram, scatter
from argmaxable.report.page.wording import STATUSES, Noun
from argmaxable.report.rows import known_class

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.report.page.weights import Weights

# Beyond these a logarithmic axis has no room left; a margin of 0 is no place on it either.
_SMALLEST, _LARGEST = 1e-250, 1e250
# Steps of a search that was given much patience are drawn on a logarithmic axis.
_MANY_STEPS = 60
# A chart of a point or two shows nothing.
_FEWEST_DRAWN = 3
_ROLES = {Status.ARGMAXABLE: "can", Status.UNARGMAXABLE: "never", Status.UNDECIDED: "open"}


def margin_charts(verdicts: Sequence[Verdict], noun: Noun) -> list[Chart]:
    """Two histograms, read from left to right: margins below zero, then those above."""
    never = _drawable([-verdict.upper for verdict in verdicts if verdict.status is Status.UNARGMAXABLE])
    can = _drawable([verdict.lower for verdict in verdicts if verdict.status is Status.ARGMAXABLE])
    charts = []
    if len(never):
        charts.append(
            histogram(
                *(never,), title=f"{noun.many.capitalize()} that are never predicted",
                x_title="margin: at most", noun=noun.many, role="never", mirrored=True,
            )
        )  # fmt: skip
    if len(can):
        charts.append(
            histogram(
                *(can,), title=f"{noun.many.capitalize()} that can be predicted",
                x_title="margin: at least", noun=noun.many, role="can",
            )
        )  # fmt: skip
    return charts


def _drawable(sizes: Sequence[float]) -> Vector:
    values = np.array(sizes, dtype=np.float64)
    return values[(values > _SMALLEST) & (values < _LARGEST)]


def steps_chart(verdicts: Sequence[Verdict], noun: Noun) -> Chart | None:
    """Steps against the class's number (Figures 11 and 12 of Grivas et al. 2022), None where few took any.

    Most classes take no step and are not drawn; those that are never predicted are marked beneath, since a
    proof that was found for another class costs no step either.
    """
    numbered = [verdict for verdict in verdicts if known_class(verdict) is not None]
    hard = [verdict for verdict in numbered if verdict.steps]
    if len(hard) < _FEWEST_DRAWN:
        return None
    last = max(verdict.class_id for verdict in numbered)
    never = [verdict for verdict in numbered if verdict.status is Status.UNARGMAXABLE]
    most = max(verdict.steps for verdict in hard)
    easy = len(numbered) - len(hard)
    return scatter(
        [(_ROLES[status], STATUSES[status], *_places_and_steps(hard, status)) for status in Status],
        Captions(
            f"Steps that a {noun.one} took, over the vocabulary",
            f"{len(hard):,} {noun.many} took between 1 and {most:,} steps; {easy:,} took none.",
            x=f"number of the {noun.one}",
            y="steps",
        ),
        x_range=(0, max(last, 1)),
        y_log=most > _MANY_STEPS,
        rugs=[("never", "never predicted: where they are", _numbers(never))] if never else [],
        size=(1060, 300),
        whole_y=True,
    )  # fmt: skip


def _places_and_steps(verdicts: Sequence[Verdict], status: Status) -> tuple[Vector, Vector]:
    chosen = [verdict for verdict in verdicts if verdict.status is status]
    return _numbers(chosen), np.array([verdict.steps for verdict in chosen], dtype=np.float64)


def _numbers(verdicts: Sequence[Verdict]) -> Vector:
    return np.array([verdict.class_id for verdict in verdicts], dtype=np.float64)


def weight_charts(verdicts: Sequence[Verdict], weights: Weights, noun: Noun) -> list[Chart]:
    """Norm against margin, and the spectrum."""
    charts = []
    can = [
        verdict
        for verdict in verdicts
        if verdict.status is Status.ARGMAXABLE and _SMALLEST < verdict.lower < _LARGEST
    ]
    never = [verdict for verdict in verdicts if verdict.status is Status.UNARGMAXABLE]
    # A row of zeros has no place on a logarithmic axis; all norms are nearly of one size, so none is needed.
    lo, hi = float(weights.norms.min()), float(weights.norms.max())
    room = 0.03 * (hi - lo) or 1.0
    if can:
        charts.append(
            scatter(
                [("can", STATUSES[Status.ARGMAXABLE], weights.norms[_ids(can)], _lowers(can))],
                Captions(
                    f"Norm of a {noun.one}'s weights, and its margin",
                    f"{len(can):,} {noun.many} that can be predicted; norms from {lo:.3g} to {hi:.3g}.",
                    x="norm of the weight vector",
                    y="margin: at least",
                ),
                x_range=(lo - room, hi + room),
                y_log=True,
                rugs=[("never", "never predicted: their norms", weights.norms[_ids(never)])] if never else [],
            )
        )
    if len(weights.spectrum):
        count, largest, smallest = len(weights.spectrum), weights.spectrum[0], weights.spectrum[-1]
        charts.append(
            curve(
                weights.spectrum,
                title="Spectrum of the weights",
                summary=f"{count:,} singular values from {largest:.3g} down to {smallest:.3g}.",
                x_title="place",
                y_title="singular value",
            )
        )
    return charts


def _ids(verdicts: Sequence[Verdict]) -> list[int]:
    return [verdict.class_id for verdict in verdicts]


def _lowers(verdicts: Sequence[Verdict]) -> Vector:
    return np.array([verdict.lower for verdict in verdicts], dtype=np.float64)
