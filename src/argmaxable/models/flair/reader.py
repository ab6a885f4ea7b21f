"""Heads of flair's models: the linear layer over tags or labels, named by the dictionary in the file.

flair saves a dictionary with `torch.save`: a state_dict, settings, and an object that holds the labels.
Nothing of flair's is imported or built; its objects become records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.boxes import Box
from argmaxable.core.errors import LoadError
from argmaxable.models.aten.stored import ArchivedTensor, StoredValues
from argmaxable.models.checkpoint.families import Obstacle
from argmaxable.models.checkpoint.head import finding_of
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.finding import SIGMOID_NOTE, Finding, HeadInputs, Labels, TensorInfo
from argmaxable.models.pytorch.archive import LARGEST_PICKLE, Member, archive_members, read_member
from argmaxable.models.source import TensorSource
from argmaxable.models.torchscript.unpickle import PickledObject, Unpickler

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_MARK = b"flair.data"
_ZIP = b"PK\x03\x04"
# Classes whose objects may lie beside the weights.
_FOREIGN = re.compile(r"(flair|torch\.nn\.modules)\.(\w+\.)*[A-Z]\w*")
_DICTIONARY = "flair.data.Dictionary"
# Where a sequence tagger and a classifier of texts keep the head and its labels.
_PLACES = (("linear", "tag_dictionary"), ("decoder", "label_dictionary"))
_SPECIAL = frozenset({"<START>", "<STOP>", "<unk>"})
_CRF_NOTE = (
    "a CRF chooses the tags of a sentence together, so a tag that never has the highest score of a token can "
    "still be chosen"
)


def is_flair(path: Path) -> bool:
    """Whether a file of PyTorch's holds a model of flair's, in the format since 2020. Raises LoadError."""
    with path.open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            return False
    member = archive_members(path).get("data.pkl")
    return member is not None and member.size <= LARGEST_PICKLE and _MARK in _pickle(path, member)


def find(path: Path, options: ReadOptions) -> Finding:
    """The output layer of a model of flair's; raises LoadError."""
    members = archive_members(path)
    unpickler = Unpickler(members, _FOREIGN)
    model = unpickler.load(_pickle(path, members["data.pkl"]), "data")
    weights = model.get("state_dict") if isinstance(model, dict) else None
    if not isinstance(weights, dict):
        raise LoadError("is a flair file without a state_dict. Save the model again with model.save.")
    if unpickler.absent:
        raise LoadError(f"the member {unpickler.absent[0][:80]!r} is missing")
    tensors = {name: each for name, each in weights.items() if isinstance(each, ArchivedTensor)}
    layer, labels = _place(model, tensors)
    weight = options.tensor or f"{layer}.weight"
    choice = HeadTensors(
        weight,
        f"{weight.removesuffix('weight')}bias",
        Obstacle("flair's embeddings, for which no bound is proven"),
        "the layer that flair computes scores with" if options.tensor is None else "as asked for",
    )
    infos = {name: TensorInfo(name, each.shape, each.dtype) for name, each in tensors.items()}
    source = TensorSource(path.name, infos, StoredValues(path, members, tensors, {}).array)
    finding = finding_of(source, choice, options, format_name="flair")
    return finding if weight != f"{layer}.weight" else _described(finding, model, labels)


def _pickle(path: Path, member: Member) -> bytes:
    return read_member(path, member, LARGEST_PICKLE)


def _place(model: Mapping[Any, Any], tensors: Mapping[str, Any]) -> tuple[str, Labels]:
    """The layer that is the head, and its labels."""
    for layer, key in _PLACES:
        found = model.get(key)
        if f"{layer}.weight" in tensors and isinstance(found, PickledObject) and found.kind == _DICTIONARY:
            return layer, _labels(found, key)
    raise LoadError(
        f"is a flair model of the kind {str(model.get('__cls__'))[:40]!r}, which can't be read: it has no "
        "linear layer with a dictionary of labels. Save its output layer with "
        "numpy.savez('head.npz', W=weight, b=bias)."
    )


def _labels(dictionary: PickledObject, key: str) -> Labels:
    items = dictionary.attributes.get("idx2item")
    if not isinstance(items, list) or not all(isinstance(item, bytes) for item in items):
        raise LoadError(f"its {key} does not list its labels as bytes. Fetch the file again.")
    try:
        names = tuple(item.decode() for item in items)
    except UnicodeDecodeError as error:
        raise LoadError(f"a label of its {key} is not UTF-8. Fetch the file again.") from error
    special = frozenset(number for number, name in enumerate(names) if name in _SPECIAL)
    return Labels(names, f"{key} in the file", special=special, is_inside=True)


def _described(finding: Finding, model: Mapping[Any, Any], labels: Labels) -> Finding:
    """The finding with its labels, and with what the settings say about the inputs and the decision."""
    is_lstm = model.get("use_rnn") is True and model.get("rnn_type") == "LSTM"
    inputs = HeadInputs("an LSTM, whose values lie in [−1, 1]", Box(-1.0, 1.0)) if is_lstm else finding.inputs
    is_multi = model.get("multi_label") is True
    notes = [_CRF_NOTE] * (model.get("use_crf") is True) + [SIGMOID_NOTE] * is_multi
    return replace(
        finding,
        labels=labels,
        inputs=inputs,
        activation="sigmoid" if is_multi else "",
        notes=(*finding.notes, *notes),
    )
