"""A program of its own that shares work with Ray workers; test_ray.py runs it and reads what it prints.

Ray keeps threads and sockets for the life of a process, which the tests' own should not have.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import argmaxable as am
from argmaxable.run.engines.ray import RayWorkers


def hard_head(dtype: Any = np.float32) -> am.Head:
    """600 classes, of which a third lies in the middle and has to be solved for."""
    generator = np.random.default_rng(2)
    weight = generator.normal(size=(600, 48))
    weight[:200] *= 0.3
    return am.Head(weight.astype(dtype), np.where(np.arange(600) < 200, -2, 0).astype(np.float32))


def settlers() -> list[int]:
    """Ray's worker processes that have taken on a job."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::Settler"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has just ended
    return found


def listening() -> list[str]:
    """Addresses at which Ray's processes of this machine listen, in the kernel's hexadecimal notation."""
    sockets = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray" in path.read_bytes():
                sockets |= {os.readlink(link) for link in path.parent.glob("fd/*")}
        except OSError:
            continue
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.append(fields[1].partition(":")[0])
    return addresses


def wait_for_the_others() -> None:
    """Let this process go on only after a worker's first report: else it would be done before they start."""
    collect = RayWorkers.collect
    waited: list[bool] = []

    def patient(self: Any, *, wait: float) -> Any:
        batches = [batch for worker in self._workers.values() for batch, _ in worker.batches]
        if batches and not waited:
            self._ray.wait(batches, num_returns=1)
            waited.append(True)
        return collect(self, wait=wait)

    RayWorkers.collect = patient  # type: ignore[method-assign]


def main() -> None:
    killed: list[int] = []
    heard: list[str] = []

    def watch(progress: am.Progress) -> None:
        if progress.phase != "solving":
            return
        if not heard:
            heard.extend(listening())
        if not killed and (running := settlers()):
            os.kill(running[0], signal.SIGKILL)
            killed.append(running[0])

    wait_for_the_others()
    result = am.verify(hard_head(), engine=am.Engine(workers=2, ray="local"), progress=watch)
    statuses = [verdict.status.value for verdict in result.verdicts]
    left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    found = {"statuses": statuses, "killed": len(killed), "left": settlers(), "listening": heard}
    print(json.dumps({**found, "files": left}))


if __name__ == "__main__":
    main()
