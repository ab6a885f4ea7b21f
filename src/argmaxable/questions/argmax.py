"""verify(head, domain): every class gets a proven verdict.

Cheap searches first (own direction, reflection), then a solve for each class left, whose proofs
are tried on the others. Each answer passes the checker before it counts, so the order of work, the
seed and the number of processes can change the evidence but never a status.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.budget import PROCESS_BYTES, SOLVE_BYTES, Compute
from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.arrays import Ids
from argmaxable.core.boxes import Box
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline, ProgressCallback
from argmaxable.core.result import Result
from argmaxable.core.verdict import Algorithm
from argmaxable.prove.chebyshev import require_box
from argmaxable.prove.prover import Prover
from argmaxable.run.journal import Journal, NoJournal
from argmaxable.run.phases import early_processes, settle_all
from argmaxable.run.session import Session, Settings
from argmaxable.run.settled_classes import Ledger

DEFAULT_DOMAIN = Box(-100.0, 100.0)
# Reflection steps at most before solving starts; it stops earlier when solving is cheaper.
_PATIENCE_BEFORE_SOLVING = 30
# The paper's patience, where reflection has to do without a solver.
_PATIENCE_ALONE = 2500


def verify(
    head: Head,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    only: Iterable[int] | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    patience: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    ray: str | None = None,
    device: str = "numpy",
    memory: int | None = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    journal: Journal | None = None,
) -> Result:
    """Decide for every class (or those in `only`) whether some input of the domain makes it the
    strict argmax, with evidence for each answer.

    `workers` processes share the work (default: one per core), or that many workers of the Ray cluster
    at the address `ray` ("local": one started for this run; default: as many as it has cores). After
    `time_limit` seconds or Ctrl-C the result holds what was proven so far, with `is_complete` False.
    `device` is where the large products run: "numpy", or a device of PyTorch. `memory` limits the bytes
    that all processes of this machine take together; rows that don't fit are converted block by block.
    `method` runs one algorithm alone, `patience` is the number of reflection steps. A `journal`
    (argmaxable.store has one) keeps verdicts as they come in and knows those of an earlier part of the
    run. Raises InputError when the domain does not fit the head or a class does not exist.
    """
    start = time.perf_counter()
    settings = settings_of(method, patience, workers, seed, time_limit, ray, device)
    settings = replace(settings, compute=share_of(memory, head, settings))
    wanted = wanted_classes(head, domain, only, settings)
    journal = NoJournal() if journal is None else journal
    open_classes = len(wanted) - len(journal.known)
    with early_processes(settings, open_classes, head.features) as processes:
        prepared = PreparedHead(head, centre=journal.centre, compute=settings.compute)
        checker = Checker(prepared, domain)
        twins = prepared.twins
        ledger = Ledger(checker, twins, wanted, journal.known)
        prover = Prover(checker, ignored=twins.ignored, tied=frozenset(twins.ties), score=None, seed=seed)
        say = progress or (lambda _: None)
        session = Session(ledger, prover, settings, Deadline(time_limit), say, journal, processes, start)
        session.phases["set-up"] = time.perf_counter() - start
        is_complete = settle_all(session)
    session.record()
    verdicts = ledger.verdicts()
    return Result(
        head=head, facts=prepared.facts, domain=domain, centre=checker.centre, verdicts=verdicts,
        cost=session.cost(), is_complete=is_complete,
    )  # fmt: skip


def settings_of(
    method: Algorithm | str,
    patience: int | None,
    workers: int | None,
    seed: int,
    time_limit: float | None,
    ray: str | None,
    device: str = "numpy",
) -> Settings:
    """The settings with every default filled in; raises InputError for what makes no sense."""
    try:
        algorithm = Algorithm(method)
    except ValueError:
        raise InputError(f"no method '{method}': choose one of {', '.join(Algorithm)}.") from None
    if patience is None:
        patience = _PATIENCE_ALONE if algorithm is Algorithm.REFLECTION else _PATIENCE_BEFORE_SOLVING
    if patience < 0:
        raise InputError(f"patience counts steps of reflection and can't be {patience}.")
    if workers is None and ray is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if workers is not None and workers < 1:
        raise InputError(f"workers counts processes, this one included, and can't be {workers}.")
    if seed < 0:
        raise InputError(f"a seed can't be negative, found {seed}.")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit must be above 0 seconds, found {time_limit}.")
    return Settings(algorithm, patience, workers, seed, ray, Compute(device))


def share_of(memory: int | None, head: Head, settings: Settings) -> Compute:
    """What one process may hold besides the head itself, when all together may take so many bytes."""
    if memory is None:
        return settings.compute
    processes = settings.workers or 1
    each = PROCESS_BYTES + SOLVE_BYTES * head.features**2
    least = head.weight.nbytes + processes * each
    if memory < least:
        sizes = [f"{size / 1e9:.1f} GB" for size in (memory, head.weight.nbytes, each)]
        raise InputError(
            f"{sizes[0]} of memory are too few: the head takes {sizes[1]}, each process {sizes[2]}. "
            f"Allow {math.ceil(least / 1e8) / 10:.1f} GB, or use fewer workers than {processes}."
        )
    return replace(settings.compute, memory=(memory - least) // processes)


def wanted_classes(head: Head, domain: Domain, only: Iterable[int] | None, settings: Settings) -> Ids:
    """The chosen class ids, sorted, each once; raises InputError for what can't be verified."""
    domain.require_features(head.features)
    if settings.algorithm is Algorithm.CHEBYSHEV:
        require_box(domain)
    if only is None:
        return np.arange(head.classes)
    wanted = np.unique(np.fromiter(only, np.intp))
    if len(wanted) == 0:
        raise InputError("no classes chosen: `only` is empty.")
    if wanted[0] < 0 or wanted[-1] >= head.classes:
        stray = int(wanted[0] if wanted[0] < 0 else wanted[-1])
        raise InputError(f"class {stray} does not exist: the head has classes 0 to {head.classes - 1}.")
    return wanted
