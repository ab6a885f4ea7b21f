"""Writing a changed head back into its model: in the same format, all else bit for bit the same.

The copy is read again before it takes its place: it must hold the head that was meant.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Generator, Iterator
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

__all__ = ["notes_on_growth", "place_of_new_classes", "require_editable", "require_writable", "write_head"]

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
# Writers of heads with more classes get the labels of all of them, too; None where those are not in the file.
_GROWERS = {
    "safetensors": "argmaxable.models.safetensors.writer:grow",
    "npz": "argmaxable.models.npz.writer:grow",
    "npy": "argmaxable.models.npz.writer:grow",
    "onnx": "argmaxable.models.onnx.grow:grow",
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


def require_editable(finding: Finding, head: Head, *, is_growing: bool) -> None:
    """Raise InputError unless the file holds the head's own numbers, and has room for more classes if wanted.

    Asked before any work is done.
    """
    for info, values in ((finding.weight, head.weight), (finding.bias, head.bias)):
        if info is not None and values is not None:
            stored_edit(info, values[slice(None)], values[slice(None)])
    if is_growing and finding.format not in _GROWERS:
        raise InputError(
            f"classes can't be added to {finding.format} files yet; expected one of {', '.join(_GROWERS)}. "
            "Convert the model first."
        )


def place_of_new_classes(finding: Finding) -> int:
    """The number that the first class added to a model gets: after the last, or before a space that comes
    last in PaddleOCR's models, for their decoders append that themselves."""
    labels = finding.labels
    ends_in_space = labels is not None and labels.is_inside and labels.names[-1] == " "
    return finding.classes - 1 if ends_in_space and finding.format == "onnx" else finding.classes


def notes_on_growth(finding: Finding) -> list[str]:
    """What the user has to change elsewhere when classes were added to the file."""
    notes = []
    if finding.format == "safetensors":
        notes.append("config.json's vocab_size and the tokenizer are outside of this file: change them too")
    if finding.labels is not None and not finding.labels.is_inside:
        notes.append(f"labels come from {finding.labels.source}: add the new ones there")
    return notes


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
    """Write a copy of the model with the head `after` in place of `before`; it may have more classes.

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
            with closing(_drafts(source, finding, edits, before, after, named, target)) as drafts:
                for written in drafts:
                    companions = written
                    again = find_head(named, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose)
                    if again.weight.name == finding.weight.name and _is_same(again, named, finding, after):
                        os.replace(named, draft)
                        return
            raise InputError(
                f"the copy of {source.name} does not read as the changed head, so it was deleted. Is a "
                "tensor of the head used in an unknown way? Save the head as .npz and change that."
            )
        except BaseException:
            for companion in companions:
                companion.unlink(missing_ok=True)
            raise
        finally:
            named.unlink(missing_ok=True)


def _drafts(
    source: Path, finding: Finding, edits: list[Edit], before: Head, after: Head, draft: Path, target: Path
) -> Generator[list[Path]]:
    """The writer of the format, at work."""
    if after.classes == before.classes:
        drafts = pkgutil.resolve_name(_WRITERS[finding.format])(source, edits, draft, target)
    else:
        require_editable(finding, before, is_growing=True)
        labels = after.labels if finding.labels is not None and finding.labels.is_inside else None
        drafts = pkgutil.resolve_name(_GROWERS[finding.format])(source, edits, draft, labels)
    yield from drafts


def _edits(finding: Finding, before: Head, after: Head) -> Iterator[Edit]:
    is_grown = after.classes != before.classes
    if is_grown or (before.weight != after.weight).any():
        yield stored_edit(finding.weight, before.weight, after.weight)
    biases = before.bias, after.bias
    if biases[0] is not None and biases[1] is not None and (is_grown or (biases[0] != biases[1]).any()):
        if finding.bias is None:
            raise InputError("the model stores no bias to change.")
        yield stored_edit(finding.bias, biases[0], biases[1])


def _is_same(again: Finding, path: Path, finding: Finding, meant: Head) -> bool:
    """Whether a copy holds the head that was meant, and its labels where those are in the file."""
    found = read_head(again, path)
    if finding.labels is not None and finding.labels.is_inside and found.labels != meant.labels:
        return False
    return (
        (found.bias is None) == (meant.bias is None)
        and found.weight.dtype == meant.weight.dtype
        and np.array_equal(found.weight, meant.weight)
        and np.array_equal(found.biases(), meant.biases())
    )
