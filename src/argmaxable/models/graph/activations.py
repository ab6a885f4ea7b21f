"""The operations of a graph that are activation functions, and the ranges of what they put out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.models.activations import RANGES, Range
from argmaxable.models.graph.gates import gated_minimum
from argmaxable.models.graph.rounding import outwards

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

_RANGE_OF = {
    "Relu": RANGES["relu"],
    "Sigmoid": RANGES["sigmoid"],
    "HardSigmoid": RANGES["hard_sigmoid"],
    "HardSwish": RANGES["hard_swish"],
    "Tanh": RANGES["tanh"],
    "Softsign": RANGES["softsign"],
    "Softplus": RANGES["softplus"],
    "Softmax": RANGES["softmax"],
    "Exp": RANGES["exponential"],
    "Gelu": RANGES["gelu"],
    "FastGelu": RANGES["gelu"],
    "BiasGelu": RANGES["gelu"],
    "Mish": RANGES["mish"],
    "Abs": (0.0, math.inf),
    "Sqrt": (0.0, math.inf),
    "Erf": (-1.0, 1.0),
    "LogSoftmax": (-math.inf, 0.0),
}
# x · sigmoid(αx), with the usual α.
_SWISHES = {"QuickGelu": 1.702, "Swish": 1.0}
# The activations of gates and states that recurrent layers have unless told otherwise.
_RECURRENT = {"LSTM": "Sigmoid,Tanh,Tanh", "GRU": "Sigmoid,Tanh", "RNN": "Tanh"}


def activation_range(graph: Graph, node: Node, output: str) -> tuple[str, float, float] | None:
    """An activation function's name and the range of its output; None for other nodes."""
    if node.op in _RANGE_OF:
        return node.op, *_RANGE_OF[node.op]
    if node.op.removeprefix("DynamicQuantize") in _RECURRENT:
        return (node.op, -1.0, 1.0) if _is_bounded_state(node, output) else None
    if node.op == "Mul":
        gated = gated_minimum(graph, node)
        return None if gated is None else (*gated, math.inf)
    found = _parametric(node)
    return None if found is None else (node.op, *found)


def _parametric(node: Node) -> Range | None:
    """The range of an activation function that depends on its attributes."""
    alpha = node.number("alpha", _SWISHES.get(node.op, 1.0))
    if node.op in _SWISHES and alpha > 0:
        return RANGES["silu"][0] / alpha, math.inf
    if node.op in ("Elu", "Celu") and alpha > 0:  # α(exp(x) − 1), of x/α for Celu, where x < 0
        return float(outwards(np.array(-alpha), np.array(0.0))[0]), math.inf
    if node.op == "ThresholdedRelu" and alpha >= 0:  # x where x > α, else 0
        return 0.0, math.inf
    if node.op == "Selu" and not node.attributes:
        return RANGES["selu"]
    return None


def _is_bounded_state(node: Node, output: str) -> bool:
    """Whether an output is a hidden state between −1 and 1.

    It is a sigmoid times a tanh (LSTM), a tanh (RNN), or between a tanh and the state before (GRU, which
    therefore must start from 0). The third output, an LSTM's cell state, is not bounded.
    """
    kind = node.op.removeprefix("DynamicQuantize")
    usual = _RECURRENT[kind]
    activations = node.attributes.get("activations", usual)
    starts_elsewhere = kind == "GRU" and node.input(5) != ""
    return output in node.outputs[:2] and not starts_elsewhere and activations in (usual, f"{usual},{usual}")
