"""A SavedModel: its graph, the signature that is served, and where the values of its variables are stored.

Two programs restore variables, each in its own way: TensorFlow Serving and other C++ programs run the restore
operation of the graph, Python's loader matches objects. A variable that both know must have one value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.protobuf import (
    BYTES,
    NUMBER,
    Data,
    Field,
    Parts,
    dictionary,
    inside,
    parts_of,
    single,
    text,
)
from argmaxable.models.tensorflow.bundle import TensorBundle
from argmaxable.models.tensorflow.flatten import FlatGraph, FlatNode, flatten, tensor_name
from argmaxable.models.tensorflow.graph_def import FunctionName, GraphDef, TensorPlace, parse_graph
from argmaxable.models.tensorflow.object_graph import SavedObjects, keys_of, parse_saved, parse_stored
from argmaxable.models.tensorflow.types import TEXT

_SAVED_MODEL = {1: NUMBER, 2: BYTES}
# MetaGraphDef: its tags, the graph, how it is saved and restored, signatures, objects.
_META_GRAPH = {1: BYTES, 2: BYTES, 3: BYTES, 5: BYTES, 7: BYTES}
_META_INFO = {4: BYTES}
_SAVER = {3: BYTES}
_SIGNATURE = {2: BYTES}
_TENSOR_INFO = {1: BYTES}
_STRINGS = 8
_USUAL = ("serving_default", "serve")
_INITIALISER = "__saved_model_init_op"
_MOST_NAMES = 2**16
VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})


@dataclass(frozen=True)
class MetaGraph:
    """A graph, the tensors that the chosen signature answers with, by name, the node that restores variables,
    what runs after it, and the objects that Python restores."""

    graph: GraphDef
    outputs: Mapping[str, str]
    restore: str
    initialisers: tuple[str, ...]
    objects: SavedObjects | None


def parse_saved_model(data: Data) -> MetaGraph:
    """The graph that is served; raises LoadError."""
    graphs = [inside(data, each, _META_GRAPH) for each in parts_of(data, 0, len(data), _SAVED_MODEL)[2]]
    served = [parts for parts in graphs if _tags(data, parts) == ["serve"]]
    if len(served) != 1 and len(graphs) != 1:
        raise LoadError(f"it has {len(graphs)} graphs, of which {len(served)} are tagged 'serve' alone")
    parts = served[0] if served else graphs[0]
    graph = single(parts, 2, "the graph")
    if graph is None:
        raise LoadError("it has no graph")
    saver, objects = single(parts, 3, "the saver"), single(parts, 7, "the graph of objects")
    restore = None if saver is None else single(inside(data, saver, _SAVER), 3, "the restore operation")
    return MetaGraph(
        parse_graph(data, graph.start, graph.end),
        _outputs(data, parts),
        "" if restore is None else text(data, restore),
        tuple(_outputs(data, parts, _INITIALISER).values()),
        None if objects is None else parse_saved(data, objects),
    )


def _tags(data: Data, parts: Parts) -> list[str]:
    info = single(parts, 1, "the description of a graph")
    return [] if info is None else [text(data, each) for each in inside(data, info, _META_INFO)[4]]


def _outputs(data: Data, parts: Parts, wanted: str = "") -> dict[str, str]:
    """The tensors that a signature answers with: the wanted one, the usual one, or the only one there is."""
    signatures = dictionary(data, parts[5], "the signature")
    if wanted and wanted not in signatures:
        return {}
    names = [name for name in signatures if name != _INITIALISER]
    only = names[0] if len(names) == 1 else None
    chosen = wanted or next((name for name in _USUAL if name in names), only)
    if chosen is None:
        found = ", ".join(sorted(names)[:6]) or "none"
        raise LoadError(f"none of its signatures is called {' or '.join(map(repr, _USUAL))} (it has {found})")
    outputs = dictionary(
        data, inside(data, signatures[chosen], _SIGNATURE)[2], f"the signature {chosen[:80]!r}: the output"
    )
    found_names: dict[str, Field | None] = {
        name: single(inside(data, each, _TENSOR_INFO), 1, f"the tensor of {name[:80]!r}")
        for name, each in outputs.items()
    }
    return {name: text(data, each) for name, each in sorted(found_names.items()) if each is not None}


def stored_variables(meta: MetaGraph, bundle: TensorBundle, data: Data) -> dict[str, tuple[str, ...]]:
    """The keys in the checkpoint of variables, by what `resource_of` calls them; raises LoadError.

    Where there are two, their values must be equal.
    """
    found: dict[str, list[str]] = defaultdict(list)
    if meta.restore:
        for resource, key in _restored(meta, data):
            if key in found[resource] or not found[resource]:
                found[resource] = [key]
            else:
                raise ambiguous(f"the variable {resource[:80]!r} is restored twice")
    for resource, key in _matched(meta, bundle):
        if key not in found[resource]:
            found[resource].append(key)
    overwritten = _initialised(meta)
    return {name: tuple(keys) for name, keys in found.items() if name not in overwritten}


def _initialised(meta: MetaGraph) -> set[str]:
    """The variables that are changed once they are restored, before the model answers."""
    flat = flatten(meta.graph, meta.initialisers)
    sources = (flat.nodes.get(flat.resolve(name)) for node in flat.nodes.values() for name in node.inputs)
    return {resource_of(each) for each in sources if each is not None and each.kind in VARIABLES}


def resource_of(node: FlatNode) -> str:
    """What a variable's node stands for: two with the same shared name are one variable."""
    shared = node.operation.attributes.get("shared_name")
    container = node.operation.attributes.get("container")
    if isinstance(shared, bytes) and shared:
        where = container.decode(errors="replace") if isinstance(container, bytes) and container else ""
        return f"{where}\0{shared.decode(errors='replace')}" if where else shared.decode(errors="replace")
    return node.name


