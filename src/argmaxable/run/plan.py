"""The plan of a run: what is asked about which head, and by what means, checked before any work begins."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.budget import PROCESS_BYTES, SOLVE_BYTES, Compute
from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Algorithm
from argmaxable.prove.chebyshev import require_box

if TYPE_CHECKING:
    from collections.abc import Iterable

    from argmaxable.core.arrays import Ids
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

# Reflection steps at most before solving starts; it stops earlier when solving is cheaper.
_PATIENCE_BEFORE_SOLVING = 30
# The paper's patience, where reflection has to do without a solver.
_PATIENCE_ALONE = 2500


@dataclass(frozen=True)
class Engine:
    """Who does the work. It can change the evidence and the time, never a status.

    `workers` processes share it (default: one per core), or that many workers of the Ray cluster at the
    address `ray` ("local" starts one for this run; default: as many as it has cores). `device` is where large
    products run: "numpy", or a device of PyTorch. `memory` limits the bytes that all processes of this
    machine take together; rows that don't fit are converted block by block.
    """

    workers: int | None = None
    ray: str | None = None
    device: str = "numpy"
    memory: int | None = None


DEFAULT_ENGINE = Engine()
ONE_PROCESS = Engine(workers=1)


@dataclass(frozen=True)
class Settings:
    """How to go about it; with the default algorithm none of these can change a status.

    `workers` counts processes, this one included; None, with the address of a Ray cluster, means all
    that it has. `compute` is this process's device and its share of the memory.
    """

    algorithm: Algorithm
    patience: int
    seed: int
    workers: int | None
    ray: str | None
    compute: Compute
    time_limit: float | None


@dataclass(frozen=True, eq=False)
class RunPlan:
    """A question that makes sense: `only` lists class ids in order, each once; None means all."""

    head: Head
    domain: Domain
    only: tuple[int, ...] | None
    settings: Settings

    @cached_property
    def prepared(self) -> PreparedHead:
        """The head made ready, for the run and for whatever is asked after it."""
        return PreparedHead(self.head, compute=self.settings.compute)

    @property
    def wanted(self) -> Ids:
        return np.arange(self.head.classes) if self.only is None else np.array(self.only, np.intp)


def make_plan(
    head: Head,
    domain: Domain,
    *,
    only: Iterable[int] | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    patience: int | None = None,
    seed: int = 0,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
) -> RunPlan:
    """The plan with every default filled in; raises InputError for what makes no sense."""
    settings = Settings(
        algorithm=(algorithm := _algorithm(method)),
        patience=_patience(patience, algorithm),
        seed=seed,
        workers=(workers := _workers(engine)),
        ray=engine.ray,
        compute=Compute(engine.device, _share(engine.memory, head, workers or 1)),
        time_limit=time_limit,
    )
    if seed < 0:
        raise InputError(f"a seed can't be negative, found {seed}.")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit must be above 0 seconds, found {time_limit}.")
    domain.require_features(head.features)
    if algorithm is Algorithm.CHEBYSHEV:
        require_box(domain)
    if algorithm is Algorithm.REFLECTION:
        domain.require_directions("reflection")
    return RunPlan(head, domain, None if only is None else _existing(head, only), settings)


def _algorithm(method: Algorithm | str) -> Algorithm:
    try:
        return Algorithm(method)
    except ValueError:
        raise InputError(f"no method '{method}': choose one of {', '.join(Algorithm)}.") from None


def _patience(patience: int | None, algorithm: Algorithm) -> int:
    if patience is None:
        return _PATIENCE_ALONE if algorithm is Algorithm.REFLECTION else _PATIENCE_BEFORE_SOLVING
    if patience < 0:
        raise InputError(f"patience counts steps of reflection and can't be {patience}.")
    return patience


def _workers(engine: Engine) -> int | None:
    if engine.workers is None and engine.ray is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if engine.workers is not None and engine.workers < 1:
        raise InputError(f"workers counts processes, this one included, and can't be {engine.workers}.")
    return engine.workers


def _share(memory: int | None, head: Head, processes: int) -> int | None:
    """The bytes that one process may hold besides the head itself, when all together may take `memory`."""
    if memory is None:
        return None
    each = PROCESS_BYTES + SOLVE_BYTES * head.features**2
    least = head.weight.nbytes + processes * each
    if memory < least:
        sizes = [f"{size / 1e9:.1f} GB" for size in (memory, head.weight.nbytes, each)]
        raise InputError(
            f"{sizes[0]} of memory are too few: the head takes {sizes[1]}, each process {sizes[2]}. "
            f"Allow {math.ceil(least / 1e8) / 10:.1f} GB, or use fewer workers than {processes}."
        )
    return (memory - least) // processes


def _existing(head: Head, only: Iterable[int]) -> tuple[int, ...]:
    wanted = np.unique(np.fromiter(only, np.intp))
    if len(wanted) == 0:
        raise InputError("no classes chosen: `only` is empty.")
    if wanted[0] < 0 or wanted[-1] >= head.classes:
        stray = int(wanted[0] if wanted[0] < 0 else wanted[-1])
        raise InputError(f"class {stray} does not exist: the head has classes 0 to {head.classes - 1}.")
    return tuple(wanted.tolist())
