"""prune(result): the head without the rows that can never be the argmax, with the proof.

A dominated class has a certificate with a bound below 0: at every x of the domain some class scores
strictly higher. The classes of the certificate may be dominated themselves; that does no harm. At any x take
a class with the largest score of all: nothing scores higher, so it is not dominated, so it stays. All
dominated classes can therefore go at once: the maximum and who attains it are the same at every x of X.

Of classes with equal weights and biases the first stays, unless it is dominated; an argmax returns the first
of equal scores. Classes that are at best tied for other reasons stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status, Verdict
from argmaxable.models.write.edit import little_endian, replacing

FORMATS = (".npz", ".safetensors")
_MAP_FORMAT = "argmaxable id map 1"
_SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@dataclass(frozen=True, eq=False)
class Pruned:
    """The smaller head, the old number of each of its classes, and the result that lets the others go."""

    before: Head
    head: Head
    remaining: Ids = field(repr=False)
    proof: Result

    @property
    def new_ids(self) -> NDArray[np.int64]:
        """The new number of each old class, −1 for those that are gone."""
        numbers = np.full(self.before.classes, -1, np.int64)
        numbers[self.remaining] = np.arange(len(self.remaining))
        return numbers


def prune(result: Result) -> Pruned:
    """Drop the classes that the result proves are never the argmax; raises InputError when there are none."""
    dropped = [verdict for verdict in result.verdicts if may_go(verdict)]
    if not dropped:
        raise InputError(
            f"no class is dominated over {result.domain}: there is nothing to prune"
            f"{f' ({len(result.undecided)} are undecided)' if result.undecided else ''}."
        )
    head = result.head
    gone = np.zeros(head.classes, bool)
    gone[[verdict.class_id for verdict in dropped]] = True
    remaining = np.flatnonzero(~gone)
    smaller = Head(
        head.weight[remaining],
        None if head.bias is None else head.bias[remaining],
        None if head.labels is None else [head.labels[class_id] for class_id in remaining.tolist()],
        name=f"{head.name}, pruned",
    )
    return Pruned(head, smaller, remaining, result)


def may_go(verdict: Verdict) -> bool:
    """Whether no argmax ever needs the class: dominated, or equal to an earlier class."""
    if verdict.status is not Status.UNARGMAXABLE:
        return False
    return verdict.upper < 0 or (verdict.is_tied and verdict.class_id != verdict.tie_group[0])


def write_pruned(pruned: Pruned, target: Path, names: tuple[str, str], *, overwrite: bool) -> None:
    """Write the head as .npz (W, b, labels, remaining), or .safetensors with these names of its tensors.

    Raises InputError for other formats and where the file can't be written.
    """
    require_prunable(target)
    with replacing(target, overwrite=overwrite) as draft, draft.open("wb") as file:
        if target.suffix.lower() == ".npz":
            np.savez(file, allow_pickle=False, **_arrays(pruned))
        else:
            file.write(_safetensors(pruned.head, names))


def write_id_map(pruned: Pruned, target: Path, *, overwrite: bool) -> None:
    """Write which class became which: JSON with the old number of each new class, and the reverse."""
    content = {
        "format": _MAP_FORMAT,
        "classes_before": pruned.before.classes,
        "classes_after": pruned.head.classes,
        "old_of_new": pruned.remaining.tolist(),
        "new_of_old": pruned.new_ids.tolist(),
    }
    with replacing(target, overwrite=overwrite) as draft:
        draft.write_text(json.dumps(content) + "\n", encoding="utf-8")


def require_prunable(target: Path) -> None:
    """Raise InputError for a format in which a head can't stand alone."""
    if target.suffix.lower() not in FORMATS:
        raise InputError(
            f"{target.name}: a pruned head is written as {' or '.join(FORMATS)}. A whole model has "
            "the number of classes in its graph and configuration: insert the head with the tool "
            "that made the model."
        )


def _arrays(pruned: Pruned) -> dict[str, NDArray[Any]]:
    head = pruned.head
    arrays: dict[str, NDArray[Any]] = {
        "W": head.weight,
        "remaining": pruned.remaining,
        "new_ids": pruned.new_ids,
    }
    if head.bias is not None:
        arrays["b"] = head.bias
    if head.labels is not None:
        arrays["labels"] = np.array(head.labels, dtype=str)
    return arrays


def _safetensors(head: Head, names: tuple[str, str]) -> bytes:
    """The head as a file: the length of a header, the header, the values."""
    tensors = {names[0]: head.weight} | ({} if head.bias is None else {names[1]: head.bias})
    header: dict[str, Mapping[str, Any]] = {}
    values, place = [], 0
    for name, array in tensors.items():
        data = little_endian(array)
        header[name] = {
            "dtype": _SAFETENSORS[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [place, place + len(data)],
        }
        values.append(data)
        place += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the values begin at a multiple of 8, as their readers like it
    return len(text).to_bytes(8, "little") + text + b"".join(values)
