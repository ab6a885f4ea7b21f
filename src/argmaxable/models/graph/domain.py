"""What the features of a head can be, as the graph in front of it proves.

A walk back from the head bounds every tensor on the way: an activation function by its range, whatever it
is given; pooling, changes of layout and choices by the bounds of what they take in, since they put out
nothing new or means; sums, products and quantisation by interval arithmetic; a norm by the solid that
holds all its outputs. Anything else, a linear layer above all, bounds nothing, nor does anything computed
with what may be whole numbers, which wrap round (see `casts.py`). Bounds have room for the rounding of
float32 in sums, products, quotients and means (see `rounding.py`), in the length that a norm gives (see
`models/norm_solid.py`), and for half precision (see `half_precision.py`). Taken as exact are the mean that a
LayerNorm takes off, and gain, shift and means over positions where the domain is a norm's solid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.errors import DomainError, LoadError
from argmaxable.models.finding import HeadInputs
from argmaxable.models.graph import rounding
from argmaxable.models.graph.activations import activation_range
from argmaxable.models.graph.casts import HALF_CAST, float_tensors, with_told_casts
from argmaxable.models.graph.half_precision import half_tensors, surviving
from argmaxable.models.graph.layout import Axis, adds_zeros, axis_before, keeps_entries, takes_extremes
from argmaxable.models.graph.norms import GraphNorm, norm_behind
from argmaxable.models.graph.products import Features, Stored, linear_product
from argmaxable.models.norm_solid import room_for_rounding

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.core.domain import Domain
    from argmaxable.models.graph.nodes import Graph, Node

Reader = Callable[[Stored], NDArray[Any]]

_CONSTANT = "a constant"
_WORDS = {
    **{
        "Add": "the sum",
        "Sum": "the sum",
        "Sub": "the difference",
        "Mul": "the product",
        "Div": "the quotient",
    },
    **{"Max": "the maximum", "Min": "the minimum", "Mean": "the mean", "Concat": "the concatenation"},
    **{"Where": "a choice", "If": "a choice"},
}
# Whole numbers that quantised tensors consist of.
_STEPS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
# Deep enough to see through pooling, reshapes and sums; each level of recursion is one operation.
_DEEPEST = 60
# Larger than any constant that is added to, or multiplied with, features.
_LARGEST_CONSTANT = 2**16
# Where one layer is used: the branches of an If, the steps of a loop that was written out.
_MOST_PLACES = 16
# Rounds the few float64 operations behind a bound outwards.
_OUTWARDS = 1 + 2.0**-40
# The same for the float32 operations of dynamic quantisation, a few roundings of at most 510 half steps.
_STEP_ROOM = 1 + 2.0**-12


@dataclass(frozen=True, eq=False)
class _Values:
    """Bounds for all entries of a tensor, or for each of the head's features; why, and what came after.

    `solid` is a norm's domain, tighter than the bounds, while the features keep their order.
    """

    why: str
    lo: Vector
    hi: Vector
    solid: Domain | None = None
    through: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.why}, then {', '.join(self.through)}" if self.through else self.why

    @property
    def is_bounded(self) -> bool:
        return bool((self.lo > -math.inf).any() or (self.hi < math.inf).any())

    def then(self, operation: str) -> _Values:
        """The same values with one more operation to tell of, if there is anything to tell."""
        return replace(self, through=(*self.through, operation)) if self.is_bounded else self


def inputs_of(graph: Graph, features: tuple[Features, ...], size: int, read: Reader) -> HeadInputs | None:
    """What feeds a head of `size` features, in words, and the tightest domain that follows.

    None where no operation is known to use the head, or several do and have different domains. `read` gives
    the values of stored constants.
    """
    search = _Search(graph.fixed, size, read)
    try:
        with np.errstate(all="ignore"):  # constants of damaged files may be infinite or no numbers
            found = [_inputs(search, each) for each in features[:_MOST_PLACES]]
            is_one = len(features) == len(found) and all(each.domain == found[0].domain for each in found)
            return found[0] if found and is_one else None
    except (LoadError, DomainError) as error:
        return HeadInputs(f"unknown, because a constant in front of the head is damaged: {error}")


def _inputs(search: _Search, features: Features) -> HeadInputs:
    if features.scale:
        values = search.grid(features.scale, features.zero_point, in_steps=features.in_steps)
    else:
        values = search.values(features.tensor, Axis(features.axis, features.rank))
        values = _dynamically_quantised(values) if features.rounded else values
    box = Box(values.lo, values.hi) if values.is_bounded else Everywhere()
    return HeadInputs(values.words, values.solid or box)


class _Search:
    """One walk through a graph, which remembers what it has found: tensors are used many times."""

    def __init__(self, graph: Graph, size: int, read: Reader) -> None:
        self.size, self.read = size, read
        self.halves, self.floats = half_tensors(graph), float_tensors(graph)
        self.graph = with_told_casts(graph, self.floats, self.halves)
        self._known: dict[tuple[str, Axis | None], _Values] = {}

    def values(self, name: str, axis: Axis | None, depth: int = 0) -> _Values:
        """Bounds for a tensor whose entries along `axis`, where it is known, are the head's features."""
        if (name, axis) not in self._known:
            # A damaged graph may run in circles: it then finds this answer, which is never wrong.
            self._known[name, axis] = _anything("a graph too deep to follow")
            found = self._bounds(name, axis, depth)
            self._known[name, axis] = self._in_half(found, name) if name in self.halves else found
        return self._known[name, axis]

    def _in_half(self, values: _Values, name: str) -> _Values:
        """What is left of bounds where the tensor is rounded to half precision."""
        lo, hi = surviving(self.graph.producers.get(name), values.lo, values.hi)
        rounded = replace(values, lo=lo, hi=hi, solid=None)
        if values.is_bounded and not rounded.is_bounded:
            return _anything(f"{values.words}, in half precision, which can round beyond those bounds")
        return rounded

    def grid(self, scale: str, zero_point: str, *, in_steps: bool = False) -> _Values:
        """Bounds for numbers that are quantised with these constants."""
        step, zero = (self.graph.scalars.get(each, math.nan) for each in (scale, zero_point))
        type_ = self.graph.types.get(zero_point, "")
        if type_ not in _STEPS or not 0 < step < math.inf or math.isnan(zero):
            return _anything("quantised in steps that are not known")
        lowest, highest = ((end - zero) * (1.0 if in_steps else step) for end in _STEPS[type_])
        what = "counted in steps" if in_steps else f"in steps of {step:g}"
        return _Values(
            f"quantised to {type_} {what}", *rounding.outwards(np.array(lowest), np.array(highest))
        )

    def _bounds(self, name: str, axis: Axis | None, depth: int) -> _Values:
        graph = self.graph
        if name in graph.constants:
            return self._constant(name)
        node = graph.producers.get(name)
        if node is None or depth > _DEEPEST:
            return _anything("the model's input" if node is None else "a graph too deep to follow")
        norm = norm_behind(graph, name)
        if norm is not None and {name, norm.normalised} & self.halves:
            return _anything(f"{norm.name} in half precision, whose rounding has no bound")
        if norm is not None and (not norm.counts or self._are_floats(norm.normalised)):
            return self._norm(norm, name, axis)
        activation = activation_range(graph, node, name)
        if node.op == "Mul" and not self._are_floats(*node.inputs):
            activation = None
        if activation is not None and node.op == "Mul" and {name, *node.inputs} & self.halves:
            return _anything(f"{activation[0]}, in half precision, which can round to less than its minimum")
        if activation is not None:
            return _range(*activation)
        values = self._combination(node, name, axis, depth + 1) or self._passed(node, name, axis, depth + 1)
        if values is not None:
            return values
        product = linear_product(graph, node)
        if product is not None:
            return _anything(f"a linear layer ({node.op} with {product.weight.name}), which bounds nothing")
        return _anything(f"{node.op}, which bounds nothing")

    def _are_floats(self, *names: str) -> bool:
        """Whether none of these may hold whole numbers that an operation turns into floats by itself."""
        return not self.graph.promotes or self.floats.union(self.graph.constants).issuperset(names)

    def _constant(self, name: str) -> _Values:
        size = self.graph.size(name)
        if size is None or not 0 < size <= _LARGEST_CONSTANT:
            return _anything("a large constant")
        numbers = self.read(Stored(name)).astype(np.float64)
        if np.isnan(numbers).any():
            raise LoadError(f"{name!r} holds NaN.")
        return _range(_CONSTANT, float(numbers.min()), float(numbers.max()))

    # ------------------------------------------------------------------ norms

    def _norm(self, norm: GraphNorm, name: str, axis: Axis | None) -> _Values:
        shift = np.zeros(1) if norm.shift is None else self._numbers(norm.shift)
        gain = math.prod((self._numbers(each) for each in norm.gains), start=np.ones(1))
        sizes = {each.size for each in (shift, gain)} - {1}
        if len(sizes) > 1 or len(norm.gains) > 2:  # the product of two float32 factors is exact
            return _anything(f"{norm.name} with gains that don't fit")
        if axis is not None and axis.needs_length and sizes != {self.size}:
            axis = None
        ranks = [
            self.graph.ranks.get(norm.normalised),
            self.graph.ranks.get(name),
            axis.rank if axis else None,
        ]
        rank = next((each for each in ranks if each is not None), None)
        is_last = norm.axes == (-1,) or (rank is not None and norm.axes == (rank - 1,))
        size = self.size if axis is not None and axis.is_last else max(sizes, default=0)
        if not is_last or not size or any(abs(count / size - 1) > 1e-6 for count in norm.counts):
            return _anything(f"{norm.name} over axes {norm.axes}")
        # Of n numbers with Σz² ≤ n none exceeds √n, and if they sum to 0, √(n − 1). float32 adds a little.
        gain = gain * room_for_rounding(size)
        reach = np.abs(gain) * math.sqrt(size - norm.centred) * _OUTWARDS
        lo, hi = rounding.outwards(shift - reach, shift + reach)
        if axis is None or not axis.is_last or not sizes <= {self.size}:
            return _range(norm.name, float(lo.min()), float(hi.max()))
        solid = (LayerNorm if norm.centred else RMSNorm)(_single(gain), _single(shift))
        words = f"{norm.name} with its gain{' and shift' if norm.shift else ''}"
        return _Values(words, _single(lo), _single(hi), solid)

    def _numbers(self, stored: Stored) -> Vector:
        return self.read(stored).astype(np.float64).reshape(-1)

    # ------------------------------------------------------------------ interval arithmetic

    def _combination(self, node: Node, name: str, axis: Axis | None, depth: int) -> _Values | None:
        if node.op == "Clip":
            return self._clipped(node, axis, depth)
        if node.op in ("DequantizeLinear", "DynamicQuantizeLinear"):
            return self._quantised(node, name, axis, depth)
        if node.op not in _WORDS:
            return None
        names = node.inputs[1:] if node.op == "Where" else node.inputs
        parts = [
            self.values(each, self._axis_in(node, each, axis), depth)
            if self._are_floats(each)
            else _anything("what may be whole numbers")
            for each in names
        ]
        if not parts or (node.op in ("Sub", "Mul", "Div") and len(parts) != 2):  # a damaged graph
            return None
        lo, hi = _arithmetic(node.op, parts)
        if node.op == "Mul" and names[0] == names[1]:
            lo = np.maximum(lo, 0.0)
        variables = [part for part in parts if part.why != _CONSTANT] or parts
        if len(variables) == 1:
            combined = replace(variables[0], lo=lo, hi=hi, solid=None).then(node.op)
        else:
            words = " and ".join(f"({part.words})" for part in variables)
            combined = _Values(f"{_WORDS[node.op]} of {words}", lo, hi)
        if combined.is_bounded:
            return combined
        return next((part for part in variables if not part.is_bounded), combined)

    def _axis_in(self, node: Node, name: str, axis: Axis | None) -> Axis | None:
        """The features' axis in one of the tensors that are combined, which may have fewer axes."""
        # Joined side by side, features are no longer those of either part, unless along another axis.
        if axis is None or node.op == "Concat":
            return None
        return replace(axis, rank=self.graph.ranks.get(name))

    def _clipped(self, node: Node, axis: Axis | None, depth: int) -> _Values:
        scalars = self.graph.scalars
        inner = self.values(node.input(0), axis, depth)
        low = scalars.get(node.input(1), node.number("min", -math.inf))
        high = scalars.get(node.input(2), node.number("max", math.inf))
        least, most = rounding.outwards(np.array(low), np.array(high))
        lo, hi = np.maximum(inner.lo, least), np.minimum(inner.hi, most)
        # Where the limits cross, the upper one counts; one that varies may cross anything.
        varies = any(limit and limit not in scalars for limit in node.inputs[1:])
        if varies or low > high or (lo > hi).any():
            return _anything("Clip to limits that are not known")
        return _Values(f"Clip to [{low:g}, {high:g}]", lo, hi)

    def _quantised(self, node: Node, name: str, axis: Axis | None, depth: int) -> _Values | None:
        if node.op == "DequantizeLinear":
            return self.grid(node.input(1), node.input(2))
        if name not in node.outputs[:1]:
            return None
        return _dynamically_quantised(self.values(node.input(0), axis, depth))

    # ------------------------------------------------------------------ looking through

    def _passed(self, node: Node, name: str, axis: Axis | None, depth: int) -> _Values | None:
        if not keeps_entries(node, name):
            return None
        inner = self.values(node.input(0), axis_before(self.graph, node, axis), depth)
        if takes_extremes(node):  # each feature's comes from another vector
            inner = replace(inner, solid=None)
        if adds_zeros(node):
            inner = replace(inner, lo=np.minimum(inner.lo, 0.0), hi=np.maximum(inner.hi, 0.0), solid=None)
        if node.op in rounding.AVERAGING:
            lo, hi = rounding.mean_outwards(inner.lo, inner.hi, rounding.summands(self.graph, node))
            inner = replace(inner, lo=lo, hi=hi)
        if node.op == "Cast":  # perhaps from float64
            lo, hi = rounding.outwards(inner.lo, inner.hi)
            inner = replace(inner, lo=lo, hi=hi)
        silent = node.op in ("Identity", "Cast", HALF_CAST, "Dropout")
        return inner if silent else inner.then(node.op)


