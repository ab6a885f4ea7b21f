"""What a file says about its output layer: which tensors, how stored, labels, and where its inputs
come from. Reading the weights themselves is put off until somebody wants the head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from argmaxable.core.domain import Domain
from argmaxable.core.errors import HeadError
from argmaxable.core.head import Head
from argmaxable.core.stored_rows import StoredRows

Arrays = tuple[NDArray[Any] | StoredRows, NDArray[Any] | None]

# Said of every head whose file ends in a sigmoid.
SIGMOID_NOTE = "a sigmoid answers each class by itself; the argmax is the one answered most surely"


@dataclass(frozen=True)
class TensorInfo:
    """A stored array: its name in the file, shape as stored, and dtype or quantisation."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} ({' × '.join(map(str, self.shape)) or 'scalar'}, {self.dtype})"


@dataclass(frozen=True)
class Labels:
    """Names of the classes and the file or key they come from.

    A tokenizer's vocabulary may be shorter than the head, whose rows are padded to a round number;
    labels stored for the classes themselves may not. `special` are the classes that the files themselves
    declare to be marks of the model rather than text. `is_inside` where they are stored in the model's own
    file.
    """

    names: tuple[str, ...]
    source: str
    may_be_padded: bool = False
    special: frozenset[int] = frozenset()
    is_inside: bool = False


@dataclass(frozen=True)
class HeadInputs:
    """What feeds the head, in words, and the tightest domain the file itself proves for it."""

    description: str
    domain: Domain | None = None


@dataclass(frozen=True)
class Tap:
    """Where a computation graph can be tapped for the head's inputs: a tensor, and the axis of its features,
    counted from the end."""

    tensor: str
    axis: int = -1


@dataclass(frozen=True, eq=False)
class Finding:
    """The output layer of a model file, found but not read.

    `read` returns the weight (classes × features) and the bias or None. `why` says in words how
    the tensors were chosen, `alternatives` which others could have been. `taps` are the tensors that the head
    is given, one for each place where a graph uses it; formats without a graph have none.
    """

    format: str
    weight: TensorInfo
    bias: TensorInfo | None
    classes: int
    features: int
    why: str
    read: Callable[[], Arrays]
    labels: Labels | None = None
    inputs: HeadInputs | None = None
    alternatives: tuple[TensorInfo, ...] = ()
    # What the file applies to the logits: "sigmoid", which answers each label by itself, or "softmax"; ""
    # where it does not say.
    activation: str = ""
    notes: tuple[str, ...] = field(default=())
    taps: tuple[Tap, ...] = ()

    @property
    def padding(self) -> int:
        """Rows beyond the last label: vocabularies are padded to round numbers."""
        return 0 if self.labels is None else self.classes - len(self.labels.names)

    @property
    def special(self) -> frozenset[int]:
        """The classes that the model's files declare to be marks of the model rather than text."""
        return frozenset() if self.labels is None else self.labels.special

    def head(self, name: str) -> Head:
        """Read the head; raises HeadError when the arrays are none."""
        weight, bias = self.read()
        return Head(weight, bias, self._class_names(), name=name)

    def _class_names(self) -> list[str] | None:
        if self.labels is None:
            return None
        if self.padding < 0 or (self.padding and not self.labels.may_be_padded):
            raise HeadError(
                f"{len(self.labels.names)} labels for {self.classes} classes (from {self.labels.source}). "
                "Do they belong to this model?"
            )
        return [*self.labels.names, *(f"<padding {k}>" for k in range(self.padding))]
