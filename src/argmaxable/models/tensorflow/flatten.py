"""A graph without functions: what a call does is put in its place, under the call's name and a bar.

A call's results and a function's arguments are other names of tensors; `FlatGraph.resolve` follows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argmaxable.core.errors import LoadError
from argmaxable.models.graph.nodes import LONGEST_WALK
from argmaxable.models.tensorflow.graph_def import FunctionName, GraphDef, GraphFunction, TensorflowNode

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# Operations with one list of outputs, whose place in the list is the output's number.
LISTS = frozenset({"Split", "SplitV", "Unpack", "IdentityN", "RestoreV2"}) | _CALLS
# A hostile graph may call functions that call functions, and double each time.
_MOST_NODES = 2**18
_DEEPEST = 40
_REFERENCE = re.compile(r"([^:|^\0]+)(?::([A-Za-z]\w*))?(?::([0-9]{1,6}))?")


@dataclass(frozen=True)
class FlatNode:
    """One operation; its inputs are names of tensors in the whole graph, those that only come before it are
    left out. Output 0 has the node's own name, another one that and its number (or name and number)."""

    name: str
    operation: TensorflowNode
    inputs: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.operation.kind


@dataclass
class FlatGraph:
    """All nodes that run, and what names of tensors are the same."""

    nodes: dict[str, FlatNode] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        for _ in range(LONGEST_WALK):
            if name not in self.aliases:
                return name
            name = self.aliases[name]
        raise LoadError(f"the tensor {name[:80]!r} is defined by itself")


def flatten(graph: GraphDef, wanted: Iterable[str]) -> FlatGraph:
    """The nodes that have to run for some tensors, or nodes, of the graph; raises LoadError."""
    nodes = {node.name: node for node in graph.nodes}
    scope = _Scope(nodes, {}, "", is_function=False)
    flat = FlatGraph()
    for name in _reached(nodes, wanted):
        _add(flat, nodes[name], scope, graph.functions, 0)
    return flat


def tensor_name(reference: str) -> str:
    """The name here of a tensor that a signature or the user calls "node:0"; raises LoadError."""
    return _Scope({}, {}, "", is_function=False).tensor(reference)


@dataclass(frozen=True)
class _Scope:
    """Where names are looked up: the graph's own nodes, or those of a function, with its arguments."""

    nodes: Mapping[str, TensorflowNode]
    arguments: Mapping[str, str]
    prefix: str
    is_function: bool

    def tensor(self, reference: str) -> str:
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            raise LoadError(f"a tensor is called {reference[:80]!r}, which is not a name of TensorFlow's")
        node, output, number = found[1], found[2] or "", int(found[3] or 0)
        if self.is_function and node in self.arguments and not output:
            return self.arguments[node] if not number else f"{self.prefix}{node}|{number}"
        kind = self.nodes[node].kind if node in self.nodes else ""
        if kind in LISTS or not self.is_function:
            output = ""
        name = f"{self.prefix}{node}"
        if output and _FIRST.get(kind, output) != output:
            return f"{name}:{output}:{number}"
        return f"{name}:{number}" if number else name


# The first outputs of operations that have several.
_FIRST = {
    **{kind: "y" for kind in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "Unique")},
    **{"TopKV2": "values", "Switch": "output_false", "Merge": "output", "Batch": "batched_tensors"},
}


def _reached(nodes: Mapping[str, TensorflowNode], wanted: Iterable[str]) -> list[str]:
    """The nodes that some tensors come from, or wait for, in the order of the graph."""
    pending = [name.removeprefix("^").partition(":")[0] for name in wanted]
    found = set[str]()
    while pending:
        name = pending.pop()
        if name not in nodes:
            raise LoadError(f"the node {name[:80]!r} is used but missing")
        if name not in found:
            found.add(name)
            pending += [each.removeprefix("^").partition(":")[0] for each in nodes[name].inputs]
    return [name for name in nodes if name in found]


def _add(
    flat: FlatGraph, node: TensorflowNode, scope: _Scope, functions: Mapping[str, GraphFunction], depth: int
) -> None:
    name = f"{scope.prefix}{node.name}"
    inputs = tuple(scope.tensor(each) for each in node.inputs if not each.startswith("^"))
    if len(flat.nodes) + len(flat.aliases) > _MOST_NODES or depth > _DEEPEST:
        raise LoadError(
            f"it has more than {_MOST_NODES:,} nodes, or functions that call each other more than "
            f"{_DEEPEST} deep"
        )
    function = _called(node, functions)
    if function is None:
        flat.nodes[name] = FlatNode(name, node, inputs)
        return
    if len(inputs) != len(function.arguments):
        raise LoadError(f"node {name[:80]!r} calls {function.name[:80]!r} with too many or too few inputs")
    prefix = f"{name}|"
    arguments = dict(zip(function.arguments, inputs, strict=True))
    inner = _Scope({each.name: each for each in function.nodes}, arguments, prefix, is_function=True)
    for each in function.nodes:
        _add(flat, each, inner, functions, depth + 1)
    for number, result in enumerate(function.results):
        if result not in function.returns:
            raise LoadError(f"function {function.name[:80]!r} does not say what {result[:80]!r} is")
        own = f"{name}:{number}" if number else name
        flat.aliases[own] = inner.tensor(function.returns[result])


def _called(node: TensorflowNode, functions: Mapping[str, GraphFunction]) -> GraphFunction | None:
    """The function that a node calls; older graphs have its name where an operation's is."""
    if node.kind not in _CALLS:
        return functions.get(node.kind)
    called = node.attributes.get("f")
    name = called.name if isinstance(called, FunctionName) else ""
    if name not in functions:
        raise LoadError(f"node {node.name[:80]!r} calls the function {name[:80]!r}, which is not there")
    return functions[name]
