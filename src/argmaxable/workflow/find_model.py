"""A model found by its name, with the domain to ask about: what a command does before it asks anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.core.domains import parse_domain
from argmaxable.core.errors import InputError
from argmaxable.models.model_ref import ModelRef, model_name
from argmaxable.questions.arithmetic.formats import Rounding, rounded

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.models.finding import Finding

DEFAULT_DOMAIN_TEXT = "box:100"
# The tightest domain that the model's file itself proves.
PROVEN_DOMAIN = "auto"


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A model's output layer, not read yet, and the domain of the question."""

    ref: ModelRef
    finding: Finding
    domain: Domain
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
    ref: ModelRef, domain: str | Domain = DEFAULT_DOMAIN_TEXT, *, round_to: Rounding | None = None
) -> FoundModel:
    """The model, over a domain as on the command line; raises InputError for what makes no sense."""
    given = parse_domain(domain) if isinstance(domain, str) and domain != PROVEN_DOMAIN else domain
    finding = ref.find()
    return FoundModel(ref, finding, _proven(finding) if isinstance(given, str) else given, round_to)


def _proven(finding: Finding) -> Domain:
    """The domain that the model file itself proves for the head's inputs."""
    if finding.inputs is None or finding.inputs.domain is None:
        said = "" if finding.inputs is None else f" ({finding.inputs.description})"
        raise InputError(f"--domain auto: the file does not say what reaches the head{said}. Pass a domain.")
    return finding.inputs.domain
