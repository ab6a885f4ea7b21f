"""A copy of a .safetensors file with other values in some of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from argmaxable.models.safetensors.tensors import place_of
from argmaxable.models.write.edit import Edit, Patch, copy_with


def write(source: Path, edits: Sequence[Edit], target: Path) -> None:
    copy_with(
        source, target, [Patch(place_of(source, edit.tensor.name), edit.bytes_after()) for edit in edits]
    )
