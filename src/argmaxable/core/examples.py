"""Inputs that a model has read, as the features that reached its output layer and what should have been read there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from argmaxable.core.arrays import Ids, Matrix32
from argmaxable.core.errors import InputError


@dataclass(frozen=True)
class Examples:
    """Features of inputs, row by row, and the places at which a label should win.

    Each row of `features` is one decision of the output layer. A classifier decides once per input, a line
    recogniser once per time step: input k owns the rows `ends[k]:ends[k + 1]`, so `ends[0]` is 0. `sources[k]`
    names what input k was made from (a font, a folder, a file), so that whole sources can be held out.

    Occurrence j says that `labels[j]` should be read somewhere in the rows `spans[j, 0]:spans[j, 1]`. An input
    without occurrences is an ordinary one: nothing is wanted of it but that its reading stays as it is.
    """

    features: Matrix32
    ends: Ids
    sources: tuple[str, ...]
    labels: tuple[str, ...]
    spans: Ids

    def __post_init__(self) -> None:
        rows, inputs = len(self.features), len(self.sources)
        if self.features.ndim != 2:
            raise InputError(f"features have {self.features.ndim} dimensions; expected 2 (rows × features).")
        if self.ends.shape != (inputs + 1,) or self.ends[0] != 0 or self.ends[-1] != rows:
            raise InputError(
                f"{inputs} inputs need {inputs + 1} ends, from 0 to the {rows} rows of features."
            )
        if (np.diff(self.ends) < 0).any():
            raise InputError("the ends of inputs must not decrease.")
        if self.spans.shape != (len(self.labels), 2):
            raise InputError(f"{len(self.labels)} labels need as many spans; found shape {self.spans.shape}.")
        if len(self.spans) and not ((self.spans[:, 0] >= 0) & (self.spans[:, 0] < self.spans[:, 1])).all():
            raise InputError("a span must hold at least one row.")
        if len(self.spans) and self.spans.max() > rows:
            raise InputError(f"a span ends at row {self.spans.max()}, but there are {rows} rows.")

    def inputs_of(self, spans: Ids) -> Ids:
        """The input that each span begins in."""
        return np.searchsorted(self.ends, spans[:, 0], side="right") - 1

    def from_sources(self, names: set[str]) -> Examples:
        """The inputs that were made from these sources, with their occurrences."""
        wanted = np.array([source in names for source in self.sources], bool)
        sizes = np.diff(self.ends)
        rows = np.repeat(wanted, sizes)
        ends = np.concatenate([[0], np.cumsum(sizes[wanted])])
        mine = wanted[self.inputs_of(self.spans)] if len(self.spans) else np.zeros(0, bool)
        moved = np.concatenate([[0], np.cumsum(rows)])
        return replace(
            self,
            features=self.features[rows],
            ends=ends,
            sources=tuple(source for source in self.sources if source in names),
            labels=tuple(label for label, is_mine in zip(self.labels, mine, strict=True) if is_mine),
            spans=moved[self.spans[mine]],
        )
