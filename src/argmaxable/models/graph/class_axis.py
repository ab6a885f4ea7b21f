"""Where the classes of a linear layer are in all that follows it, up to the output.

The layer's rows are the classes of one argmax only if their axis stays whole, if what is added, subtracted
or divided by belongs to it or is the same for all classes, and if a softmax or an argmax is taken along it. A
softmax over positions divides each class by a number of its own and so changes their order. What can't be
followed is refused: the user may still name the weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from argmaxable.models.graph.broadcast import constant_shape, is_shared, known_rank
from argmaxable.models.graph.layout import axes_of, counted_from_end
from argmaxable.models.graph.lengths import ONE, ClassPlace, Length, Lengths, declared_lengths, size, unknown
from argmaxable.models.graph.nodes import LONGEST_WALK
from argmaxable.models.graph.products import CONVOLUTIONS, integer_product
from argmaxable.models.graph.shape_values import lengths_of, takes_own_shape, target_of

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node
    from argmaxable.models.graph.products import Product

# Since this version of ONNX's operations a softmax is over one axis; before, over that and all behind it.
_ONE_AXIS = 13
_SOFTMAXES = frozenset({"Softmax", "LogSoftmax", "QLinearSoftmax"})
_UNCHANGED = frozenset({"Identity", "Cast", "Dropout", "If"})
_ENTRYWISE = _UNCHANGED | {"Sigmoid", "Exp", "Log", "QuantizeLinear", "DequantizeLinear", *_SOFTMAXES}
_LAYOUT = _UNCHANGED | {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose"}
# Between a pooling over all positions and a convolution of the one that is left.
_ACTIVATIONS = _UNCHANGED | {"Relu", "Clip", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh"}
_POOLINGS = frozenset({"GlobalAveragePool", "GlobalMaxPool", "QLinearGlobalAveragePool"})


def crossing(graph: Graph, path: Sequence[Node], product: Product) -> str:
    """What follows a product, on the path from an output back to it, that is not along its classes.

    In words that follow "the product with 'W'"; empty where its classes are those of one argmax.
    """
    shape = graph.constants[product.weight.name]
    place = _first(graph, path[-1], product, shape[0 if product.stored_by_class else 1])
    ranks = dict(graph.ranks)
    for before, node in zip(path[:0:-1], path[-2::-1], strict=True):
        if isinstance(place, str):
            return place
        place = _declared(graph, before.outputs[0], place)
        if place.rank is not None:
            ranks[before.outputs[0]] = place.rank
        if node.op == "ArgMax":
            later = next((each.op for each in path[: path.index(node)] if each.op not in _LAYOUT), "")
            is_along = _compared(graph, node, place)
            return is_along or (later and f"is followed by ArgMax and that by {later}")
        place = _next(graph, node, place, ranks)
    return place if isinstance(place, str) else ""


def _first(graph: Graph, node: Node, product: Product, classes: int) -> ClassPlace | str:
    """Where the classes are in the product itself."""
    features, output = product.features, node.outputs[0]
    given = lengths_of(graph, features.tensor)
    if node.op in CONVOLUTIONS:
        return ClassPlace(
            classes, (unknown(output, 0),), _positions(graph, features.tensor, -1 - features.axis)
        )
    if node.number("transA", 0):
        place = ClassPlace(classes, (unknown(output, 0),))
    elif features.axis == -1:  # x W
        place = ClassPlace(
            classes, given[:-1] if given else (unknown(output, 0),) if features.rank == 2 else None
        )
    elif given is not None:  # W x, where x may be a vector
        place = ClassPlace(classes, given[:-2], given[-1:]) if len(given) > 1 else ClassPlace(classes, ())
    else:
        return f"is with {features.tensor!r}, of which it is not known how many axes it has"
    bias = node.input(2) if node.op == "Gemm" else ""
    return _combined(graph, node, bias, place) if bias else place


def _positions(graph: Graph, tensor: str, count: int) -> Lengths:
    """The lengths of the axes behind a convolution's features: 1 after a pooling over all positions."""
    unlike = tuple(unknown(f"{tensor}\0positions", axis) for axis in range(count))
    for _ in range(LONGEST_WALK):
        if (lengths_of(graph, tensor) or ())[-count:] == (ONE,) * count:
            return (ONE,) * count
        node = graph.producers.get(tensor)
        if node is not None and node.op in _POOLINGS:
            return (ONE,) * count
        if node is None or not (
            node.op in _ACTIVATIONS or (node.op == "Conv" and _is_pointwise(graph, node))
        ):
            break
        tensor = node.input(0)
    return unlike


