"""Whose rows a head holds: all classes, or one process's share of them (vocabulary parallelism).

A softmax needs three numbers from all classes: the largest logit, the sum of exponentials, and the logit of
the target. Processes that hold some rows each find them with two all-reduces, and one more adds up what
their rows pass back to the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, distributed

from argmaxable.core.errors import InputError
from argmaxable.layers.pointwise import Factor


class Vocabulary:
    """All classes, in one process."""

    def exponentiate(
        self, values: Tensor, columns: Tensor, factor: Factor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """values → e^(values − top). Returns the value at each row's column, each row's top, and the sum of
        its exponentials (rows × 1). With a factor, the values stand for values + log(factor)."""
        at_column = values.gather(1, columns)
        if factor is None:
            top = values.amax(1, keepdim=True)
            values.sub_(top).exp_()
        else:
            at_column += factor.log_at(at_column)
            top = factor.top
            values.sub_(top).exp_().mul_(factor.values)
        return at_column, top, values.sum(1, keepdim=True)

    def add_at(self, values: Tensor, columns: Tensor, amounts: Tensor) -> None:
        """Add an amount at each row's column, in place."""
        values.scatter_add_(1, columns, amounts)

    def add_up(self, partial: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        return partial

    def widest(self, classes: int) -> int:
        """The largest number of classes that a process holds, so that all take chunks of the same size."""
        return classes


@final
@dataclass(frozen=True, eq=False)
class VocabularyShard(Vocabulary):
    """Classes `start` to `start + rows − 1` of `classes` in this process; other processes hold the rest."""

    start: int
    rows: int
    classes: int
    most_rows: int
    group: Any = None

    @classmethod
    def of_rows(cls, rows: int, group: Any = None) -> VocabularyShard:
        """Of a process that holds `rows` of them; every process of the group has to call this. Classes are
        numbered in the order of ranks. Raises InputError without a process group."""
        if not (distributed.is_available() and distributed.is_initialized()):
            raise InputError("a shared vocabulary needs a process group: call init_process_group first.")
        counts = [0] * distributed.get_world_size(group)
        distributed.all_gather_object(counts, rows, group=group)  # on whatever device the group works
        start = sum(counts[: distributed.get_rank(group)])
        return cls(start, rows, sum(counts), max(counts), group)

    def exponentiate(
        self, values: Tensor, columns: Tensor, factor: Factor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Without a factor: processes could differ in whether they have one."""
        assert factor is None
        local, is_mine = self._local(columns)
        at_column = values.gather(1, local).masked_fill_(~is_mine, 0)
        top = values.amax(1, keepdim=True)
        distributed.all_reduce(top, distributed.ReduceOp.MAX, group=self.group)
        values.sub_(top).exp_()
        both = self.add_up(torch.stack([at_column, values.sum(1, keepdim=True)]))
        return both[0], top, both[1]

    def add_at(self, values: Tensor, columns: Tensor, amounts: Tensor) -> None:
        local, is_mine = self._local(columns)
        values.scatter_add_(1, local, amounts.masked_fill(~is_mine, 0))

    def add_up(self, partial: Tensor) -> Tensor:
        distributed.all_reduce(partial, group=self.group)
        return partial

    def widest(self, classes: int) -> int:
        return self.most_rows

    def _local(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Columns of this process's rows (0 for those of other processes), and which are its own."""
        local = columns - self.start
        is_mine = (local >= 0) & (local < self.rows)
        return local.masked_fill(~is_mine, 0), is_mine


WHOLE = Vocabulary()
