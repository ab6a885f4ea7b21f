"""The other end of the pool: a process that settles the classes it is told to.

Messages are pickles over this process's own pipes, between two processes of one user; nothing a
user supplies is ever unpickled.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import row_blocks
from argmaxable.core.domains import domain_from_record
from argmaxable.core.head import FLOAT_DTYPES, Head
from argmaxable.run.engines.engine import Job, Report


@dataclass(frozen=True, eq=False)
class Assignment:
    """A job in a form that fits through a pipe: its head lies in files to be mapped."""

    folder: str
    classes: int
    features: int
    weight_dtype: str
    bias_dtype: str | None
    domain: dict[str, Any]
    centre: NDArray[np.float64]
    ignored: NDArray[np.intp]
    tied: frozenset[int]
    score: NDArray[np.float64]
    seed: int
    memory: int | None


def lay_out(job: Job, folder: Path) -> Assignment:
    """Write the head's raw arrays where workers can map them."""
    head = job.head
    with (folder / "weight").open("wb") as file:
        for block in row_blocks(head.classes, head.features):
            np.ascontiguousarray(head.weight[block]).tofile(file)
    if head.bias is not None:
        np.ascontiguousarray(head.bias).tofile(folder / "bias")
    return Assignment(
        folder=str(folder),
        classes=head.classes,
        features=head.features,
        weight_dtype=head.weight.dtype.name,
        bias_dtype=None if head.bias is None else head.bias.dtype.name,
        domain=job.domain.as_record(),
        centre=job.centre,
        ignored=job.ignored,
        tied=job.tied,
        score=job.score,
        seed=job.seed,
        memory=job.memory,
    )


def pick_up(assignment: Assignment) -> Job:
    """The job of an assignment, over the memory-mapped head."""
    folder = Path(assignment.folder)
    shape = (assignment.classes, assignment.features)
    weight = np.memmap(folder / "weight", FLOAT_DTYPES[assignment.weight_dtype], "r", shape=shape)
    bias = None
    if assignment.bias_dtype is not None:
        bias = np.fromfile(folder / "bias", FLOAT_DTYPES[assignment.bias_dtype])
    return Job(
        head=Head(weight, bias),
        domain=domain_from_record(assignment.domain),
        centre=assignment.centre,
        ignored=assignment.ignored,
        tied=assignment.tied,
        score=assignment.score,
        seed=assignment.seed,
        memory=assignment.memory,
    )


def main() -> None:
    """Read an assignment, then class ids until the pipe closes; write a report for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the pipe
    try:
        prover = pick_up(pickle.load(source)).prover()
        while True:
            for class_id in pickle.load(source):
                start = time.perf_counter()
                settled = prover.settle(class_id)
                pickle.dump(Report(settled, time.perf_counter() - start), sink, pickle.HIGHEST_PROTOCOL)
                sink.flush()
    except (EOFError, BrokenPipeError):
        return
