"""A copy of a .safetensors file with other values in some of its tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from argmaxable.models.safetensors.tensors import header_of, place_of
from argmaxable.models.write.edit import Edit, Patch, copy_with

# The safetensors package pads a header to this, so that tensors begin at a round address.
_ALIGNMENT = 8


def write(source: Path, edits: Sequence[Edit], draft: Path, _: Path) -> Iterator[list[Path]]:
    patches = [Patch(place_of(source, edit.tensor.name), edit.bytes_after()) for edit in edits]
    copy_with(source, draft, patches)
    yield []


def grow(source: Path, edits: Sequence[Edit], draft: Path, _: Sequence[str] | None) -> Iterator[list[Path]]:
    """A copy in which tensors have more rows: the header says so, and the tensors behind them move."""
    start, header = header_of(source)
    grown = {edit.tensor.name: edit for edit in edits}
    tensors = [name for name in header if name != "__metadata__"]
    in_order = sorted(tensors, key=lambda name: header[name]["data_offsets"])
    old = {name: header[name]["data_offsets"] for name in tensors}
    place = 0
    for name in in_order:
        size = old[name][1] - old[name][0]
        if name in grown:
            size = grown[name].after.nbytes
            header[name]["shape"] = list(grown[name].after.shape)
        header[name]["data_offsets"] = [place, place + size]
        place += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with source.open("rb") as file, draft.open("wb") as copy:
        copy.write(len(text).to_bytes(8, "little") + text)
        for name in in_order:
            file.seek(start + old[name][0])
            data = file.read(old[name][1] - old[name][0])
            copy.write(grown[name].bytes_after() if name in grown else data)
    yield []
