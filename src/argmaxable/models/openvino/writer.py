"""A copy of an OpenVINO model with other values in some of its constants; the network stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.models.openvino.network_graph import translate
from argmaxable.models.openvino.reader import read_network
from argmaxable.models.write.companion import write_companion
from argmaxable.models.write.edit import Edit, Patch

if TYPE_CHECKING:
    from argmaxable.models.openvino.constants import Constant


def write(source: Path, edits: Sequence[Edit], draft: Path, target: Path) -> Iterator[list[Path]]:
    """Write the draft once, its constants beside the target."""
    constants = translate(read_network(source), source.with_suffix(".bin"))[1].constants
    for edit in edits:
        _require_alone(edit.tensor.name, constants)
    patches = [Patch(constants[edit.tensor.name].start, edit.bytes_after()) for edit in edits]
    yield from write_companion(source, ".bin", patches, draft, target)


def _require_alone(name: str, constants: dict[str, Constant]) -> None:
    """OpenVINO stores equal constants once: changing one of them would change all that share its bytes."""
    mine = constants[name]
    for other, theirs in constants.items():
        overlap = min(mine.start + mine.length, theirs.start + theirs.length) - max(mine.start, theirs.start)
        if other != name and overlap > 0:
            raise InputError(
                f"{name!r} shares its bytes with {other!r}, so it can't be changed alone. Save the head as "
                ".npz and change that."
            )
