"""A head with taught rows: rounded to the head's own dtypes, classes that it never had put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.head import Head
from argmaxable.edit.teach.fit import RowFit
from argmaxable.edit.teach.lesson import Target
from argmaxable.edit.teach.measure import NewRows


@dataclass(frozen=True, eq=False)
class Candidate:
    """The head, the number of each taught class in it by the place of its target, and the new number of each
    class that was there before."""

    head: Head
    ids: dict[int, int]
    moved_ids: Ids = field(repr=False)

    def rows_of(self, targets: tuple[Target, ...]) -> NewRows:
        """The taught rows alone."""
        places = sorted(self.ids)
        ids = np.array([self.ids[place] for place in places], np.intp)
        bias = None if self.head.bias is None else self.head.bias[ids]
        return NewRows(tuple(targets[place] for place in places), Head(self.head.weight[ids], bias))


def assemble(head: Head, targets: tuple[Target, ...], fits: Mapping[int, RowFit], at: int) -> Candidate:
    """The head with these targets' rows; added classes go to `at`, in the order of the targets."""
    added = [place for place in sorted(fits) if targets[place].class_id is None]
    moved = np.arange(head.classes)
    moved[at:] += len(added)
    ids = {place: at + number for number, place in enumerate(added)}
    for place in fits:
        class_id = targets[place].class_id
        if class_id is not None:
            ids[place] = int(moved[class_id])
    classes, has_bias = head.classes + len(added), head.bias is not None
    weight = np.empty((classes, head.features), head.weight.dtype)
    weight[moved] = head.weight[slice(None)]
    bias = None
    if head.bias is not None:
        bias = np.empty(classes, head.bias.dtype)
        bias[moved] = head.bias
    for place, fit in fits.items():
        row, offset = split(fit.vector, has_bias)
        weight[ids[place]] = row
        if bias is not None:
            bias[ids[place]] = offset
    labels = (
        None
        if head.labels is None
        else [*head.labels[:at], *(targets[p].label for p in added), *head.labels[at:]]
    )
    return Candidate(Head(weight, bias, labels, name=head.name), ids, moved)


def split(vector: Vector, has_bias: bool) -> tuple[Vector, float]:
    """The weights and the bias of a fitted row."""
    return (vector[:-1], float(vector[-1])) if has_bias else (vector, 0.0)
