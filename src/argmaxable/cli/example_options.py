"""The options that say where examples come from, and which of them are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.compute.readings import require_width
from argmaxable.core.errors import InputError
from argmaxable.models.npz.examples import read_examples
from argmaxable.workflow.example_set import ExampleSet, split

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.workflow.find_model import FoundModel

_DEFAULT_SHARE = "0.2"


@dataclass(frozen=True)
class ExampleOptions(OptionGroup):
    """Where examples come from."""

    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Examples as an .npz file: features (a row each), labels ('' for ordinary inputs), source; "
            "for sequences ends and spans (docs/teach.md).",
        ),
    ] = None
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE|SHARE",
            help="Inputs to measure with and never to learn from: those of a source (may be given several "
            f"times), or a share of all (default: {_DEFAULT_SHARE}).",
        ),
    ] = None

    def gather(self, found: FoundModel, head: Head, wanted: Sequence[str], *, seed: int) -> ExampleSet:
        """The examples, some held out. `wanted` are the labels that are needed: a source that makes examples
        makes those, a file has what it has. Raises InputError."""
        if self.features is None:
            raise InputError("where are the examples? Pass --features FILE.npz.")
        examples = read_examples(self.features)
        require_width(examples.features, head)
        return split(examples, self.hold_out or [_DEFAULT_SHARE], seed=seed)
