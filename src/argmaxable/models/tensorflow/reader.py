"""Heads in TensorFlow's files: SavedModels, graphs with their variables frozen to constants, checkpoints.

Graphs are translated into the small `Graph` that `models/graph/` walks, functions included. A checkpoint
alone has names and no graph, so its head is told by its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.binary_file import mapped
from argmaxable.models.finding import Finding, Labels
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.tensorflow.bundle import open_bundle
from argmaxable.models.tensorflow.checkpoint import find_by_name
from argmaxable.models.tensorflow.flatten import flatten, tensor_name
from argmaxable.models.tensorflow.graph_def import GraphDef, parse_graph
from argmaxable.models.tensorflow.program_graph import translate
from argmaxable.models.tensorflow.saved_model import bundle_of, parse_saved_model, stored_variables

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

SAVED_MODEL = "saved_model.pb"
# protobuf's own limit for one message.
_LARGEST_MESSAGE = 2**31
# What puts nothing out that could be an answer.
_NO_ANSWERS = frozenset({"Const", "NoOp", "Placeholder", "Assert", "SaveV2", "RestoreV2"})
_MOST_OUTPUTS = 64
_AGAIN = (
    "If it is damaged, or a Git LFS pointer, fetch it again. Otherwise export the model to ONNX with "
    "tf2onnx, or save it from Keras as .keras."
)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a frozen graph (.pb), or of a SavedModel, given its saved_model.pb. Raises LoadError."""
    if path.name == SAVED_MODEL:
        return find_folder(path.parent, options)
    return _find_frozen(path, options)


def find_folder(folder: Path, options: ReadOptions) -> Finding:
    """The head of a SavedModel, given its folder. Raises LoadError."""
    return _find_saved(folder / SAVED_MODEL, options)


def find_checkpoint(path: Path, options: ReadOptions) -> Finding:
    """The head of a checkpoint, given its .index. Raises LoadError."""
    return find_by_name(open_bundle(path), path, options)


def _require_size(path: Path) -> None:
    size = path.stat().st_size
    if size >= _LARGEST_MESSAGE:
        raise LoadError(f"has {size:,} bytes; TensorFlow's graphs end below 2 GiB. {_AGAIN}")


def _find_frozen(path: Path, options: ReadOptions) -> Finding:
    _require_size(path)
    with mapped(path, "a TensorFlow graph") as data:
        try:
            graph = parse_graph(data, 0, len(data))
            outputs = _ends(graph)
            flat = flatten(graph, outputs.values())
            translated, values = translate(
                flat, {name: tensor_name(each) for name, each in outputs.items()}, path, {}, None
            )
        except AmbiguousError:
            raise
        except LoadError as error:
            raise LoadError(f"is not a readable TensorFlow graph: {error}. {_AGAIN}") from error
    return find_in_graph(
        "tensorflow", translated, options, values, lambda classes: _labels(path.parent, classes)
    )


def _find_saved(path: Path, options: ReadOptions) -> Finding:
    _require_size(path)
    index = bundle_of(path.parent)
    bundle = open_bundle(index) if index.is_file() else None
    with mapped(path, "a SavedModel") as data:
        try:
            meta = parse_saved_model(data)
            flat = flatten(meta.graph, meta.outputs.values())
            variables = {} if bundle is None else stored_variables(meta, bundle, data)
            outputs = {name: tensor_name(each) for name, each in meta.outputs.items()}
            translated, values = translate(flat, outputs, path, variables, bundle)
        except AmbiguousError:
            raise
        except LoadError as error:
            raise LoadError(f"is not a readable SavedModel: {error}. {_AGAIN}") from error
    return find_in_graph(
        "tensorflow", translated, options, values, lambda classes: _labels(path.parent, classes)
    )


def _ends(graph: GraphDef) -> dict[str, str]:
    """The nodes that nothing uses, by name: the answers of a frozen graph."""
    used = {each.removeprefix("^").partition(":")[0] for node in graph.nodes for each in node.inputs}
    ends = [node.name for node in graph.nodes if node.name not in used and node.kind not in _NO_ANSWERS]
    if not ends or len(ends) > _MOST_OUTPUTS:
        raise LoadError(
            f"it has {len(ends)} nodes that nothing else uses, so it is not clear what it answers"
        )
    return {name: name for name in ends}


def _labels(folder: Path, classes: int) -> tuple[Labels | None, list[str]]:
    """Labels from files beside the graph, or among the assets of a SavedModel."""
    labels, doubts = search_beside(folder, classes)
    if labels is None and (folder / "assets").is_dir():
        assets, more = search_beside(folder / "assets", classes)
        return assets, [*doubts, *more] if assets is None else []
    return labels, doubts
