"""A copy of an .npz archive, or an .npy file, with other values in some of its arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.models.npz.reader import array_start
from argmaxable.models.write.archive import member_patches, rewrite
from argmaxable.models.write.edit import Edit, Patch, copy_with


def write(source: Path, edits: Sequence[Edit], draft: Path, _: Path) -> Iterator[list[Path]]:
    if not zipfile.is_zipfile(source):
        with source.open("rb") as file:
            start, order = array_start(file)
        copy_with(source, draft, [Patch(start, edits[0].bytes_after(order))])
        yield []
        return
    patches: list[Patch] = []
    contents: dict[str, bytes] = {}
    with zipfile.ZipFile(source) as archive:
        for edit in edits:
            info = archive.getinfo(f"{edit.tensor.name}.npy")
            with archive.open(info) as member:
                start, order = array_start(member)
            data = edit.bytes_after(order)
            contents[info.filename] = archive.read(info)[:start] + data
            if info.compress_type == zipfile.ZIP_STORED:
                patches += member_patches(source, info.filename, [Patch(start, data)])
    if len(patches) == 3 * len(edits):  # each with the two places of its checksum
        copy_with(source, draft, patches)
    else:
        rewrite(source, draft, contents)
    yield []
