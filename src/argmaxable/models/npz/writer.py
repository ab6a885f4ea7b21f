"""A copy of an .npz archive, or an .npy file, with other values in some of its arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

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


def grow(
    source: Path, edits: Sequence[Edit], draft: Path, labels: Sequence[str] | None
) -> Iterator[list[Path]]:
    """A copy in which arrays have more rows; all other members are the same, byte for byte."""
    if not zipfile.is_zipfile(source):
        with source.open("rb") as file:
            order = array_start(file)[1]
        draft.write_bytes(_npy(edits[0].after, order))
        yield []
        return
    contents: dict[str, bytes] = {}
    with zipfile.ZipFile(source) as archive:
        for edit in edits:
            name = f"{edit.tensor.name}.npy"
            with archive.open(name) as member:
                order = array_start(member)[1]
            contents[name] = _npy(edit.after, order)
        if labels is not None:
            with archive.open("labels.npy") as member:
                kind = np.lib.format.read_array(member, allow_pickle=False).dtype.kind
            texts = np.array([label.encode() for label in labels] if kind == "S" else list(labels))
            contents["labels.npy"] = _npy(texts, "C")
    rewrite(source, draft, contents)
    yield []


def _npy(values: NDArray[Any], order: str) -> bytes:
    """An array as numpy.save writes it, in the given order."""
    stream = io.BytesIO()
    npy.write_array(stream, np.asarray(values, order="F" if order == "F" else "C"), allow_pickle=False)
    return stream.getvalue()
