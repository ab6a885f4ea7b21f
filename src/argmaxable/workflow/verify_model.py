"""A model from its name to its verdicts: find the head, choose domain and classes, verify, keep.

What `argmaxable verify` does to one model and a campaign to many.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.compute.prepared import centre_of
from argmaxable.core.domain import Domain
from argmaxable.core.domains import parse_domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import ProgressCallback
from argmaxable.core.result import Facts, Result
from argmaxable.core.select import classes_in_script, classes_named, padding_classes, special_classes
from argmaxable.core.verdict import Algorithm
from argmaxable.models import find_head, model_name, read_head
from argmaxable.models.finding import Finding
from argmaxable.questions.argmax import settings_of, share_of, verify, wanted_classes
from argmaxable.questions.arithmetic.formats import Rounding, rounded
from argmaxable.run.journal import Journal
from argmaxable.run.session import Settings

if TYPE_CHECKING:  # a database library is loaded only for those who keep runs
    from argmaxable.store import Plan, Store
    from argmaxable.store.run import Run


@dataclass(frozen=True)
class Request:
    """What a user asks about a model. `domain` is as on the command line, `only` a list of classes;
    `task` and `family` are kept with the run, `name` stands for the model's own. With `round_to` the
    question is about a copy of the head whose weights are rounded to that format."""

    model: str
    domain: str = "box:100"
    only: tuple[int, ...] | None = None
    tokens: tuple[str, ...] = ()
    script: str | None = None
    skip_special: bool = False
    skip_padding: bool = False
    method: Algorithm = Algorithm.AUTO
    patience: int | None = None
    seed: int = 0
    tensor: str | None = None
    bias_tensor: str | None = None
    transpose: bool = False
    labels: Path | None = None
    revision: str | None = None
    subfolder: str | None = None
    cache_dir: Path | None = None
    name: str | None = None
    task: str = ""
    family: str = ""
    round_to: Rounding | None = None


@dataclass(frozen=True, eq=False)
class Audit:
    """The verdicts, what was found in the file, and the run that keeps them, if one does.

    `was_known` is True when the store had them already and nothing was computed.
    """

    result: Result
    finding: Finding
    run_id: int | None
    was_known: bool


@dataclass(frozen=True, eq=False)
class _Work:
    """A request made concrete."""

    head: Head
    domain: Domain
    only: list[int] | None
    settings: Settings
    memory: int | None


def audit(
    request: Request,
    *,
    store: Store | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    device: str = "numpy",
    memory: int | None = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> Audit:
    """Verify the model's head. With a store, a run for the same head, domain, classes and settings is
    found again or resumed there, unless `overwrite`; without one nothing is kept.

    `ray` is the address of a Ray cluster (or "local") whose workers share the work; `device` and `memory`
    are as in `verify`. Raises InputError
    when the model, the domain or the choice of classes is wrong, or the store can't be used.
    """
    given = None if request.domain == "auto" else parse_domain(request.domain)
    finding = find_head(
        request.model, tensor=request.tensor, bias_tensor=request.bias_tensor, transpose=request.transpose,
        labels=request.labels, revision=request.revision, subfolder=request.subfolder,
        cache_dir=request.cache_dir,
    )  # fmt: skip
    head = read_head(finding, request.model, request.name)
    if request.round_to is not None:
        head = rounded(head, request.round_to)
    work = _Work(
        head=head,
        domain=proven_domain(finding) if given is None else given,
        only=chosen_classes(head, request, finding.special),
        settings=settings_of(
            request.method, request.patience, workers, request.seed, time_limit, ray, device
        ),
        memory=memory,
    )
    wanted_classes(head, work.domain, work.only, work.settings)  # complain before a run is begun
    share_of(memory, head, work.settings)
    if store is None:
        return Audit(_verify(work, time_limit, progress, None), finding, None, False)
    with store.begin(_plan(request, work), centre=centre_of(head), overwrite=overwrite) as run:
        was_known = run.is_finished
        if was_known:
            result = _known_result(work, run)
        else:
            result = _verify(work, time_limit, progress, run)
            if result.is_complete:
                run.finish(result.cost)
    return Audit(result, finding, run.run_id, was_known)


def _verify(
    work: _Work,
    time_limit: float | None,
    progress: ProgressCallback | None,
    journal: Journal | None,
) -> Result:
    settings = work.settings
    return verify(
        work.head, work.domain, only=work.only, method=settings.algorithm, patience=settings.patience,
        workers=settings.workers, seed=settings.seed, ray=settings.ray,
        device=settings.compute.device, memory=work.memory, time_limit=time_limit, progress=progress,
        journal=journal,
    )  # fmt: skip


def _plan(request: Request, work: _Work) -> Plan:
    from argmaxable.store import Plan

    return Plan(
        facts=Facts.of(work.head),
        labels=work.head.labels,
        domain=work.domain,
        algorithm=work.settings.algorithm,
        patience=work.settings.patience,
        seed=work.settings.seed,
        only=None if work.only is None else tuple(sorted(set(work.only))),
        origin=origin_of(request),
        task=request.task,
        family=request.family,
    )


def _known_result(work: _Work, run: Run) -> Result:
    return Result(
        head=work.head,
        facts=Facts.of(work.head),
        domain=work.domain,
        centre=run.centre,
        verdicts=tuple(run.known[class_id] for class_id in sorted(run.known)),
        cost=run.spent,
    )


def origin_of(request: Request) -> str:
    """Where the model came from, in words that tell nothing about this machine."""
    parts = [model_name(request.model)]
    if request.subfolder is not None:
        parts.append(f"folder {request.subfolder}")
    if request.revision is not None:
        parts.append(f"revision {request.revision}")
    if request.tensor is not None:
        parts.append(f"tensor {request.tensor}")
    if request.round_to is not None:
        parts.append(f"rounded to {request.round_to.value}")
    return ", ".join(parts)


def proven_domain(finding: Finding) -> Domain:
    """The domain that the model file itself proves for the head's inputs."""
    if finding.inputs is None or finding.inputs.domain is None:
        said = "" if finding.inputs is None else f" ({finding.inputs.description})"
        raise InputError(f"--domain auto: the file does not say what reaches the head{said}. Pass a domain.")
    return finding.inputs.domain


def chosen_classes(head: Head, request: Request, special: frozenset[int]) -> list[int] | None:
    """The classes that all the user's wishes leave; None for all of them.

    `special` are those that the model's files declare to be.
    """
    listed = None if request.only is None else list(request.only)
    if not (request.tokens or request.script or request.skip_special or request.skip_padding):
        return listed
    if head.labels is None:
        raise InputError(
            "choosing classes by label needs labels, and the model has none. Pass --labels FILE."
        )
    left = set(range(head.classes)) if listed is None else set(listed)
    if request.tokens:
        left &= set(classes_named(head.labels, request.tokens))
    if request.script:
        left &= set(classes_in_script(head.labels, request.script, special))
    if request.skip_special:
        left -= set(special_classes(head.labels, special))
    if request.skip_padding:
        left -= set(padding_classes(head.labels))
    if not left:
        raise InputError("no class is left: loosen --only, --tokens, --script or --skip-….")
    return sorted(left)