def _is_pointwise(graph: Graph, node: Node) -> bool:
    kernel = (constant_shape(graph, node.input(1)) or (0, 0, 0))[2:]
    return set(kernel) == {1} and not any(node.integers("pads") or ())


def _declared(graph: Graph, tensor: str, place: ClassPlace) -> ClassPlace:
    """A place in a tensor of so far unknown shape, with what is declared of the axes before the classes."""
    rank = graph.ranks.get(tensor)
    if place.before is not None or rank is None or rank < -place.axis:
        return place
    lengths = declared_lengths(tensor, graph.shapes[tensor])
    return ClassPlace(place.classes, lengths[: rank + place.axis], place.after)


def _next(graph: Graph, node: Node, place: ClassPlace, ranks: Mapping[str, int]) -> ClassPlace | str:
    """Where the classes are after an operation, or what it does that is not along them."""
    if node.op in _SOFTMAXES:
        return _compared(graph, node, place) or place
    if node.op in _ENTRYWISE:
        return place
    if node.op in _LAYOUT or node.op == "GlobalAveragePool":
        return _relaid(graph, node, place) or _cut(graph, node, place)
    if node.op == "QLinearAdd":
        return _combined(graph, node, node.input(3), place)
    if node.op == "Mul" and (found := integer_product(graph, node)) is not None:
        return _combined(graph, node, found[1], place) if found[1] else place
    if node.number("along_classes", 0):
        return place
    stored = [name for name in node.inputs[:2] if constant_shape(graph, name) is not None]
    if stored:
        return _combined(graph, node, stored[-1], place)
    if not is_shared(graph, node.input(1), place.axis, ranks):
        return f"is followed by {node.op} with {node.input(1)!r}, which may differ from class to class"
    rank = known_rank(graph, node.input(1), ranks)
    fits = rank is not None and place.rank is not None and rank <= place.rank
    return place if fits else ClassPlace(place.classes, None, place.after)


def _compared(graph: Graph, node: Node, place: ClassPlace) -> str:
    """Why an operation that compares along an axis does not compare the classes; empty if it does."""
    rank = place.rank or graph.ranks.get(node.outputs[0] if node.op != "ArgMax" else node.input(0))
    version = int(node.number("opset", graph.opset))
    is_open = node.op in _SOFTMAXES and version < _ONE_AXIS
    axis = int(node.number("axis", 0 if node.op == "ArgMax" else 1 if is_open else -1))
    if is_open and not place.after:  # over an axis and all behind it, and so over the last
        return ""
    from_end = counted_from_end((axis,), rank)
    if from_end is None:
        return (
            f"is followed by {node.op} over axis {axis}, and it is not known how many axes there are and so "
            f"whether that is the axis of its {place.classes} classes"
        )
    first = min(from_end)
    if first == place.axis or (is_open and first < place.axis):
        return ""
    return (
        f"is followed by {node.op} over axis {first} counted from the end. That is not the axis of its "
        f"{place.classes} classes and changes their order"
    )


