"""Labels of an ONNX model: from its metadata, where some exporters put them, or from files beside it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Labels
from argmaxable.models.labels.vocabulary import class_labels, ctc_labels, search_beside

# Longer than any list of class names that someone puts into a model's metadata as Python text.
_LONGEST_NAMES = 2**20


def labels_of(metadata: Mapping[str, str], path: Path, classes: int) -> tuple[Labels | None, list[str]]:
    """The labels of the model in a file, and where none fit, why files beside it were not used."""
    for key, read in (("character", _characters), ("names", _names)):
        try:
            if metadata.get(key):
                names = read(metadata[key], classes)
                return Labels(names, f"the model's metadata, key {key!r}", is_inside=True), []
        except LoadError:
            continue
    # Hugging Face's exports lie in a folder "onnx" of the model's own.
    folder = path.parent
    folders = [folder, folder.parent] if folder.name == "onnx" else [folder]
    found = [search_beside(each, classes) for each in folders]
    labels = next((labels for labels, _ in found if labels is not None), None)
    return labels, [] if labels is not None else [doubt for _, doubts in found for doubt in doubts]


def _characters(text: str, classes: int) -> tuple[str, ...]:
    """What PaddleOCR's exporters store: the characters a recogniser can answer, one per line."""
    # Only "\n" separates: str.splitlines would also split at characters a model can answer.
    return ctc_labels(text.removesuffix("\n").split("\n"), classes)


def _names(text: str, classes: int) -> tuple[str, ...]:
    """What Ultralytics' exporters store: a Python dictionary, written as text, from number to name."""
    try:
        value = ast.literal_eval(text) if len(text) < _LONGEST_NAMES else None
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise LoadError(f"is not a list of names: {error}") from error
    return class_labels(value, classes)
