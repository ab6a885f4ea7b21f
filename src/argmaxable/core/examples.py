"""Inputs that a model has read, as the features that reached its output layer and what should have been read
there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from argmaxable.core.arrays import Ids, Mask, Matrix32
from argmaxable.core.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Examples:
    """Features of inputs, row by row, and the places at which a label should win.

    Each row of `features` is one decision of the output layer. A classifier decides once per input, a line
    recogniser once per time step: input k owns the rows `ends[k]:ends[k + 1]`, so `ends[0]` is 0.
    `sources[k]` names what input k was made from (a font, a folder, a file), so that whole sources can be
    held out.

    Occurrence j says that `labels[j]` should be read somewhere in the rows `spans[j, 0]:spans[j, 1]`. An
    input without occurrences is an ordinary one: nothing is wanted of it but that its reading stays as it is.
    """

    features: Matrix32
    ends: Ids
    sources: tuple[str, ...]
    labels: tuple[str, ...]
    spans: Ids

    def __repr__(self) -> str:
        rows, features = self.features.shape
        return (
            f"Examples({len(self.sources):,} inputs, {rows:,} rows × {features}, "
            f"{len(self.labels):,} occurrences of {len(set(self.labels)):,} labels)"
        )

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
        if len(self.spans) and (self.spans[:, 1] > self.ends[self.inputs_of(self.spans) + 1]).any():
            raise InputError("a span must lie inside one input: one of them crosses into the next.")
        finite = np.isfinite(self.features).all(axis=1)
        if not finite.all():
            raise InputError(
                f"row {int(np.argmin(finite))} of the features holds NaN or infinite values "
                f"({int((~finite).sum()):,} of {rows:,} rows do). Check how they were computed."
            )

    @property
    def is_sequential(self) -> bool:
        """Whether some input is decided about more than once, as a line of text is."""
        return bool((np.diff(self.ends) > 1).any())

    def inputs_of(self, spans: Ids) -> Ids:
        """The input that each span begins in."""
        return np.searchsorted(self.ends, spans[:, 0], side="right") - 1

    def holding(self, labels: Collection[str]) -> Mask:
        """Which inputs have an occurrence of one of these labels."""
        mine = np.array([label in labels for label in self.labels], bool)
        found = np.zeros(len(self.sources), bool)
        found[self.inputs_of(self.spans[mine])] = True
        return found

    def from_sources(self, names: Collection[str]) -> Examples:
        """The inputs that were made from these sources, with their occurrences."""
        return self.only(np.array([source in names for source in self.sources], bool))

    def only(self, inputs: Mask) -> Examples:
        """The chosen inputs, with their occurrences."""
        sizes = np.diff(self.ends)
        rows = np.repeat(inputs, sizes)
        mine = inputs[self.inputs_of(self.spans)]
        moved = np.concatenate([[0], np.cumsum(rows)])
        return Examples(
            features=self.features[rows],
            ends=np.concatenate([[0], np.cumsum(sizes[inputs])]),
            sources=tuple(source for source, is_mine in zip(self.sources, inputs, strict=True) if is_mine),
            labels=tuple(label for label, is_mine in zip(self.labels, mine, strict=True) if is_mine),
            spans=moved[self.spans[mine]],
        )


def joined(*parts: Examples) -> Examples:
    """All inputs of several sets, one set after the other; raises InputError where their widths differ."""
    widths = {part.features.shape[1] for part in parts}
    if len(widths) != 1:
        raise InputError(f"examples of {sorted(widths)} features can't be joined: expected one width.")
    starts = np.concatenate([[0], np.cumsum([len(part.features) for part in parts])])
    return Examples(
        features=np.concatenate([part.features for part in parts]),
        ends=np.concatenate(
            [[0], *(part.ends[1:] + start for part, start in zip(parts, starts, strict=False))]
        ),
        sources=tuple(source for part in parts for source in part.sources),
        labels=tuple(label for part in parts for label in part.labels),
        spans=np.concatenate([part.spans + start for part, start in zip(parts, starts, strict=False)]),
    )
