"""Models and stored runs side by side: models are verified first, so that both are runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import EvidenceError, InputError
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.models.model_ref import ModelRef
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.report.changes import contradictions
from argmaxable.report.comparison import compare
from argmaxable.report.side_by_side import Side
from argmaxable.run.plan import DEFAULT_ENGINE, Engine
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT
from argmaxable.workflow.verify_model import Request, answer

if TYPE_CHECKING:
    from argmaxable.core.result import Result
    from argmaxable.store import RunSummary, Store

# Later parts of a model that is split into several files.
_LATER_PART = "-of-0"


@dataclass(frozen=True)
class CompareRequest:
    """How models are verified; runs are taken as they are. With `number` also which argmaxable classes only
    just win: not by more than the rounding errors of logits in that format."""

    domain: str = DEFAULT_DOMAIN_TEXT
    number: Float | None = None
    engine: Engine = DEFAULT_ENGINE
    time_limit: float | None = None
    overwrite: bool = False


def models_in(names: Sequence[str]) -> list[str]:
    """The names, with a directory of several GGUF files replaced by these, the largest first.

    Raises InputError when fewer than two are left.
    """
    found = [each for name in names for each in (_quantisations(name) or [name])]
    if len(found) < 2:
        raise InputError(
            f"{' '.join(names)}: nothing to compare it with. Name two or more models or runs, or a directory "
            "with several .gguf files."
        )
    return found


def _quantisations(name: str) -> list[str]:
    files = [
        path for path in Path(name).glob("*.gguf") if _LATER_PART not in path.name or "-00001-" in path.name
    ]
    return [str(path) for path in sorted(files, key=_size_first)] if len(files) > 1 else []


def _size_first(path: Path) -> tuple[int, str]:
    return -path.stat().st_size, path.name


def sides_of(
    names: Sequence[str],
    store: Store,
    request: CompareRequest,
    *,
    find_run: Callable[[Store, str], RunSummary],
    progress: ProgressCallback = ignore_progress,
) -> list[Side]:
    """Each name's run, every one but the first compared with the first.

    Raises InputError for a name that is neither a model nor a run, EvidenceError for runs that contradict
    each other.
    """
    sides: list[Side] = []
    for name in names:
        side = _side(name, store, request, find_run, progress)
        if sides:
            side = _compared(side, sides[0], store)
        sides.append(side)
    return sides


def _side(
    name: str,
    store: Store,
    request: CompareRequest,
    find_run: Callable[[Store, str], RunSummary],
    progress: ProgressCallback,
) -> Side:
    """A path, an address or a package is a model; any other name a run, or else a model on the hub."""
    if not (os.path.exists(name) or name.startswith("pypi:") or "://" in name):
        try:
            run = find_run(store, name)
            return Side(run, run.facts.dtype)
        except InputError:
            if "/" not in name:
                raise
    done = answer(
        Request(ModelRef(name), request.domain), store=store, overwrite=request.overwrite,
        engine=request.engine, time_limit=request.time_limit, progress=progress,
    )  # fmt: skip
    assert done.run_id is not None  # since there is a store
    thin = None if request.number is None else _thin(done.result, request.number)
    return Side(store.run(done.run_id), done.finding.weight.dtype, thin)


def _thin(result: Result, number: Float) -> tuple[str, ...]:
    from argmaxable.questions.arithmetic.survival import Outcome, survival  # loads what few comparisons need

    found = survival(result, number)
    outcomes = (Outcome.UNARGMAXABLE, Outcome.ON_PAPER_ONLY)
    return tuple(fate.label for outcome in outcomes for fate in found.having(outcome))


def _compared(side: Side, base: Side, store: Store) -> Side:
    comparison = compare(
        *(partial(store.verdicts, each.run.run_id, with_evidence=False) for each in (base, side))
    )
    opposite = contradictions(base.run, side.run, comparison)
    if opposite:
        before, after = opposite[0].before, opposite[0].after
        raise EvidenceError(
            f"the runs contradict each other: class {before.class_id} can't be {before.status.value} and "
            f"{after.status.value} over the same domain. Please report this with both bundles."
        )
    return Side(side.run, side.weights, side.thin, comparison)
