"""A copy of a PyTorch file with other values in some of its tensors.

Such a file is a zip archive with one record for each storage. A tensor's record is found by its bytes; where
several have the same, each is tried until the copy reads as it should (see write_head).
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.models.write.archive import data_start, member_patches
from argmaxable.models.write.edit import Edit, Patch, copy_with, find_bytes

_MOST_PLACES = 16


def write(source: Path, edits: Sequence[Edit], draft: Path, _: Path) -> Iterator[list[Path]]:
    """Writes the copy, once for each way in which the tensors can be found in the file."""
    if not zipfile.is_zipfile(source):
        raise InputError(
            "the file has PyTorch's format from before 2020, which can't be changed in place. Load it and "
            "save it again with torch.save."
        )
    for places in itertools.product(*(_places(source, edit) for edit in edits)):
        patches: list[Patch] = []
        by_member: dict[str, list[Patch]] = {}
        for (member, start), edit in zip(places, edits, strict=True):
            by_member.setdefault(member, []).append(Patch(start, edit.bytes_after()))
        for member, inside in by_member.items():
            patches += member_patches(source, member, inside)
        copy_with(source, draft, patches)
        yield []


def _places(source: Path, edit: Edit) -> list[tuple[str, int]]:
    """Records that hold the tensor's bytes, and where in them."""
    wanted = edit.bytes_before()
    found = []
    with zipfile.ZipFile(source) as archive, source.open("rb") as file:
        for info in archive.infolist():
            if "/data/" in info.filename and info.file_size >= len(wanted):
                start = data_start(file, info)
                places = find_bytes(source, start, info.file_size, wanted)
                found += [(info.filename, place - start) for place in places]
    if not found or len(found) > _MOST_PLACES:
        raise InputError(
            f"tensor {edit.tensor} is {'not stored row by row' if not found else 'stored many times over'}, "
            "so it can't be changed in place. Save its contiguous() copy, or as .safetensors."
        )
    return found
