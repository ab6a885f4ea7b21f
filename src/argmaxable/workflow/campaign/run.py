"""Running a campaign: one model after another, past those that fail, with what a summary needs of each."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from argmaxable.core.errors import EvidenceError, InputError, StoreError
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.run.plan import DEFAULT_ENGINE, Engine
from argmaxable.workflow.verify_model import ModelVerdicts, answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.core.head import Facts
    from argmaxable.core.result import Cost
    from argmaxable.core.verdict import Verdict
    from argmaxable.store import Store
    from argmaxable.workflow.campaign.plan import CampaignModel

# Labels of unargmaxable classes held for each model; the run has all of them.
_MOST_LABELS = 60


@dataclass(frozen=True)
class ModelSummary:
    """What was found out about a model, without verdicts and weights: a campaign may have many.

    `labels` are some of the unargmaxable classes', from all over the vocabulary, those first that are not
    merely tied.
    """

    facts: Facts
    domain: Domain
    domain_source: DomainSource | None
    verified: int
    unargmaxable: int
    tied: int
    undecided: int
    labels: tuple[str, ...]
    has_names: bool
    cost: Cost
    is_complete: bool
    run_id: int | None
    was_known: bool


@dataclass(frozen=True)
class ModelOutcome:
    """A model's answer, or why there is none; `details` is the traceback of an error of ours."""

    entry: CampaignModel
    answer: ModelSummary | None = None
    error: str = ""
    details: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether every class of the model that was asked for has a proven verdict."""
        return self.answer is not None and self.answer.is_complete and not self.answer.undecided


@dataclass(frozen=True)
class Resources:
    """What a campaign may use: for each model this engine for `time_limit` seconds."""

    engine: Engine = DEFAULT_ENGINE
    time_limit: float | None = None
    cache_dir: Path | None = None


def run_campaign(
    entries: Sequence[CampaignModel],
    *,
    store: Store | None,
    overwrite: bool,
    resources: Resources,
    progress: ProgressCallback = ignore_progress,
) -> Iterator[ModelOutcome]:
    """Verify one model after another; those whose run the store has finished are not computed again.

    Ends early after Ctrl-C, with the outcome of the model that it interrupted. Raises StoreError and
    EvidenceError: without a database no model fares better, and evidence of ours that fails its check
    is a bug.
    """
    for entry in entries:
        start = time.monotonic()
        outcome = _outcome(entry, store, overwrite, resources, progress)
        yield outcome
        if outcome.answer is not None and not outcome.answer.is_complete:
            had_time = resources.time_limit is None or time.monotonic() - start < resources.time_limit
            if had_time:  # so it was the user who stopped it
                return


def _outcome(
    entry: CampaignModel,
    store: Store | None,
    overwrite: bool,
    resources: Resources,
    progress: ProgressCallback,
) -> ModelOutcome:
    try:
        ref = replace(entry.request.ref, cache_dir=resources.cache_dir)
        found = answer(
            replace(entry.request, ref=ref), store=store, overwrite=overwrite,
            engine=resources.engine, time_limit=resources.time_limit, progress=progress,
        )  # fmt: skip
    except (StoreError, EvidenceError):
        raise
    except InputError as error:
        return ModelOutcome(entry, error=str(error))
    except Exception as error:  # a bug that one model brings to light should not cost the others
        return ModelOutcome(entry, error=f"{type(error).__name__}: {error}", details=traceback.format_exc())
    return ModelOutcome(entry, _answer(found))


def _answer(found: ModelVerdicts) -> ModelSummary:
    result = found.result
    never = sorted(result.unargmaxable, key=lambda verdict: verdict.is_tied)
    dominated = len(never) - len(result.tied)
    shown = [*_spread(never[:dominated]), *_spread(never[dominated:])][:_MOST_LABELS]
    return ModelSummary(
        facts=result.facts,
        domain=result.domain,
        domain_source=result.domain_source,
        verified=len(result.verdicts),
        unargmaxable=len(never),
        tied=len(result.tied),
        undecided=len(result.undecided),
        labels=tuple(verdict.label for verdict in shown),
        has_names=result.head.labels is not None,
        cost=result.cost,
        is_complete=result.is_complete,
        run_id=found.run_id,
        was_known=found.was_known,
    )


def _spread(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """As many of them as are shown, at even distances: neighbours in a vocabulary are alike."""
    step = max(1, len(verdicts) / _MOST_LABELS)
    return [verdicts[int(number * step)] for number in range(min(len(verdicts), _MOST_LABELS))]
