"""Writing a changed head back into its model: in the same format, all else bit for bit the same.

The copy is read again before it takes its place: it must hold the head that was meant.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.models import find_head, read_head
from argmaxable.models.write.edit import Edit, replacing, stored_edit

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.models.finding import Finding

__all__ = ["require_writable", "write_head"]

# A writer gets the model's file, the edits, the draft to write and the target that the draft will become. It
# writes the draft, several times where a format leaves open which bytes are meant, and each time yields the
# files it has put beside the target.
_WRITERS = {
    "safetensors": "argmaxable.models.safetensors.writer:write",
    "npz": "argmaxable.models.npz.writer:write",
    "npy": "argmaxable.models.npz.writer:write",
    "onnx": "argmaxable.models.onnx.writer:write",
    "openvino": "argmaxable.models.openvino.writer:write",
    "paddle": "argmaxable.models.paddle.writer:write",
    "pytorch": "argmaxable.models.pytorch.writer:write",
}
# Formats of named tensors, in which a name alone finds the head again.
_BY_NAME = ("safetensors", "pytorch")


def require_writable(model: str, finding: Finding, target: Path, *, overwrite: bool) -> Path:
    """The model's file, if a changed copy of it can be written to the target; raises InputError.

    Asked before any work is done.
    """
    source = Path(model)
    if not source.is_file():
        kind = "a directory" if source.is_dir() else "no file here"
        raise InputError(
            f"{model} is {kind}: a repair is written as a copy of one file. Pass the file that holds "
            f"{finding.weight.name}."
        )
    if finding.format not in _WRITERS:
        raise InputError(
            f"{finding.format} files can't be written back; expected one of {', '.join(_WRITERS)}. Convert "
            "the model first."
        )
    if target.exists() and os.path.samefile(source, target):
        raise InputError(f"{target} is the model itself, which is never overwritten. Choose another name.")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a folder. Create it first.")
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already. Pass --overwrite to replace it, or choose another name.")
    folder_is_open = os.access(target.parent, os.W_OK)
    if target.is_dir() or not folder_is_open or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError(f"{target} can't be written: it, or its folder, is read-only, or it is a folder.")
    if target.suffix.lower() != source.suffix.lower():
        raise InputError(
            f"{target.name} should end in {source.suffix}, as {source.name} does: the format stays the same."
        )
    return source


def write_head(
    model: str,
    finding: Finding,
    before: Head,
    after: Head,
    target: Path,
    *,
    tensor: str | None = None,
    bias_tensor: str | None = None,
    transpose: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a copy of the model with the head `after` in place of `before`.

    The options are those by which the head was found. Raises InputError, and then leaves nothing behind.
    """
    source = require_writable(model, finding, target, overwrite=overwrite)
    edits = list(_edits(finding, before, after))
    if finding.format in _BY_NAME:  # a configuration beside the model, which told the names, need not be here
        tensor, bias_tensor = finding.weight.name, None if finding.bias is None else finding.bias.name
    with replacing(target, overwrite=overwrite) as draft:
        named = draft.with_name(f"{draft.name}{source.suffix}")  # a suffix tells some formats
        companions: list[Path] = []
        try:
            write = pkgutil.resolve_name(_WRITERS[finding.format])
            with closing(write(source, edits, named, target)) as drafts:
                for written in drafts:
                    companions = written
                    again = find_head(named, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose)
                    if again.weight == finding.weight and _is_same(read_head(again, named), after):
                        os.replace(named, draft)
                        return
            raise InputError(
                f"the copy of {source.name} does not read as the repaired head, so it was deleted. Is a "
                "tensor of the head used in a way not known here? Save the head as .npz and repair that."
            )
        except BaseException:
            for companion in companions:
                companion.unlink(missing_ok=True)
            raise
        finally:
            named.unlink(missing_ok=True)


def _edits(finding: Finding, before: Head, after: Head) -> Iterator[Edit]:
    if (before.weight != after.weight).any():
        yield stored_edit(finding.weight, before.weight, after.weight)
    if before.bias is not None and after.bias is not None and (before.bias != after.bias).any():
        if finding.bias is None:
            raise InputError("the model stores no bias to change.")
        yield stored_edit(finding.bias, before.bias, after.bias)


def _is_same(left: Head, right: Head) -> bool:
    return (
        (left.bias is None) == (right.bias is None)
        and left.weight.dtype == right.weight.dtype
        and np.array_equal(left.weight, right.weight)
        and np.array_equal(left.biases(), right.biases())
    )
