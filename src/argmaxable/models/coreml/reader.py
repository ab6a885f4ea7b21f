"""Heads in Core ML's programs and neural networks, as coremltools writes them.

A package (.mlpackage) is a folder with the model, a program in protobuf, and its weights. A neural network,
the older kind, is one file (.mlmodel). Both become the small `Graph` that `models/graph/` walks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.binary_file import mapped
from argmaxable.models.coreml.kraken import is_kraken, labels_of, require_plain
from argmaxable.models.coreml.network import network_in, parse_network
from argmaxable.models.coreml.network_graph import translate as translate_network
from argmaxable.models.coreml.program import parse_model
from argmaxable.models.coreml.program_graph import translate
from argmaxable.models.finding import Labels
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.graph.domain import Reader
    from argmaxable.models.graph.nodes import Graph
    from argmaxable.models.protobuf import Data, Field
    from argmaxable.models.registry import ReadOptions

    _Found = tuple[Graph, Reader, Callable[[int], tuple[Labels | None, list[str]]]]

INSIDE = "Data/com.apple.CoreML"
_LARGEST_MODEL = 2**31


def find_package(folder: Path, options: ReadOptions) -> Finding:
    """The head of a package, given its folder. Raises LoadError."""
    models = sorted((folder / INSIDE).glob("*.mlmodel"))
    if len(models) != 1:
        raise LoadError(f"has {len(models)} models in {INSIDE}, expected one. Fetch the package again.")
    return find(models[0], options)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a program or a neural network, given its .mlmodel. Raises LoadError."""
    if path.stat().st_size >= _LARGEST_MODEL:
        raise LoadError(f"has {path.stat().st_size:,} bytes; a Core ML model ends below 2 GiB.")
    with mapped(path, "a Core ML model") as data:
        try:
            network = network_in(data)
            graph, values, labels_of = (
                _in_program(data, path) if network is None else _in_network(data, path, *network)
            )
        except AmbiguousError:
            raise
        except LoadError as error:
            raise LoadError(
                f"is not a readable Core ML model: {error}. If it is damaged, fetch it again. Otherwise "
                "use the model that it was converted from."
            ) from error
    return find_in_graph("coreml", graph, options, values, labels_of)


def _in_program(data: Data, path: Path) -> _Found:
    graph, values, labels = translate(parse_model(data), path.parent / "weights" / "weight.bin")
    return graph, values, lambda classes: _labels(labels, path, classes)


def _in_network(data: Data, path: Path, description: Field | None, network: Field) -> _Found:
    parsed = parse_network(data, description, network)
    graph, values = translate_network(parsed, path)
    if is_kraken(parsed.metadata):
        require_plain(parsed.metadata)
        return graph, values, lambda classes: labels_of(parsed.metadata, classes)
    labels = [parsed.labels] if parsed.labels else []
    return graph, values, lambda classes: _labels(labels, path, classes)


def _labels(found: list[tuple[str, ...]], path: Path, classes: int) -> tuple[Labels | None, list[str]]:
    """The labels that the model answers with, or those of files beside the package."""
    if len(found) == 1 and len(found[0]) == classes:
        return Labels(found[0], "the model's classes", is_inside=True), []
    folder = path.parent.parent.parent.parent if path.parent.name == "com.apple.CoreML" else path.parent
    return search_beside(folder, classes)
