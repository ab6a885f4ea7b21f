"""LayerNorm and RMSNorm in a graph, as one operation or written out.

Both are z = u / √(mean(u²) + ε), times a gain and plus a shift, where LayerNorm first takes the mean off
its input: u = x − mean(x). So ‖z‖ ≤ √n over the n normalised numbers, and for LayerNorm they sum to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.models.graph.broadcast import constant_shape
from argmaxable.models.graph.layout import axes_of, counted_from_end
from argmaxable.models.graph.lengths import ONE, Length
from argmaxable.models.graph.products import Stored, stored_matrix
from argmaxable.models.graph.shape_values import lengths_of, target_of

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

_SAME = frozenset({"Identity", "Cast", "Dropout"})
# Also repeats a tensor as an operation with a larger one would. A change of shape might lay a mean along
# another axis than it was taken over.
_SPREAD = _SAME | {"Expand"}
_RESHAPING = _SAME | {"Reshape", "Squeeze", "Unsqueeze"}


@dataclass(frozen=True)
class GraphNorm:
    """Gains, to be multiplied with each other, and a shift, as stored.

    `axes` are those of the means, in the tensor `normalised`. Means that are sums times a constant hold for
    one number of summands only: `counts` are the numbers those constants stand for.
    """

    centred: bool
    gains: tuple[Stored, ...]
    shift: Stored | None
    axes: tuple[int, ...]
    normalised: str
    counts: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        return "LayerNorm" if self.centred else "RMSNorm"


@dataclass(frozen=True)
class _Fused:
    """The places of gain and shift among the inputs of an operation that is a norm; 0 for none."""

    centred: bool
    gain: int
    shift: int = 0


_FUSED = {
    "LayerNormalization": _Fused(True, 1, 2),
    "RMSNormalization": _Fused(False, 1),
    "SimplifiedLayerNormalization": _Fused(False, 1),
    "SkipLayerNormalization": _Fused(True, 2, 3),
    "SkipSimplifiedLayerNormalization": _Fused(False, 2),
    "EmbedLayerNormalization": _Fused(True, 5, 6),
}


def norm_behind(graph: Graph, name: str) -> GraphNorm | None:
    """The norm that gives this tensor, or None."""
    name = graph.origin(name, _SAME)
    node = graph.producers.get(name)
    if node is None:
        return None
    if node.op in _FUSED:
        return _fused(graph, node, _FUSED[node.op], name)
    shift = None
    if (distributed := _distributed(graph, node)) is not None:
        return distributed
    if node.op == "Add":
        places = [place for place in (0, 1) if _row(graph, node.input(place)) is not None]
        if len(places) != 1:
            return None
        shift = _row(graph, node.input(places[0]))
        name = graph.origin(node.input(1 - places[0]), _SAME)
    return _written_out(graph, name, shift)


def _fused(graph: Graph, node: Node, form: _Fused, name: str) -> GraphNorm | None:
    """Only the first output is the norm's; others are means, or the sum that went in."""
    stored = [
        _row(graph, node.input(place)) for place in (form.gain, form.shift) if place and node.input(place)
    ]
    gains = [each for each in stored if each is not None]
    has_epsilon = 0 <= node.number("epsilon", 0) < math.inf
    if len(gains) != len(stored) or not gains or node.outputs[:1] != (name,) or not has_epsilon:
        return None
    axis = (int(node.number("axis", -1)),)
    return GraphNorm(form.centred, (gains[0],), gains[1] if len(gains) > 1 else None, axis, node.input(0))


def _written_out(graph: Graph, name: str, shift: Stored | None) -> GraphNorm | None:
    """A norm from its parts: factors of which one is u, one is 1/√(mean(u²) + ε), and the others gains."""
    factors = list(_factors(graph, name))
    gains = tuple(stored for factor in factors if (stored := _row(graph, factor)) is not None)
    variables = [factor for factor in factors if _row(graph, factor) is None]
    if len(variables) == 1:
        node = graph.producers.get(variables[0])
        if node is not None and node.op == "MeanVarianceNormalization":  # without gain and shift of its own
            return GraphNorm(True, gains, shift, node.integers("axes") or (), node.input(0))
        if node is None or node.op != "Div":
            return None
        pairs = [(graph.origin(node.input(0), _SAME), node.input(1))]
    elif len(variables) == 2:
        pairs = [
            (variables[place], deviation)
            for place in (0, 1)
            if (deviation := _reciprocal(graph, variables[1 - place]))
        ]
    else:
        return None
    for u, deviation in pairs:
        means = _mean_square(graph, deviation, u)
        if means:
            counts = tuple(mean.count for mean in means if mean.count is not None)
            return GraphNorm(len(means) > 1, gains, shift, means[0].axes, u, counts)
    return None


