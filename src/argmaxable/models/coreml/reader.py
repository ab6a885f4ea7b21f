"""Heads in Core ML's programs, as coremltools writes them.

A package (.mlpackage) is a folder with the model, a program in protobuf, and its weights. The program is
translated into the small `Graph` that `models/graph/` walks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.binary_file import mapped
from argmaxable.models.coreml.program import parse_model
from argmaxable.models.coreml.program_graph import translate
from argmaxable.models.finding import Labels
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

INSIDE = "Data/com.apple.CoreML"
_LARGEST_MODEL = 2**31


def find_package(folder: Path, options: ReadOptions) -> Finding:
    """The head of a package, given its folder. Raises LoadError."""
    models = sorted((folder / INSIDE).glob("*.mlmodel"))
    if len(models) != 1:
        raise LoadError(f"has {len(models)} models in {INSIDE}, expected one. Fetch the package again.")
    return find(models[0], options)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a program, given its .mlmodel. Raises LoadError."""
    if path.stat().st_size >= _LARGEST_MODEL:
        raise LoadError(f"has {path.stat().st_size:,} bytes; a Core ML model ends below 2 GiB.")
    with mapped(path, "a Core ML model") as data:
        try:
            program = parse_model(data)
            graph, values, labels = translate(program, path.parent / "weights" / "weight.bin")
        except AmbiguousError:
            raise
        except LoadError as error:
            raise LoadError(
                f"is not a readable Core ML program: {error}. If it is damaged, fetch it again. Otherwise "
                "use the model that it was converted from."
            ) from error
    return find_in_graph("coreml", graph, options, values, lambda classes: _labels(labels, path, classes))


def _labels(found: list[tuple[str, ...]], path: Path, classes: int) -> tuple[Labels | None, list[str]]:
    """The labels that the program answers with, or those of files beside the package."""
    if len(found) == 1 and len(found[0]) == classes:
        return Labels(found[0], "the program's classes", is_inside=True), []
    folder = path.parent.parent.parent.parent if path.parent.name == "com.apple.CoreML" else path.parent
    return search_beside(folder, classes)
