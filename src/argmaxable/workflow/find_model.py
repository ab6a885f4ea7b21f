"""A model found by its name, with the domain to ask about: what a command does before it asks anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.boxes import Box
from argmaxable.core.domain_source import GIVEN, Basis, DomainSource
from argmaxable.core.domains import AUTO, parse_domain_or_auto
from argmaxable.core.queries import Queries
from argmaxable.models.model_ref import ModelRef, model_name
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.questions.arithmetic.formats import Rounding, rounded

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.models.finding import Finding

DEFAULT_DOMAIN_TEXT = AUTO


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A model's output layer, not read yet, and the domain of the question."""

    ref: ModelRef
    finding: Finding
    domain: Domain
    domain_source: DomainSource
    round_to: Rounding | None = None

    def head(self) -> Head:
        """The head, rounded to the format if one was asked for; raises LoadError and HeadError."""
        head = self.ref.read(self.finding)
        return head if self.round_to is None else rounded(head, self.round_to)

    @property
    def origin(self) -> str:
        """Where the model came from, in words that tell nothing about this machine."""
        ref = self.ref
        told = {"folder": ref.subfolder, "revision": ref.revision, "tensor": ref.tensor}
        if self.round_to is not None:
            told["rounded to"] = self.round_to.value
        chosen = [f"{what} {name}" for what, name in told.items() if name is not None]
        return ", ".join([model_name(ref.model), *chosen])


def find_model(
    ref: ModelRef, domain: str | Domain | Queries = DEFAULT_DOMAIN_TEXT, *, round_to: Rounding | None = None
) -> FoundModel:
    """The model, over a domain as on the command line, or that of saved queries; raises InputError for what
    makes no sense."""
    given = parse_domain_or_auto(domain) if isinstance(domain, str) else domain
    finding = ref.find()
    if isinstance(given, Queries):
        given = given.domain(finding.features)
    chosen, source = _known(finding) if given is None else (given, GIVEN)
    return FoundModel(ref, finding, chosen, source, round_to)


def within_bounds(found: FoundModel) -> FoundModel:
    """The model over the part within ±100 of a domain that has no end, for questions about how large numbers
    get; a domain that the user chose stays as it is."""
    domain, source = found.domain, found.domain_source
    if domain.is_bounded or source.basis is Basis.GIVEN:
        return found
    lo, hi = (domain.lo, domain.hi) if isinstance(domain, Box) else (-np.inf, np.inf)
    reach = float(DEFAULT_DOMAIN.hi)
    part = Box(
        np.where(np.isinf(lo), np.minimum(hi, 0.0) - reach, lo),
        np.where(np.isinf(hi), np.maximum(lo, 0.0) + reach, hi),
    )
    why = f"only a bounded part of what the file proves ({domain}: {source.why}) gives logits a scale"
    return replace(found, domain=part, domain_source=DomainSource(Basis.ASSUMED, why))


def _known(finding: Finding) -> tuple[Domain, DomainSource]:
    """What the model's file proves about the head's inputs, else what is usually assumed."""
    inputs = finding.inputs
    if inputs is not None and inputs.domain is not None:
        return inputs.domain, DomainSource(Basis.PROVEN, inputs.description)
    said = "" if inputs is None else f" ({inputs.description})"
    return DEFAULT_DOMAIN, DomainSource(
        Basis.ASSUMED, f"the file does not say what reaches the output layer{said}"
    )