def _restored(meta: MetaGraph, data: Data) -> list[tuple[str, str]]:
    """The variables that the restore operation assigns, each with the key that it reads."""
    flat = flatten(meta.graph, [meta.restore])
    pairs = []
    for node in flat.nodes.values():
        if node.kind not in ("AssignVariableOp", "Assign") or len(node.inputs) != 2:
            continue
        variable = flat.nodes.get(flat.resolve(node.inputs[0]))
        value = flat.resolve(node.inputs[1])
        while (copy := flat.nodes.get(value)) is not None and copy.kind == "Identity" and copy.inputs:
            value = flat.resolve(copy.inputs[0])
        source, _, number = value.partition(":")
        restore = flat.nodes.get(source)
        if variable is None or restore is None or restore.kind != "RestoreV2" or len(restore.inputs) != 3:
            continue
        keys, slices = (_texts(flat, flat.resolve(each), data) for each in restore.inputs[1:])
        place = int(number or 0)
        if place < len(keys) and not any(slices):
            pairs.append((resource_of(variable), keys[place]))
    return pairs


def _texts(flat: FlatGraph, name: str, data: Data) -> list[str]:
    """The texts of a constant list; none where it is something else."""
    node = flat.nodes.get(name)
    value = node.operation.attributes.get("value") if node is not None and node.kind == "Const" else None
    if not isinstance(value, TensorPlace) or value.dtype != TEXT or value.shape[1:]:
        return []
    texts = [text(data, each) for each in value.values.get(_STRINGS, ())]
    count = value.shape[0] if value.shape else 1
    if len(texts) == 1 and count <= _MOST_NAMES:  # one for all
        texts *= count
    if len(texts) != count:
        raise LoadError(f"the constant {name[:80]!r} has {len(texts)} of {count} texts")
    return texts


def _matched(meta: MetaGraph, bundle: TensorBundle) -> list[tuple[str, str]]:
    """The variables that the signature's function is bound to, each with the key of its object."""
    stored = bundle.object_graph()
    if meta.objects is None or stored is None:
        return []
    keys = keys_of(meta.objects, parse_stored(stored))
    nodes = {node.name: node for node in meta.graph.nodes}
    pairs = []
    for output in meta.outputs.values():
        call = nodes.get(tensor_name(output).partition(":")[0])
        function = call.attributes.get("f") if call is not None else None
        if call is None or not isinstance(function, FunctionName):
            continue
        bound = meta.objects.bound.get(function.name, ())
        inputs = [each for each in call.inputs if not each.startswith("^")]
        # What a function is bound to comes after what it is given.
        for reference, number in zip(inputs[len(inputs) - len(bound) :], bound, strict=False):
            node = nodes.get(tensor_name(reference))
            if node is not None and node.kind == "VarHandleOp" and number in keys:
                pairs.append((resource_of(FlatNode(node.name, node, ())), keys[number]))
    return pairs


def bundle_of(folder: Path) -> Path:
    """The index of a SavedModel's variables."""
    return folder / "variables" / "variables.index"
