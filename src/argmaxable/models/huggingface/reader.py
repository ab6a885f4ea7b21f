"""Heads in Hugging Face directories (config.json beside the weights, in one file or several) and in
single .safetensors files.

Of config.json only what concerns the head is looked at; no class is looked up and no code run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import parse_json
from argmaxable.models.checkpoint.families import HeadTask
from argmaxable.models.checkpoint.head import choice_in, finding_of
from argmaxable.models.checkpoint.locate import Architecture, HeadTensors
from argmaxable.models.finding import Finding, Labels
from argmaxable.models.huggingface import adapter
from argmaxable.models.huggingface.adapter import is_adapter
from argmaxable.models.huggingface.quantised.packed import with_weights_named
from argmaxable.models.huggingface.quantised.undo import undone
from argmaxable.models.labels.vocabulary import class_labels, search_beside
from argmaxable.models.safetensors import tensors as safetensors
from argmaxable.models.source import TensorSource, join

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

CONFIG = "config.json"
# Where there are no others.
FLAX_WEIGHTS = "flax_model.msgpack"
# The weights in one file, or the index of several, in the order in which transformers looks for them.
WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
# Above any configuration or index in use: a model with 100,000 tensors has an index of 10 MB.
_LARGEST_JSON = 32 * 2**20
_FILES_SHOWN = 8
# The name of one of several files: model-00001-of-00002.safetensors.
_PART = re.compile(r"-\d{5}-of-\d{5}\.")


def find(folder: Path, options: ReadOptions) -> Finding:
    """The head of a model in a Hugging Face directory. Raises LoadError."""
    path = _adapter_in(folder)
    if path is not None:
        return _find_in_adapter(path, options)
    return find_in(open_weights(folder), folder, options, format_name="huggingface")


def find_file(path: Path, options: ReadOptions) -> Finding:
    """The head in a .safetensors file; a config.json beside it is heeded. Raises LoadError."""
    if is_adapter(path):
        return _find_in_adapter(path, options)
    source = safetensors.tensors_of(path)
    return find_in(source, path.parent, options, format_name="safetensors", is_part=is_part(path))


def _adapter_in(folder: Path) -> Path | None:
    """The weights of the adapter in a folder that has no whole model."""
    whole = any((folder / name).is_file() for pair in WEIGHTS for name in pair)
    found = (folder / name for name in adapter.WEIGHTS if is_adapter(folder / name))
    return None if whole else next((path for path in found if path.is_file()), None)


def _find_in_adapter(path: Path, options: ReadOptions) -> Finding:
    modules = adapter.require_saved_modules(_read_json(path.parent / adapter.CONFIG))
    source = adapter.saved_modules(_open(path), modules)
    finding = find_in(source, path.parent, options, format_name="huggingface")
    return replace(finding, notes=(*finding.notes, adapter.NOTE))


def is_part(path: Path) -> bool:
    """Whether a file is named as one of several that make up a model."""
    return _PART.search(path.name) is not None


def find_in(
    source: TensorSource,
    folder: Path,
    options: ReadOptions,
    *,
    format_name: str,
    is_part: bool = False,
    guess: Callable[[TensorSource], HeadTensors | None] = lambda _: None,
) -> Finding:
    """The head among tensors, as the configuration and labels in the folder describe it. Raises LoadError.

    Of a part of a model only a head that is stored in it is taken: that it is not there does not mean that it
    is tied. `guess` is asked where neither the configuration nor the names tell what kind of model it is.
    """
    config = read_config(folder)
    source = with_weights_named(source)
    architecture = Architecture.from_config(config)
    try:
        choice = choice_in(
            source, replace(architecture, tied=False) if is_part else architecture, options, guess
        )
    except LoadError as error:
        hint = " The file is one of several that make up a model: pass their directory." if is_part else ""
        raise LoadError(f"{error}{hint}") from error
    source, choice = undone(source, choice, config)
    finding = finding_of(source, choice, options, format_name=format_name)
    labels, notes = _labels(choice, config, folder, finding.classes)
    return replace(finding, labels=labels, notes=(*finding.notes, *notes))


def read_config(folder: Path) -> dict[str, Any]:
    """What config.json says, nothing when there is none; raises LoadError when it can't be read."""
    return _read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}


def _read_json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _LARGEST_JSON:
        raise LoadError(f"{path.name} has {path.stat().st_size} bytes, too many for a configuration.")
    value = parse_json(path.read_bytes(), path.name)
    if not isinstance(value, dict):
        raise LoadError(f"{path.name} holds a JSON {type(value).__name__}, expected an object.")
    return value


def files_by_tensor(index: Path) -> dict[str, str]:
    """Which file each tensor of a sharded model is in; raises LoadError."""
    files = _read_json(index).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        raise LoadError(f"{index.name} has no weight_map from tensors to files. Fetch it again.")
    for file in set(files.values()):
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or "\\" in file or "\0" in file:
            raise LoadError(f"{index.name} names the file {file!r}, which is outside of the model's folder.")
    return files


def open_weights(folder: Path) -> TensorSource:
    """The tensors of the model in a folder; raises LoadError when there is none, or several."""
    names = [name for pair in WEIGHTS for name in pair]
    usual = next((folder / name for name in names if (folder / name).is_file()), None)
    if usual is not None:
        return _open(usual)
    files = [path for path in folder.glob("*.safetensors") if path.is_file()]
    if len(files) == 1:
        return _open(files[0])
    if not files and (folder / FLAX_WEIGHTS).is_file():
        # Late, because only these files need it, and it asks this module for the rest.
        from argmaxable.models.flax.reader import tensors_of

        return tensors_of(folder / FLAX_WEIGHTS)
    present = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(present[:_FILES_SHOWN]) + (" …" if len(present) > _FILES_SHOWN else "")
    raise LoadError(
        f"has no weights under the usual names ({', '.join(names)}); it holds {shown or 'nothing'}. Pass "
        "the file that holds the output layer."
    )


def _open(path: Path) -> TensorSource:
    open_file = safetensors.tensors_of if ".safetensors" in path.suffixes else _open_pytorch
    if path.suffix == ".json":
        return join(path.name, path.parent, files_by_tensor(path), open_file)
    return open_file(path)


def _open_pytorch(path: Path) -> TensorSource:
    # Late, because only these files need it.
    from argmaxable.models.pytorch.tensors import tensors_of

    return tensors_of(path)


def _labels(
    choice: HeadTensors, config: Mapping[str, Any], folder: Path, classes: int
) -> tuple[Labels | None, list[str]]:
    """The labels, and what is odd about them. A classifier's are in its configuration."""
    if choice.task in (None, HeadTask.LANGUAGE):
        return search_beside(folder, classes)
    notes = []
    if config.get("problem_type") == "multi_label_classification":
        notes.append("config.json says that several labels can hold at once: then no argmax is taken.")
    if "id2label" not in config:
        return None, notes
    try:
        names = class_labels(config["id2label"], classes)
    except LoadError as error:
        return None, [*notes, f"config.json: id2label {error}"]
    return Labels(names, f"{CONFIG}, id2label"), notes
