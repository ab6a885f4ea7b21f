"""What a report is about: a result, a stored run, or the claims of a proof bundle."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import BundleError, InputError
from argmaxable.core.head import Facts, Head
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status, Verdict
from argmaxable.proofs.bundle import read_bundle
from argmaxable.report.stored_runs import headline
from argmaxable.store import RunSummary, State

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.core.result import Cost, Result
    from argmaxable.store import Store


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """Verdicts in class order, with certificates but perhaps without witnesses, and what is known of them.

    `wanted` is how many classes were asked for. Verdicts that somebody published are not `has_evidence`.
    A bundle tells nothing of the `cost` and of the head's bias and dtype. The `caveat` says what keeps the
    verdicts from being proven here.
    """

    facts: Facts
    size: str
    domain: Domain
    verdicts: tuple[Verdict, ...]
    wanted: int
    is_complete: bool
    has_evidence: bool
    cost: Cost | None
    source: str
    recheck: tuple[str, ...]
    caveat: str = ""
    domain_source: DomainSource | None = None

    def having(self, status: Status) -> tuple[Verdict, ...]:
        """The verdicts of that status."""
        return tuple(verdict for verdict in self.verdicts if verdict.status is status)


# ---------------------------------------------------------------------- a result in memory


def subject_of_result(result: Result, folder: str = "proofs") -> Subject:
    """What `verify` returned. `folder` is where its proofs are, or will be."""
    return Subject(
        facts=result.facts,
        size=_size(result.facts),
        domain=result.domain,
        verdicts=result.verdicts,
        wanted=result.verified,
        is_complete=result.is_complete,
        has_evidence=True,
        cost=result.cost,
        source="",
        recheck=_recheck("", result.facts.name, folder),
        domain_source=result.domain_source,
    )


# ---------------------------------------------------------------------- a stored run


def subject_of_run(store: Store, run: RunSummary) -> Subject:
    """The run as it is now. Witnesses stay in the database: they can be many, and no report shows them."""
    verdicts = [
        verdict
        for status in Status
        for verdict in store.verdicts(
            run.run_id, status=status, with_evidence=status is Status.UNARGMAXABLE
        )
    ]  # fmt: skip
    has_evidence = run.state is not State.IMPORTED
    return Subject(
        facts=run.facts,
        size=_size(run.facts),
        domain=run.domain,
        verdicts=tuple(sorted(verdicts, key=lambda verdict: verdict.class_id)),
        wanted=run.counts.wanted,
        is_complete=run.state in (State.FINISHED, State.IMPORTED),
        has_evidence=has_evidence,
        cost=run.cost if has_evidence else None,
        source=headline(run),
        recheck=_recheck(f"argmaxable export {run.run_id} --format bundle -o proofs", run.facts.name)
        if has_evidence
        else (),
        caveat="" if has_evidence else "These verdicts were published elsewhere and not checked here.",
        domain_source=run.domain_source,
    )


def _size(facts: Facts) -> str:
    size = f"{facts.classes:,} classes"
    if facts.features:  # not known of every published model
        size += f" × {facts.features:,} features, {'with bias' if facts.bias else 'no bias'}"
    return f"{size}, {facts.dtype}" if facts.dtype else size


def _recheck(first: str, model: str, folder: str = "proofs") -> tuple[str, ...]:
    check = shlex.join(["argmaxable", "check", visible(folder), visible(model)])
    return (first, check) if first else (check,)


# ---------------------------------------------------------------------- a proof bundle


def subject_of_bundle(folder: str | os.PathLike[str]) -> Subject:
    """The claims of a bundle as verdicts; none of them has been checked. Raises BundleError."""
    folder = Path(folder)
    bundle = read_bundle(folder)
    facts = _facts(bundle.manifest, folder)
    beyond = [claim.class_id for claim in bundle.claims if claim.class_id >= facts.classes]
    if beyond:
        raise BundleError(f"{folder}: it speaks of class {beyond[0]}, its head has {facts.classes} classes.")
    name = visible(folder.name or "proofs")
    return Subject(
        facts=facts,
        size=f"{facts.classes:,} classes × {facts.features:,} features",
        domain=bundle.domain,
        verdicts=tuple(sorted(bundle.claims, key=lambda verdict: verdict.class_id)),
        wanted=len(bundle.claims),
        is_complete=bundle.manifest.get("complete") is True,
        has_evidence=True,
        cost=None,
        source=f"Proof bundle {name}.",
        caveat="These are the claims of a proof bundle, which were not checked again for this report.",
        recheck=_recheck("", facts.name, folder.name or "proofs"),
    )


def _facts(manifest: dict[str, Any], folder: Path) -> Facts:
    head = manifest["head"]
    sha256, classes, features = (head.get(key) for key in ("sha256", "classes", "features"))
    if not (isinstance(sha256, str) and _is_count(classes) and _is_count(features)):
        raise BundleError(f"{folder}: its manifest says neither fingerprint nor size of the head.")
    name = manifest.get("model")
    return Facts(name if isinstance(name, str) else "head", sha256, classes, features, bias=False, dtype="")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def require_same_head(subject: Subject, head: Head, model: str) -> None:
    """Raise InputError unless this is the head that the verdicts are about."""
    known, found = subject.facts, Facts.of(head)
    if (known.sha256, known.classes) != (found.sha256, found.classes):
        raise InputError(
            f"--model {model} holds another head: its SHA-256 is {found.sha256}, that of the verdicts is "
            f"{known.sha256 or 'not known'}. Pass the file that was verified, with the same --tensor if any."
        )