def _distributed(graph: Graph, node: Node) -> GraphNorm | None:
    """x · m + (shift − mean(x) · m), as Keras writes a LayerNorm, where m is a gain over the deviation."""
    if node.op != "Add" or len(node.inputs) != 2:
        return None
    for place in (0, 1):
        product = graph.producers.get(graph.origin(node.input(place), _SAME))
        rest = _scaled_mean(graph, node.input(1 - place))
        if product is None or product.op != "Mul" or rest is None:
            continue
        shift, mean, scale = rest
        for own in (0, 1):
            x, m = (graph.origin(product.input(each), _SAME) for each in (own, 1 - own))
            if m == scale and (found := _by_deviation(graph, x, mean, m)) is not None:
                axes, gains = found
                return GraphNorm(True, gains, shift, axes, x)
    return None


def _scaled_mean(graph: Graph, name: str) -> tuple[Stored, str, str] | None:
    """For shift − mean · m, or −mean · m + shift: the shift, the mean and m."""
    node = graph.producers.get(graph.origin(name, _SAME))
    if node is None or node.op not in ("Add", "Sub"):
        return None
    for place in (0, 1) if node.op == "Add" else (0,):
        shift = _row(graph, node.input(place), reshaped=True)
        product = graph.producers.get(graph.origin(node.input(1 - place), _SAME))
        if shift is None or product is None or product.op != "Mul":
            continue
        for own in (0, 1):
            mean, m = (graph.origin(product.input(each), _SAME) for each in (own, 1 - own))
            negated = graph.producers.get(mean)
            if node.op == "Sub":
                return shift, mean, m
            if negated is not None and negated.op == "Neg":
                return shift, graph.origin(negated.input(0), _SAME), m
    return None


def _by_deviation(
    graph: Graph, x: str, mean: str, m: str
) -> tuple[tuple[int, ...], tuple[Stored, ...]] | None:
    """For m = gain / √(mean((x − mean(x))²) + ε), of these very x and mean: the axes and the gain."""
    factors = list(_factors(graph, m))
    gains = [row for each in factors if (row := _row(graph, each, reshaped=True)) is not None]
    roots = [root for each in factors if (root := _reciprocal(graph, each))]
    if len(gains) + len(roots) != len(factors) or len(roots) != 1 or len(gains) > 1:
        return None
    average = _mean(graph, mean, x)
    for difference in _differences(graph, roots[0], x, mean):
        means = _mean_square(graph, roots[0], difference)
        if (
            average is not None
            and average.count is None
            and [each.axes for each in means] == [average.axes] * 2
        ):
            return average.axes, tuple(gains)
    return None


def _differences(graph: Graph, deviation: str, x: str, mean: str) -> Iterator[str]:
    """The tensors x − mean whose squares a deviation is the mean of."""
    root = graph.producers.get(graph.origin(deviation, _SPREAD))
    total = graph.producers.get(graph.origin(root.input(0), _SPREAD)) if root is not None else None
    for each in () if total is None else total.inputs:
        variance = graph.producers.get(graph.origin(each, _SPREAD))
        name = _squared(graph, variance.input(0)) if variance is not None else None
        node = graph.producers.get(name or "")
        is_difference = node is not None and node.op == "Sub"
        if (
            name
            and node is not None
            and is_difference
            and [graph.origin(one, _SAME) for one in node.inputs] == [x, mean]
        ):
            yield name


def _factors(graph: Graph, name: str, depth: int = 0) -> Iterator[str]:
    """The tensors that a tensor is the product of; three multiplications are the most a norm needs."""
    name = graph.origin(name, _SAME)
    node = graph.producers.get(name)
    if node is None or node.op != "Mul" or depth == 3:
        yield name
    else:
        for each in node.inputs:
            yield from _factors(graph, each, depth + 1)


def _reciprocal(graph: Graph, name: str) -> str:
    """What a tensor is one over, or an empty name."""
    node = graph.producers.get(graph.origin(name, _SPREAD))
    if node is not None and node.op == "Reciprocal":
        return node.input(0)
    if node is not None and node.op == "Div" and graph.scalars.get(node.input(0)) == 1:
        return node.input(1)
    return ""


@dataclass(frozen=True)
class _Mean:
    """A mean: over which axes, and for how many numbers if it is a sum times a constant."""

    axes: tuple[int, ...]
    count: float | None = None


def _mean_square(graph: Graph, deviation: str, u: str) -> list[_Mean]:
    """For √(mean(u²) + ε) with ε ≥ 0: the mean, and that which u is free of, if over the same axes."""
    name, outside = _spread(graph, deviation, u)
    root = graph.producers.get(name)
    if root is None or root.op != "Sqrt":
        return []
    name, inside = _spread(graph, root.input(0), u)
    total = graph.producers.get(name)
    if total is None or total.op != "Add":
        return []
    epsilons = [graph.scalars.get(graph.origin(each, _SAME)) for each in total.inputs]
    rest = [each for each, epsilon in zip(total.inputs, epsilons, strict=True) if epsilon is None]
    if len(rest) != 1 or not all(epsilon is None or epsilon >= 0 for epsilon in epsilons):
        return []
    centre = _centre(graph, u)
    mean = _mean(graph, rest[0], u, square=True, restored=outside + inside)
    if mean is not None:
        return [mean, centre[1]] if centre is not None and centre[1].axes == mean.axes else [mean]
    return [] if centre is None else _variance(graph, rest[0], *centre, restored=outside + inside)


