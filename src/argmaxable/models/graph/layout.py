"""Operations that rearrange, choose or average the entries of a tensor, and where its features were before.

None of them puts out anything but entries it was given, or means of them: bounds that hold for all entries
before hold after. Bounds for each single feature, or a solid, do so only where the axis of the features can
be followed.
"""

from __future__ import annotations

from dataclasses import dataclass

from argmaxable.models.graph.casts import HALF_CAST
from argmaxable.models.graph.nodes import Graph, Node, is_float_cast

_UNCHANGED = frozenset({"Identity", "Cast", HALF_CAST, "Dropout"})
_RESHAPING = frozenset({"Reshape", "Flatten"})
_POOLING = frozenset({"AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"})
_REDUCING = frozenset({"ReduceMean", "ReduceMax", "ReduceMin"})
_CHOOSING = frozenset({"Slice", "Gather", "GatherElements", "GatherND", "Split"})
_MOVING = frozenset({"Transpose", "Squeeze", "Unsqueeze", "Expand", "Tile"})

KEEPING = _UNCHANGED | _RESHAPING | _POOLING | _REDUCING | _CHOOSING | _MOVING


@dataclass(frozen=True)
class Axis:
    """The axis of a tensor that a head's features lie along: its place from the end, as −1.

    `rank` is the tensor's number of axes where it is known. Before a change of shape the features are in
    the last axis only if that was as long as it was afterwards, so then `needs_length` is True.
    """

    place: int
    rank: int | None = None
    needs_length: bool = False

    @property
    def is_last(self) -> bool:
        return self.place == -1


def keeps_entries(node: Node, output: str) -> bool:
    """Whether an output holds nothing but entries of the first input, or means of them."""
    if node.op == "Cast" and not is_float_cast(node):
        return False
    return node.op in KEEPING and (output in node.outputs[:1] or node.op == "Split")


def takes_extremes(node: Node) -> bool:
    """Whether entries are compared and the largest or smallest kept."""
    return node.op in ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin")


def adds_zeros(node: Node) -> bool:
    """Whether zeros from around the tensor are averaged in."""
    return node.op == "AveragePool" and node.number("count_include_pad", 0) != 0


def axis_before(graph: Graph, node: Node, axis: Axis | None) -> Axis | None:
    """The axis that features had in the node's first input, or None where that is not certain."""
    if axis is None:
        return None
    rank = axis.rank or graph.ranks.get(node.outputs[0])
    if node.op in _UNCHANGED:
        return Axis(axis.place, rank, axis.needs_length)
    if node.op in _RESHAPING:
        # Reshaping keeps the order of entries, and with it the last axis if its length stays the same.
        return Axis(-1, graph.ranks.get(node.input(0)), needs_length=True) if axis.is_last else None
    if axis.needs_length:  # what was reshaped in between may have been cut differently there
        return None
    if node.op == "Transpose":
        return _before_transpose(node, axis, rank)
    if node.op in _POOLING:
        return axis if rank is not None and axis.place + rank == 1 else None
    if node.op == "Unsqueeze":
        return _before_inserting(counted_from_end(axes_of(graph, node), rank), axis, rank)
    removed = _removed_or_touched(graph, node)
    if removed is None:
        return None
    axes, are_removed = removed
    rank_before = None if rank is None else rank + (len(axes) if are_removed else 0)
    places = counted_from_end(axes, rank_before)
    if places is None:
        return None
    place = _place_before_removing(places, axis.place) if are_removed else axis.place
    return None if place in places else Axis(place, rank_before)


def axes_of(graph: Graph, node: Node, place: int = 1) -> tuple[int, ...] | None:
    """The axes an operation works on, which moved from an attribute to an input."""
    axes = node.integers("axes")
    return axes if axes is not None else graph.integers.get(node.input(place))


def counted_from_end(axes: tuple[int, ...] | None, rank: int | None) -> frozenset[int] | None:
    """Axes counted from the end; None where that needs a rank that is not known."""
    if not axes or (rank is None and max(axes) >= 0):
        return None
    return frozenset(axis if axis < 0 or rank is None else axis - rank for axis in axes)


def _before_transpose(node: Node, axis: Axis, rank: int | None) -> Axis | None:
    order = node.integers("perm") or (tuple(reversed(range(rank))) if rank else ())
    if not -len(order) <= axis.place or sorted(order) != list(range(len(order))):
        return None
    return Axis(order[axis.place] - len(order), len(order))


def _before_inserting(inserted: frozenset[int] | None, axis: Axis, rank: int | None) -> Axis | None:
    if inserted is None or axis.place in inserted:
        return None
    place = axis.place + sum(each > axis.place for each in inserted)
    return Axis(place, None if rank is None else rank - len(inserted))


def _place_before_removing(removed: frozenset[int], place: int) -> int:
    """Where an axis was before others were taken out."""
    before = 0
    for _ in range(-place):
        before -= 1
        while before in removed:
            before -= 1
    return before


def _removed_or_touched(graph: Graph, node: Node) -> tuple[tuple[int, ...], bool] | None:
    """The axes of the input that an operation takes out, or works on, and which of the two."""
    if node.op == "Squeeze":
        axes, removed = axes_of(graph, node), True
    elif node.op in _REDUCING:
        axes, removed = axes_of(graph, node), node.number("keepdims", 1) == 0
    elif node.op == "Slice":
        axes, removed = axes_of(graph, node, place=3), False
    elif node.op == "Split":
        axes, removed = (int(node.number("axis", 0)),), False
    elif node.op == "Gather":
        indices = node.input(1)
        rank = len(graph.constants[indices]) if indices in graph.constants else graph.ranks.get(indices)
        axes, removed = (int(node.number("axis", 0)),) if rank in (0, 1) else None, rank == 0
    else:
        axes, removed = None, False
    return None if not axes else (axes, removed)
