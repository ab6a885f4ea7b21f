"""A copy of a PaddlePaddle model with other values in some of its parameters; the program stays as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.models.paddle.parameters import locate_parameters
from argmaxable.models.paddle.program import parse_program
from argmaxable.models.write.edit import Edit, Patch, copy_with, replacing


def write(source: Path, edits: Sequence[Edit], draft: Path, target: Path) -> Iterator[list[Path]]:
    """The parameters go beside the target at once, and beside the draft until it is checked."""
    before, after, checked = (each.with_suffix(".pdiparams") for each in (source, target, draft))
    if after.exists():
        raise InputError(
            f"{after} exists already, and the repaired model needs a file of that name for its weights. "
            "Choose another name."
        )
    places = locate_parameters(before, parse_program(source.read_bytes()))
    patches = [Patch(places[edit.tensor.name].start, edit.bytes_after()) for edit in edits]
    try:
        copy_with(before, checked, patches)
        shutil.copyfile(source, draft)
        with replacing(after, overwrite=False) as unfinished:
            _link(checked, unfinished)
        yield [after]
    finally:
        checked.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copyfile(source, target)
