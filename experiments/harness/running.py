"""Cells measured in processes of their own, with progress.

Each process computes on one thread unless told otherwise: small models gain nothing from a second, and the
numbers do not depend on the machine's cores.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import active_children, get_context
from pathlib import Path

from argmaxable.core.errors import InputError
from benchmarks._record import circumstances
from experiments.harness.again import name_of
from experiments.harness.cells import Cell, Experiment, Measure, Settings
from experiments.harness.means import Means, using
from experiments.harness.progress import Shown, Waiting, write
from experiments.harness.storage import cell_path, progress_path, write_json

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LOOK_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Run:
    """What measuring cells needs to know."""

    experiment: Experiment
    text: Path | None
    folder: Path
    workers: int
    device: str
    steps: int | None = None
    threads: int = 1

    def measure(self, wanted: Sequence[Settings]) -> list[Settings]:
        """Measure the cells that are not kept yet; returns their settings."""
        missing = [settings for settings in wanted if not cell_path(self.folder, settings).exists()]
        missing.sort(key=self.experiment.weight, reverse=True)
        waiting = [
            Waiting(name_of(each), self.experiment.weight(each), progress_path(cell_path(self.folder, each)))
            for each in missing
        ]
        for cell in waiting:
            cell.path.unlink(missing_ok=True)  # of a process that was interrupted
        finished = len(wanted) - len(missing)
        with Shown(self.experiment.name, waiting, total=len(wanted), finished=finished) as shown:
            self._compute(missing, waiting, shown)
        return missing

    def _compute(self, missing: Sequence[Settings], waiting: Sequence[Waiting], shown: Shown) -> None:
        # Read by the libraries as a worker loads them.
        os.environ.update(dict.fromkeys(_THREADS, str(self.threads)))
        commit = circumstances()["commit"]
        # Several processes on one GPU compete for its memory.
        workers = 1 if self.device.startswith("cuda") else self.workers
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_worker)
        try:
            running: dict[Future[None], Waiting] = {
                pool.submit(
                    _measure, self.experiment.measure, settings, self.text, commit,
                    cell_path(self.folder, settings), self.device, self.steps, self.threads,
                ): cell
                for settings, cell in zip(missing, waiting, strict=True)
            }  # fmt: skip
            while running:
                ready, _ = wait(running, timeout=_LOOK_EVERY, return_when=FIRST_COMPLETED)
                for future in ready:
                    future.result()
                    shown.finish(running.pop(future))
                shown.look()
        except KeyboardInterrupt:
            # Ctrl-C in a terminal has reached the workers too; `kill -INT` has not.
            for worker in active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            sys.exit(
                "Stopped. Run the same command again to resume: finished cells are stored, and training "
                "within a cell has checkpoints (--smoke stores nothing)."
            )
        except InputError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(
                f"{self.experiment.name}: {error} Finished cells are stored: run the same command again to "
                "resume."
            )
        finally:
            pool.shutdown(cancel_futures=True)


def run_of(experiment: Experiment, text: Path | None, folder: Path, options: argparse.Namespace) -> Run:
    """With as many processes as the cores have threads for, unless their number is given."""
    workers = options.workers or max(1, len(os.sched_getaffinity(0)) // options.threads)
    return Run(experiment, text, folder, workers, options.device, options.steps, options.threads)


def _start_worker() -> None:
    # Ctrl-C reaches the whole group: only the process that started the workers should speak of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _measure(
    measure: Measure,
    settings: Settings,
    text: Path | None,
    commit: str,
    path: Path,
    device: str,
    steps: int | None,
    threads: int,
) -> None:
    started = time.process_time()  # not by the clock: others may want this machine too
    spent = path.with_suffix(".spent")  # by processes that were interrupted, up to their last checkpoint
    earlier = float(spent.read_text()) if spent.exists() else 0.0

    def seconds() -> float:
        return round(earlier + time.process_time() - started, 2)

    def note() -> None:
        spent.write_text(str(seconds()))

    progress = progress_path(path)
    means = Means(
        device, path.with_suffix(""), steps=steps, saved=note, reached=lambda *far: write(progress, *far)
    )
    with using(means):
        found = measure(settings, text)
    cell = Cell(dict(settings), dict(found), seconds(), commit, threads)
    write_json(path, asdict(cell))
    means.forget()
    spent.unlink(missing_ok=True)
    progress.unlink(missing_ok=True)
