"""Activation functions written out as a product: x · g(x), where the gate g rises from 0 to a constant.

SiLU, hard swish, GELU and Mish are such products. They are unbounded above and have a minimum, which
scales: f · x · g(c · x) is f/c times u · g(u) at u = c · x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.models.activations import RANGES

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

_SAME = frozenset({"Identity", "Cast"})
# u · (1 + erf(u)) at u = −0.7517/√2, rounded outwards; GELU is 1/√2 of it.
_ERF_MINIMUM = -0.24038
# As many constant factors as a gate has in any writing of it.
_MOST_FACTORS = 6


@dataclass(frozen=True)
class _Gate:
    """g(u) with u = factor · tensor, the minimum of u · g(u), and the name of that function."""

    name: str
    minimum: float
    tensor: str
    factor: float


def gated_minimum(graph: Graph, node: Node) -> tuple[str, float] | None:
    """For a product x · g(x): the function's name and its minimum; None if it is not such a product."""
    for place in (0, 1):
        x, factor = _multiple(graph, node.input(place))
        gate_tensor, gate_factor = _multiple(graph, node.input(1 - place))
        gate = _gate(graph, gate_tensor)
        if gate is not None and gate.tensor == x:
            return gate.name, gate.minimum * factor * gate_factor / gate.factor
    return None


def _multiple(graph: Graph, name: str) -> tuple[str, float]:
    """A tensor and the positive factor by which this name is a multiple of it."""
    factor = 1.0
    for _ in range(_MOST_FACTORS):
        name = graph.origin(name, _SAME)
        node = graph.producers.get(name)
        if node is None or node.op not in ("Mul", "Div"):
            break
        numbers = [graph.scalars.get(graph.origin(each, _SAME), 0.0) for each in node.inputs]
        places = [place for place, number in enumerate(numbers) if number > 0]
        if len(places) != 1 or (node.op == "Div" and places != [1]):
            break
        factor *= numbers[places[0]] if node.op == "Mul" else 1 / numbers[1]
        name = node.input(1 - places[0])
    return name, factor


def _gate(graph: Graph, name: str) -> _Gate | None:
    node = graph.producers.get(name)
    if node is None:
        return None
    if node.op == "Sigmoid":
        return _Gate("SiLU, x · sigmoid(x)", RANGES["silu"][0], *_multiple(graph, node.input(0)))
    if node.op == "HardSigmoid":
        return _hard_gate(graph, node)
    if node.op == "Clip":
        return _clipped_gate(graph, node)
    inner = graph.producers.get(graph.origin(node.input(0), _SAME))
    if node.op == "Tanh" and inner is not None and inner.op == "Softplus":
        return _Gate("Mish", RANGES["mish"][0], *_multiple(graph, inner.input(0)))
    if node.op == "Add" and (added := _added(graph, node)) is not None and added[1] == 1.0:
        erf = graph.producers.get(graph.origin(added[0], _SAME))
        if erf is not None and erf.op == "Erf":
            return _Gate("GELU", _ERF_MINIMUM, *_multiple(graph, erf.input(0)))
    return None


def _hard_gate(graph: Graph, node: Node) -> _Gate | None:
    """u · clip(αu + β, 0, 1): for 0 ≤ β ≤ 1 its minimum is that of the parabola, −β²/4α at u = −β/2α."""
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    if not (alpha > 0 and 0 <= beta <= 1):
        return None
    return _Gate(
        "hard swish, x · hard_sigmoid(x)", -(beta**2) / (4 * alpha), *_multiple(graph, node.input(0))
    )


def _clipped_gate(graph: Graph, node: Node) -> _Gate | None:
    """u · clip(u + a, 0, b): for 0 ≤ a ≤ b its minimum is that of the parabola, −a²/4 at u = −a/2."""
    low = graph.scalars.get(node.input(1), node.number("min", -1.0))
    high = graph.scalars.get(node.input(2), node.number("max", -1.0))
    sum_ = graph.producers.get(graph.origin(node.input(0), _SAME))
    added = _added(graph, sum_) if sum_ is not None and sum_.op == "Add" else None
    if added is None or low != 0 or not 0 <= added[1] <= high:
        return None
    return _Gate("hard swish, x · relu6(x + 3) / 6", -(added[1] ** 2) / 4, *_multiple(graph, added[0]))


def _added(graph: Graph, node: Node) -> tuple[str, float] | None:
    """The variable and the constant summand, one number."""
    numbers = [graph.scalars.get(graph.origin(each, _SAME)) for each in node.inputs]
    if len(numbers) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None
    return (node.input(0), numbers[1]) if numbers[1] is not None else (node.input(1), numbers[0] or 0.0)
