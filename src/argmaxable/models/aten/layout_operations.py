"""PyTorch's operations that rearrange, choose or hand on the entries of a tensor, as ONNX's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from argmaxable.models.aten.arguments import CallArguments, NoCounterpart
from argmaxable.models.aten.handles import Handle

if TYPE_CHECKING:
    from argmaxable.models.aten.tape import Tape

# Up to the end, as PyTorch writes it.
_END = 2**63 - 1


def _same(_: Tape, given: CallArguments) -> str:
    """Operations that hand on what they are given, in other memory perhaps."""
    if not given.positional and not given.named:
        raise NoCounterpart("tensor")
    return given.tensor(given.positional[0] if given.positional else next(iter(given.named.values())))


def _dropout(_: Tape, given: CallArguments) -> str:
    x, _probability, train = given.bound("input", "p", "train")
    if train is not False:
        raise NoCounterpart("train")
    return given.tensor(x)


def _to(tape: Tape, given: CallArguments) -> str:
    """A change of type, or of device alone; the schemas differ in where the type is."""
    if (not given.positional and "self" not in given.named) or "other" in given.named:
        raise NoCounterpart("other")
    x, *rest = given.positional or (given.named["self"],)
    type_: Any = given.named.get("dtype")
    for place, each in enumerate(rest[:2]):
        if isinstance(each, Handle) and each.is_tensor:  # like another tensor
            raise NoCounterpart("other")
        if isinstance(each, int) and not isinstance(each, bool) and (place == 0 or type_ is None):
            type_ = each
            break
    name = given.tensor(x)
    if type_ is None:
        return name
    cast = given.cast_type(type_)
    if cast is None:
        raise NoCounterpart("dtype")
    return tape.add("Cast", (name,), tape.rank(name), to=cast)


# ---------------------------------------------------------------------- shapes


def _reshape(tape: Tape, given: CallArguments) -> str:
    x, target = given.bound("self", "shape" if given.op == "reshape" else "size")
    sizes = given.sizes(target)
    return _reshaped(tape, given.tensor(x), sizes)


def _reshaped(tape: Tape, name: str, sizes: list[int | Handle]) -> str:
    unknown = [place for place, each in enumerate(sizes) if isinstance(each, Handle)]
    if len(unknown) == 1 and -1 not in sizes:  # what is left over
        sizes = [-1 if isinstance(each, Handle) else each for each in sizes]
    whole = tuple(each for each in sizes if isinstance(each, int))
    if len(whole) == len(sizes):
        return tape.add("Reshape", (name,), len(sizes), shape=whole, allowzero=1)
    parts = [each.name if isinstance(each, Handle) else tape.number(each) for each in sizes]
    return tape.add("Reshape", (name, tape.add("Concat", parts, axis=0)), len(sizes))


def _flatten(tape: Tape, given: CallArguments) -> str:
    x, start, end = given.bound("self", start_dim=0, end_dim=-1)
    name = given.tensor(x)
    start, end, rank = given.integer(start), given.integer(end), tape.rank(name)
    if (start, end) == (1, -1) or (start == 1 and rank is not None and end == rank - 1):
        return tape.add("Flatten", (name,), 2, axis=1)
    if (start, end) == (0, -1):
        return _reshaped(tape, name, [-1])
    return tape.add("Reshape", (name,))


def _unflatten(tape: Tape, given: CallArguments) -> str:
    """Something of another shape, with the same entries in the same order."""
    return tape.add("Reshape", (_same(tape, given),))


def _transpose(tape: Tape, given: CallArguments) -> str:
    turns_matrix = given.op in ("t", "numpy_T")
    x, first, second = (
        given.bound("self", dim0=0, dim1=1) if turns_matrix else given.bound("self", "dim0", "dim1")
    )
    name = given.tensor(x)
    rank = tape.rank(name)
    if rank is None or (turns_matrix and rank != 2):
        raise NoCounterpart("rank")
    order = list(range(rank))
    places = [given.integer(each) for each in (first, second)]
    if not all(-rank <= each < rank for each in places):
        raise NoCounterpart("dim0")
    order[places[0]], order[places[1]] = order[places[1]], order[places[0]]
    return tape.add("Transpose", (name,), rank, perm=tuple(order))


def _permute(tape: Tape, given: CallArguments) -> str:
    x, dims = given.bound("self", "dims")
    order = given.integers(dims)
    order = tuple(each % len(order) for each in order)
    if sorted(order) != list(range(len(order))):
        raise NoCounterpart("dims")
    return tape.add("Transpose", (given.tensor(x),), len(order), perm=order)


def _squeeze(tape: Tape, given: CallArguments) -> str:
    """Of the axes named, those of length 1 are taken out: where that is not known it is some reshape."""
    x, dim = given.bound("self", "dim")
    name = given.tensor(x)
    shape = tape.shapes.get(name)
    if dim is None or shape is None:
        return tape.add("Reshape", (name,))
    places = [each - len(shape) if each >= 0 else each for each in given.integers(dim)]
    if not all(-len(shape) <= each < 0 for each in places):
        raise NoCounterpart("dim")
    removed = tuple(sorted({each for each in places if shape[each] == 1}))
    if any(not isinstance(shape[each], int) or shape[each] == -1 for each in places):
        return tape.add("Reshape", (name,))
    return tape.add("Squeeze", (name,), len(shape) - len(removed), axes=removed) if removed else name


def _unsqueeze(tape: Tape, given: CallArguments) -> str:
    x, dim = given.bound("self", "dim")
    name = given.tensor(x)
    rank = tape.rank(name)
    return tape.add("Unsqueeze", (name,), None if rank is None else rank + 1, axes=(given.integer(dim),))


def _repeated(tape: Tape, given: CallArguments) -> str:
    return tape.add("Expand" if "expand" in given.op else "Tile", (_same(tape, given),))


# ---------------------------------------------------------------------- choices


def _select(tape: Tape, given: CallArguments) -> str:
    x, dim, index = given.bound("self", "dim", "index")
    name = given.tensor(x)
    rank = tape.rank(name)
    place = tape.number(index) if isinstance(index, int) else tape.number(0)  # which one does not matter
    return tape.add(
        "Gather", (name, place), None if rank is None else max(0, rank - 1), axis=given.integer(dim)
    )


def _slice(tape: Tape, given: CallArguments) -> str:
    x, dim, start, end, step = given.bound("self", dim=0, start=None, end=None, step=1)
    name = given.tensor(x)
    if start in (None, 0) and end in (None, _END) and step == 1:
        return name
    return tape.add("Slice", (name,), tape.rank(name), axes=(given.integer(dim),))


def _chosen(tape: Tape, given: CallArguments) -> str:
    return tape.add("GatherND", (_same(tape, given),))


def _concat(tape: Tape, given: CallArguments) -> str:
    tensors, _ = given.bound("tensors", dim=0)
    names = given.tensors(tensors)
    return tape.add("Concat", names, tape.rank(names[0]) if names else None)


# ---------------------------------------------------------------------- sizes


def _size(tape: Tape, given: CallArguments) -> str:
    x, dim = given.bound("self", "dim")
    place = given.integer(dim)
    shape = tape.add("Shape", (given.tensor(x),))
    return tape.add("Gather", (shape, tape.number(place)), axis=0)


LAYOUT: Mapping[str, Callable[[Tape, CallArguments], str]] = {
    **dict.fromkeys(
        ("contiguous", "clone", "detach", "alias", "lift_fresh_copy", "Int", "NumToTensor"), _same
    ),
    **dict.fromkeys(("prim:NumToTensor", "ScalarImplicit", "detach_copy", "_assert_tensor_metadata"), _same),
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _reshape),
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), _dropout),
    **dict.fromkeys(("to", "_to_copy"), _to),
    **dict.fromkeys(("transpose", "t", "numpy_T"), _transpose),
    **dict.fromkeys(("expand", "repeat", "expand_as"), _repeated),
    **dict.fromkeys(("size", "sym_size"), _size),
    **dict.fromkeys(("index", "index_select", "gather"), _chosen),
    **{"view_as": _unflatten, "flatten": _flatten, "unflatten": _unflatten, "permute": _permute},
    **{"squeeze": _squeeze, "unsqueeze": _unsqueeze, "select": _select, "slice": _slice, "cat": _concat},
}
