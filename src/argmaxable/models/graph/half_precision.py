"""Which tensors of a graph are computed in half precision, and which bounds survive that.

An operation rounds its result to the type of its inputs. In float16 or bfloat16 that is coarse: the SiLU of
some input is below −0.27847, its minimum, and a norm that adds squares in float16 can be off by any factor.
A bound survives where it is a number of both types and the operation rounds once, because rounding never
carries a result past such a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.models.graph.nodes import Graph, Node

Mask = NDArray[np.bool_]

_WIDE = frozenset({1, 11})  # ONNX's numbers of float32 and float64
# Operations whose inputs but the first are whole numbers (shapes, axes, indices), or absent.
_ONE_FLOAT = frozenset(
    {"Reshape", "Expand", "Tile", "Slice", "Squeeze", "Unsqueeze", "Split", "Dropout", "Gather"}
    | {"GatherElements", "GatherND", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "TopK"}
)
# Operations that change the type: what goes in says nothing about what comes out.
_RETYPING = frozenset(
    {"Cast", "Shape", "Size", "ArgMax", "ArgMin", "NonZero", "QuantizeLinear", "DynamicQuantizeLinear"}
    | {"MatMulInteger", "ConvInteger", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}
)
# Their result is rounded several times on the way, so that only its sign is certain.
_ROUNDED_OFTEN = frozenset(
    {"ReduceMean", "AveragePool", "GlobalAveragePool", "Mean", "Sum", "HardSwish", "QuickGelu", "Swish"}
)


def half_tensors(graph: Graph) -> frozenset[str]:
    """The names of tensors in half precision: so stored, declared or cast, and whatever has the same type."""
    groups = [_of_one_type(node) for node in graph.nodes]
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        for name in group:
            members.setdefault(name, []).append(number)
    found = {name for types in (graph.types, graph.declared) for name in types if _is_half(types[name])}
    found.update(name for node in graph.nodes if _casts_to_half(node) for name in node.outputs)
    waiting = list(found)
    while waiting:
        for number in members.pop(waiting.pop(), ()):
            new = set(groups[number]) - found
            found |= new
            waiting += new
    return frozenset(found)


def _of_one_type(node: Node) -> tuple[str, ...]:
    """The inputs and outputs of an operation that are of the same type, where they are floats."""
    if node.op in _RETYPING:
        return ()
    if node.op in _ONE_FLOAT:
        inputs = node.inputs[:1]
    elif node.op in ("Where", "DequantizeLinear"):  # a condition; whole numbers
        inputs = node.inputs[1:2] if node.op == "DequantizeLinear" else node.inputs[1:]
    else:
        inputs = node.inputs
    return tuple(name for name in (*inputs, *node.outputs) if name)


def surviving(node: Node | None, lo: Vector, hi: Vector) -> tuple[Vector, Vector]:
    """The bounds of an operation's exact results that its results in half precision respect as well."""
    is_certain = _is_sign if node is not None and node.op in _ROUNDED_OFTEN else _is_half_number
    return np.where(is_certain(lo), lo, -np.inf), np.where(is_certain(hi), hi, np.inf)


def _is_half(type_: str) -> bool:
    return type_.startswith(("float16", "bfloat16", "float8"))


def _casts_to_half(node: Node) -> bool:
    return node.op == "Cast" and node.number("to", 1) not in _WIDE


def _is_sign(bound: Vector) -> Mask:
    return np.logical_or(np.isinf(bound), np.equal(bound, 0))


def _is_half_number(bound: Vector) -> Mask:
    with np.errstate(over="ignore"):
        rounded = [bound.astype(each).astype(np.float64) for each in (np.float16, ml_dtypes.bfloat16)]
    return np.logical_and(*(np.equal(each, bound) for each in rounded))