def _centre(graph: Graph, u: str) -> tuple[str, _Mean] | None:
    """For u = x − mean(x): x and the mean."""
    node = graph.producers.get(u)
    if node is None or node.op != "Sub":
        return None
    x = graph.origin(node.input(0), _SAME)
    mean = _mean(graph, node.input(1), x)
    return None if mean is None else (x, mean)


def _variance(graph: Graph, name: str, x: str, centre: _Mean, restored: int) -> list[_Mean]:
    """The means in mean(x²) − mean(x)², perhaps kept from falling below 0; none if it is not such a thing."""
    name, more = _spread(graph, name, x)
    node = graph.producers.get(name)
    if node is not None and node.op == "Max":
        variables = [each for each in node.inputs if graph.scalars.get(each) != 0]
        node = graph.producers.get(graph.origin(variables[0], _SPREAD)) if len(variables) == 1 else None
    if node is None or node.op != "Sub":
        return []
    squares = _mean(graph, node.input(0), x, square=True, restored=restored + more)
    root = _squared(graph, node.input(1))
    mean = _mean(graph, root or "", x, restored=restored + more)
    found = [each for each in (squares, mean, centre) if each is not None and each.axes == centre.axes]
    return found if len(found) == 3 else []


def _mean(graph: Graph, name: str, x: str, *, square: bool = False, restored: int = 0) -> _Mean | None:
    """How a tensor is the mean of x, or of its square, along the axes it was taken over; else None.

    `restored` says how often a last axis was put back after it.
    """
    name, more = _spread(graph, name, x)
    node, count = graph.producers.get(name), None
    if node is not None and node.op in ("Mul", "Div"):
        numbers = [graph.scalars.get(each) for each in node.inputs]
        sums = [each for each, number in zip(node.inputs, numbers, strict=True) if number is None]
        number = next((number for number in numbers if number), None)
        if number is None or len(sums) != 1 or (node.op == "Div" and sums[0] != node.input(0)):
            return None
        count = number if node.op == "Div" else 1 / number
        node = graph.producers.get(graph.origin(sums[0], _SAME))
    if node is None or node.op != ("ReduceMean" if count is None else "ReduceSum"):
        return None
    averaged: str | None = graph.origin(node.input(0), _SAME)
    if square:
        averaged = _squared(graph, node.input(0))
    axes = _axes(graph, node)
    # An axis that is gone must have been put back, or the mean would lie along another one.
    is_in_place = restored + more == int(node.number("keepdims", 1) == 0)
    return _Mean(axes, count) if averaged == x and axes is not None and is_in_place else None


def _spread(graph: Graph, name: str, like: str) -> tuple[str, int]:
    """What a name carries, perhaps repeated, and whether it was given a last axis on the way (1 or 0)."""
    name = graph.origin(name, _SPREAD)
    node = graph.producers.get(name)
    if node is None or not _puts_back(graph, node, like):
        return name, 0
    return graph.origin(node.input(0), _SAME), 1


def _puts_back(graph: Graph, node: Node, like: str) -> bool:
    """Whether a node gives a tensor that lacks the last axis of another one such an axis, of length 1."""
    if node.op == "Unsqueeze":
        return counted_from_end(axes_of(graph, node), graph.ranks.get(node.outputs[0])) == frozenset({-1})
    target, is_whole = target_of(graph, node) if node.op == "Reshape" else (None, False)
    lengths = lengths_of(graph, like)
    if target is None or not is_whole or lengths is None or len(target) != len(lengths):
        return False
    pairs = zip(target[:-1], lengths[:-1], strict=True)
    # 0 copies a length; where all others are as they were, −1 can only be the one that is left.
    changed = [each for each, length in pairs if each not in (0, length) and _as_length(each) != length]
    return target[-1] in (1, ONE) and changed in ([], [-1])


def _as_length(each: int | Length) -> Length:
    return each if isinstance(each, Length) else Length(each)


def _row(graph: Graph, name: str, *, reshaped: bool = False) -> Stored | None:
    """The stored constant behind a name, if it is one number or a list along the last axis."""
    found = stored_matrix(graph, graph.origin(name, _RESHAPING) if reshaped else name)
    if found is None or found[1]:
        return None
    shapes = [graph.constants[found[0].name], *([constant_shape(graph, name)] if reshaped else [])]
    return found[0] if all(shape is not None and set(shape[:-1]) <= {1} for shape in shapes) else None


def _squared(graph: Graph, name: str) -> str | None:
    """What a tensor is the square of."""
    node = graph.producers.get(graph.origin(name, _SAME))
    if node is None:
        return None
    is_square = node.op == "Mul" and node.input(0) == node.input(1)
    is_power = node.op == "Pow" and graph.scalars.get(graph.origin(node.input(1), _SAME)) == 2
    return graph.origin(node.input(0), _SAME) if is_square or is_power else None


def _axes(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The axes of a Reduce… node, which moved from an attribute to an input."""
    axes = node.integers("axes")
    return axes if axes is not None else graph.integers.get(graph.origin(node.input(1), _SAME))