def _combined(graph: Graph, node: Node, constant: str, place: ClassPlace) -> ClassPlace | str:
    """The place after a constant was added or multiplied: one number, or one for each class."""
    shape = constant_shape(graph, constant)
    if shape is None:
        return f"is followed by {node.op} with {constant!r}, whose shape is not known"
    along = shape[place.axis] if len(shape) >= -place.axis else 1
    if along not in (1, place.classes) or math.prod(shape) != along:
        return (
            f"has {place.classes} classes but {node.op} takes {constant!r} of shape {list(shape)}, "
            "which does not lie along their axis"
        )
    if place.before is None or place.rank is None:
        return place
    more = (ONE,) * (len(shape) - place.rank)
    return ClassPlace(place.classes, (*more, *place.before), place.after)


def _cut(graph: Graph, node: Node, place: ClassPlace) -> str:
    target = target_of(graph, node)[0] if node.op == "Reshape" else None
    shown = [each if isinstance(each, int) else str(each) for each in target or ()]
    how = f"is reshaped to {shown}" if shown else f"goes through {node.op}"
    return f"has {place.classes} columns but {how}, so they may not be the classes of one argmax"


def _relaid(graph: Graph, node: Node, place: ClassPlace) -> ClassPlace | None:
    """Where the classes are after a change of layout; None where they are cut or that is not known."""
    output, before, after = node.outputs[0], place.before, place.after
    if node.op == "GlobalAveragePool":
        return ClassPlace(place.classes, before, (ONE,) * len(after)) if before and len(before) == 1 else None
    if node.op == "Reshape":
        if takes_own_shape(graph, node):
            return place
        target, is_whole = target_of(graph, node)
        return None if target is None else place.reshaped(output, target, is_whole=is_whole)
    if node.op == "Transpose":
        return _transposed(node, place)
    if node.op == "Flatten":
        cut = int(node.number("axis", 1))
        return None if (all_ := place.lengths) is None else place.moved((size(all_[:cut]), size(all_[cut:])))
    axes = axes_of(graph, node)
    if node.op == "Unsqueeze":
        return _unsqueezed(axes, place)
    return _squeezed(axes, place) if axes or not node.input(1) else None


def _transposed(node: Node, place: ClassPlace) -> ClassPlace | None:
    order = node.integers("perm") or (tuple(reversed(range(place.rank))) if place.rank else ())
    fits = sorted(order) == list(range(len(order))) and place.rank in (None, len(order))
    if not fits or len(order) < -place.axis:
        return None
    before = place.before or tuple(unknown(node.input(0), axis) for axis in range(len(order) + place.axis))
    lengths = (*before, None, *place.after)
    return _around(place, [lengths[axis] for axis in order], is_whole=True)


def _unsqueezed(axes: tuple[int, ...] | None, place: ClassPlace) -> ClassPlace | None:
    inserted = counted_from_end(axes, place.rank and place.rank + len(axes or ()))
    left, new = [*(place.before or ()), None, *place.after], list[Length | None]()
    while inserted is not None and (left or (place.before is not None and -1 - len(new) in inserted)):
        new.insert(0, ONE if -1 - len(new) in inserted else left.pop())
    return None if inserted is None else _around(place, new, is_whole=place.before is not None)


def _squeezed(axes: tuple[int, ...] | None, place: ClassPlace) -> ClassPlace | None:
    given = [*(place.before or ()), None, *place.after]
    if axes is None:  # every axis of length 1
        is_known = place.before is not None and not any(each.unknown for each in given if each is not None)
        places = [axis - len(given) for axis, length in enumerate(given) if length == ONE]
        removed = frozenset(places) if is_known and place.classes > 1 else None
    else:
        removed = counted_from_end(axes, place.rank)
    if removed is None or place.axis in removed:
        return None
    left = [length for axis, length in enumerate(given, -len(given)) if axis not in removed]
    return _around(place, left, is_whole=place.before is not None)


def _around(place: ClassPlace, lengths: Sequence[Length | None], *, is_whole: bool) -> ClassPlace:
    """The place of the classes in a tensor of these lengths, where None stands for their own."""
    own = lengths.index(None)
    known = [tuple(each for each in part if each is not None) for part in (lengths[:own], lengths[own + 1 :])]
    return ClassPlace(place.classes, known[0] if is_whole else None, known[1])
