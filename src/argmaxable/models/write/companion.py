"""Models of two files: a description, which stays as it is, and the weights in a file beside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.models.write.edit import Patch, copy_with, replacing


def write_companion(
    source: Path, suffix: str, patches: Sequence[Patch], draft: Path, target: Path
) -> Iterator[list[Path]]:
    """The patched weights go beside the target at once, and beside the draft until it is checked."""
    before, after, checked = (each.with_suffix(suffix) for each in (source, target, draft))
    if after.exists():
        raise InputError(
            f"{after} exists already, and the changed model needs a file of that name for its weights. "
            "Choose another name."
        )
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