def _range(why: str, lo: float, hi: float) -> _Values:
    return _Values(why, np.array(lo), np.array(hi))


def _anything(why: str) -> _Values:
    return _range(why, -math.inf, math.inf)


def _single(numbers: Vector) -> Vector:
    return numbers.reshape(()) if numbers.size == 1 else numbers


def _dynamically_quantised(values: _Values) -> _Values:
    """Bounds after DynamicQuantizeLinear: 256 steps from min(0, least) to max(0, greatest) of each tensor.

    0 is always a step, so a sign is kept; the ends may be missed by half a step.
    """
    half_step = (np.maximum(values.hi, 0.0) - np.minimum(values.lo, 0.0)) / 510 * _STEP_ROOM
    lo = np.where(values.lo >= 0, 0.0, values.lo - half_step)
    hi = np.where(values.hi <= 0, 0.0, values.hi + half_step)
    return replace(values, lo=lo, hi=hi, solid=None).then("quantised")


def _arithmetic(op: str, parts: list[_Values]) -> tuple[Vector, Vector]:
    """Bounds for a combination of tensors, from those of its parts."""
    ranges = [(part.lo, part.hi) for part in parts]
    (lo, hi), *others = ranges
    for other_lo, other_hi in others:
        if op in ("Add", "Sum"):
            lo, hi = lo + other_lo, hi + other_hi
        elif op == "Sub":
            lo, hi = lo - other_hi, hi - other_lo
        elif op == "Mul":
            lo, hi = _extremes(np.multiply, lo, hi, other_lo, other_hi)
        elif op == "Div" and ((other_lo > 0) | (other_hi < 0)).all():
            lo, hi = _extremes(np.divide, lo, hi, other_lo, other_hi)
        elif op == "Div":
            lo, hi = np.array(-math.inf), np.array(math.inf)
        elif op == "Max":
            lo, hi = np.maximum(lo, other_lo), np.maximum(hi, other_hi)
        elif op == "Min":
            lo, hi = np.minimum(lo, other_lo), np.minimum(hi, other_hi)
        else:  # Concat, Where, If and Mean: something of one, of the other, or between
            lo, hi = np.minimum(lo, other_lo), np.maximum(hi, other_hi)
    if op == "Mean":
        return rounding.mean_outwards(lo, hi, len(parts))
    if op == "Sum" and len(parts) > 2:
        return rounding.sum_outwards(lo, hi, ranges)
    return rounding.outwards(lo, hi) if op in ("Add", "Sum", "Sub", "Mul", "Div") else (lo, hi)


def _extremes(
    combine: np.ufunc, lo: Vector, hi: Vector, other_lo: Vector, other_hi: Vector
) -> tuple[Vector, Vector]:
    """Bounds of a product or quotient, which are those of its ends; 0 · ∞ and ∞ / ∞ are 0 here."""
    ends = [
        np.nan_to_num(combine(end, other), nan=0.0, posinf=math.inf, neginf=-math.inf)
        for end in (lo, hi)
        for other in (other_lo, other_hi)
    ]
    return np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(np.broadcast_arrays(*ends))
