"""The option of `verify` about the first k places, and what it adds to the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.remarks import Remarks
from argmaxable.core.errors import InputError
from argmaxable.run.plan import Engine
from argmaxable.workflow.verify_model import ModelVerdicts

TopK = Annotated[
    int | None,
    Option("--top-k", help="Also decide whether unargmaxable classes can be among the first K."),
]


def require_places(top_k: int | None) -> None:
    """Raise InputError for a k that counts no places."""
    if top_k is not None and top_k < 1:
        raise InputError(f"--top-k must be 1 or more, found {top_k}.")


def top_k_remarks(
    top_k: int | None, done: ModelVerdicts, *, output: Path | None, time_limit: float | None, engine: Engine
) -> Remarks:
    """The answer, written into the bundle's folder if there is one."""
    if top_k is None:
        return Remarks((), {})
    result = done.result
    # Late: few runs ask about places.
    from argmaxable.proofs.ranks import write_ranks
    from argmaxable.questions.best_rank.top_k import best_ranks
    from argmaxable.questions.best_rank.wording import as_record, describe

    left = None if time_limit is None else max(time_limit - result.cost.seconds, 1e-3)
    with progress_bar("best ranks") as progress:
        ranks = best_ranks(
            done.prepared, result.domain, result=result, top_k=top_k, engine=engine, time_limit=left,
            progress=progress,
        )  # fmt: skip
    if output is not None:
        write_ranks(result, ranks, output, top_k=top_k)
    records = [as_record(rank, top_k) for rank in ranks]
    return Remarks(tuple(describe(ranks, top_k)), {"top_k": top_k, "best_ranks": records})
