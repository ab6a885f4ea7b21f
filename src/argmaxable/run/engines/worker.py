"""The other end of the pool: a process that settles the classes it is told to.

A job lies in a folder: the head's raw arrays, to be mapped, and whatever else there is to know. Messages are
pickles over this process's own pipes, between two processes of one user; nothing a user supplies is ever
unpickled.
"""

from __future__ import annotations

import json
import pickle
from importlib import import_module
from pathlib import Path

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.core.domains import domain_from_record
from argmaxable.core.head import FLOAT_DTYPES, Head
from argmaxable.run.engines.children import pipes_of_this_child
from argmaxable.run.engines.engine import Job, settle_each


def lay_out(job: Job, folder: Path) -> None:
    """Write the job where workers can pick it up."""
    head = job.head
    with (folder / "weight").open("wb") as file:
        for block in row_blocks(head.classes, head.features):
            np.ascontiguousarray(head.weight[block]).tofile(file)
    if head.bias is not None:
        np.ascontiguousarray(head.bias).tofile(folder / "bias")
    np.savez(
        folder / "arrays.npz",
        centre=job.centre, ignored=job.ignored, tied=np.array(sorted(job.tied), np.intp), score=job.score,
    )  # fmt: skip
    about = {
        "shape": [head.classes, head.features],
        "weight": head.weight.dtype.name,
        "bias": None if head.bias is None else head.bias.dtype.name,
        "domain": job.domain.as_record(),
        "seed": job.seed,
        "memory": job.memory,
    }
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def pick_up(folder: Path) -> Job:
    """The job in a folder, over the memory-mapped head."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    weight = np.memmap(folder / "weight", FLOAT_DTYPES[about["weight"]], "r", shape=tuple(about["shape"]))
    bias = None if about["bias"] is None else np.fromfile(folder / "bias", FLOAT_DTYPES[about["bias"]])
    with np.load(folder / "arrays.npz") as arrays:
        return Job(
            head=Head(weight, bias),
            domain=domain_from_record(about["domain"]),
            centre=arrays["centre"],
            ignored=arrays["ignored"],
            tied=frozenset(arrays["tied"].tolist()),
            score=arrays["score"],
            seed=about["seed"],
            memory=about["memory"],
        )


def main() -> None:
    """Read the name of a job's folder, then class ids until the pipe closes; write a report for each."""
    source, sink = pipes_of_this_child()
    import_module("argmaxable.prove.prover")  # now, while the parent still prepares the job
    try:
        prover = pick_up(Path(pickle.load(source))).prover()
        while True:
            classes = pickle.load(source)
            for report in settle_each(prover, classes):
                pickle.dump(report, sink, pickle.HIGHEST_PROTOCOL)
                sink.flush()
    except (EOFError, BrokenPipeError):
        return
