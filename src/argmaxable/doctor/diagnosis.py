"""What the doctor finds: which classes, why they stand out, what was proven about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What can be wrong, or just odd, about rows of a head."""

    BIAS_LENGTH = "bias length"
    LABEL_COUNT = "label count"
    NOT_FINITE = "not finite"
    CANNOT_END = "special tokens"
    AT_MEAN = "at the mean"
    NEAR_MEAN = "near the mean"
    ZERO = "zero"
    DUPLICATE = "duplicate"
    NORM = "norm"
    BIAS = "bias"
    PADDING = "padding"


class Standing(StrEnum):
    """What was proven about a class that was looked at closer."""

    ARGMAXABLE = "argmaxable"
    ON_PAPER_ONLY = "argmaxable on paper only"
    TIED = "tied with an identical row"
    UNARGMAXABLE = "unargmaxable"
    UNDECIDED = "undecided"

    @property
    def in_words(self) -> str:
        """As people are told."""
        return self.value.replace("unargmaxable", "can never be predicted").replace(
            "argmaxable", "can be predicted"
        )

    @property
    def never_wins(self) -> bool:
        """Whether no input is known that surely makes a machine predict the class."""
        return self in (Standing.ON_PAPER_ONLY, Standing.TIED, Standing.UNARGMAXABLE)


@dataclass(frozen=True)
class Diagnosis:
    """One finding. `classes` are all it is about, with their labels; `standings` what was proven about
    the first of them. A `concern` should be mended; anything else is worth knowing."""

    kind: FindingKind
    is_concern: bool
    found: str
    meaning: str
    advice: str
    classes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    standings: tuple[tuple[int, Standing], ...] = ()


@dataclass(frozen=True)
class Checkup:
    """All findings about a model, concerns first; what was looked at closer, over which domain and in which
    arithmetic (empty where nothing was)."""

    model: str
    classes: int
    features: int
    has_bias: bool
    diagnoses: tuple[Diagnosis, ...]
    domain: str = ""
    number: str = ""
    verified: int = 0

    @property
    def concerns(self) -> tuple[Diagnosis, ...]:
        return tuple(diagnosis for diagnosis in self.diagnoses if diagnosis.is_concern)
