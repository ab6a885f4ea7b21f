"""A copy of a PaddlePaddle model with other values in some of its parameters; the program stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.models.paddle.parameters import locate_parameters
from argmaxable.models.paddle.reader import read_program
from argmaxable.models.write.companion import write_companion
from argmaxable.models.write.edit import Edit, Patch


def write(source: Path, edits: Sequence[Edit], draft: Path, target: Path) -> Iterator[list[Path]]:
    """Write the draft once, its parameters beside the target."""
    places = locate_parameters(source.with_suffix(".pdiparams"), read_program(source))
    patches = [Patch(places[edit.tensor.name].start, edit.bytes_after()) for edit in edits]
    yield from write_companion(source, ".pdiparams", patches, draft, target)
