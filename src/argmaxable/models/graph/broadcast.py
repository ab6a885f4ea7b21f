"""The shapes of what is combined with logits, as far as needed: constants, maxima and sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.models.graph.layout import axes_of, counted_from_end
from argmaxable.models.graph.lengths import ONE
from argmaxable.models.graph.nodes import LONGEST_WALK
from argmaxable.models.graph.shape_values import target_of

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

_SAME_SHAPE = frozenset({"Identity", "Cast", "DequantizeLinear", "Exp", "Log", "Neg"})
# More numbers than any bias has; a damaged file may declare anything.
_MOST_NUMBERS = 2**24


def constant_shape(graph: Graph, name: str) -> tuple[int, ...] | None:
    """The shape that a stored constant has where it is used, after changes of layout; None if not known."""
    changes: list[Node] = []
    while name not in graph.constants:
        node = graph.producers.get(name)
        if node is None or len(changes) == LONGEST_WALK:
            return None
        changes.append(node)
        name = node.input(0)
    shape: tuple[int, ...] | None = graph.constants[name]
    for node in reversed(changes):
        try:
            shape = None if shape is None else _changed(graph, node, shape)
        except ValueError:  # such a change is not possible; neither is the model
            return None
    return shape


def _changed(graph: Graph, node: Node, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape after one change of layout; raises ValueError where it does not fit."""
    if node.op in _SAME_SHAPE or math.prod(shape) > _MOST_NUMBERS or min(shape, default=1) < 0:
        return shape if node.op in _SAME_SHAPE else None
    array, axes = np.broadcast_to(np.False_, shape), axes_of(graph, node)
    if node.op == "Transpose":
        return array.transpose(node.integers("perm")).shape
    if node.op == "Unsqueeze":
        return None if axes is None else np.expand_dims(array, axes).shape
    if node.op == "Squeeze":
        return None if axes is None and node.input(1) else array.squeeze(axes).shape
    if node.op == "Flatten":
        cut = int(node.number("axis", 1))
        return math.prod(shape[:cut]), math.prod(shape[cut:])
    target, is_whole = target_of(graph, node) if node.op == "Reshape" else (None, False)
    if target is None or not is_whole:
        return None
    copied = [shape[axis] if each == 0 and axis < len(shape) else each for axis, each in enumerate(target)]
    return array.reshape([each for each in copied if isinstance(each, int)]).shape


def is_shared(graph: Graph, name: str, axis: int, ranks: Mapping[str, int]) -> bool:
    """Whether a tensor is certain to have one number for all places along an axis, counted from the end.

    `ranks` says how many axes tensors have, where it is known.
    """
    pending = [name]
    for _ in range(LONGEST_WALK):
        if not pending:
            return True
        name = pending.pop()
        node, shape = graph.producers.get(name), constant_shape(graph, name)
        if shape is not None:
            if len(shape) >= -axis and shape[axis] != 1:
                return False
        elif node is not None and (node.op in _SAME_SHAPE or node.op == "Expand"):
            pending.append(node.input(0))
        elif node is not None and node.op == "Max":
            pending += node.inputs
        elif node is None or not _has_one_place(graph, node, axis, ranks):
            return False
    return False


def _has_one_place(graph: Graph, node: Node, axis: int, ranks: Mapping[str, int]) -> bool:
    """Whether a node is one that puts out a tensor of length 1 along an axis."""
    axes = axes_of(graph, node)
    if node.op == "Unsqueeze":
        return axis in (counted_from_end(axes, ranks.get(node.outputs[0])) or ())
    if node.op == "Reshape":
        target, is_whole = target_of(graph, node)
        return target is not None and (target[axis] in (1, ONE) if len(target) >= -axis else is_whole)
    if not node.op.startswith("Reduce"):
        return False
    if axes is None and not node.input(1):  # over everything, or nothing
        return node.number("noop_with_empty_axes", 0) == 0
    rank = known_rank(graph, node.input(0), ranks)
    return node.number("keepdims", 1) != 0 and axis in (counted_from_end(axes, rank) or ())


def known_rank(graph: Graph, name: str, ranks: Mapping[str, int]) -> int | None:
    """How many axes a tensor has, looking back through what does not change that."""
    for _ in range(LONGEST_WALK):
        node = graph.producers.get(name)
        if name in ranks or node is None:
            break
        keeps = node.op.startswith("Reduce") and node.number("keepdims", 1) != 0
        if node.op == "Max":
            variable = [each for each in node.inputs if each not in graph.scalars]
            name = variable[0] if len(variable) == 1 else ""
        elif keeps or node.op in _SAME_SHAPE:
            name = node.input(0)
        else:
            target, is_whole = target_of(graph, node) if node.op == "Reshape" else (None, False)
            return len(target) if target is not None and is_whole else None
    return ranks.get(name)
