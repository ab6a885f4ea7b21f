"""An exported program as the `Graph` that `models/graph/` walks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import LoadError
from argmaxable.models.aten.handles import Handle, Items, handles_in
from argmaxable.models.aten.stored import ArchivedTensor, StoredValues, stored_tensor
from argmaxable.models.aten.tape import Tape
from argmaxable.models.torch_export.program import TYPES, names_in

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph
    from argmaxable.models.pytorch.archive import Member
    from argmaxable.models.torch_export.program import Argument, Call, ExportedGraph, Payload

# PyTorch's own numbers of the types of floats, which casts are written in; any other number is no float.
_NUMBERS = {"float16": 5, "float32": 6, "float64": 7, "bfloat16": 15}
_NO_FLOAT = 4
_OPERATIONS = "torch.ops."


def translate(
    program: ExportedGraph,
    payloads: Mapping[str, Mapping[str, Payload]],
    path: Path,
    members: Mapping[str, Member],
) -> tuple[Graph, StoredValues]:
    """The graph, and what reads its constants. `payloads` are the tensors in each folder of the archive."""
    tape, values = Tape(), dict[str, Handle]()
    for name in program.inputs:
        tensor = _stored(program, name, payloads, members)
        if tensor is None:
            values[name] = tape.given(name)
            if name in program.shapes:
                tape.shapes[name] = program.shapes[name]
                tape.declared[name] = program.types[name]
        else:
            values[name] = tape.constant(program.stored[name][1], tensor)
            if program.stored[name][1] in program.changed:
                tape.changed.add(tensor.member)
    for call in program.calls:
        _record(tape, values, call, program)
    outputs = [values[name].name for name in program.outputs if name in values]
    return tape.graph(outputs, path, members)


def _stored(
    program: ExportedGraph,
    name: str,
    payloads: Mapping[str, Mapping[str, Payload]],
    members: Mapping[str, Member],
) -> ArchivedTensor | None:
    """The tensor of the archive that an input of the graph is; None where it is the user's, or pickled."""
    _, own = program.stored.get(name, ("", ""))
    found = [(folder, each[own]) for folder, each in payloads.items() if own in each]
    if not own or not found:
        return None
    folder, payload = found[0]  # a parameter or buffer; anything outside the state is a constant
    member = f"{folder}/{payload.file}"
    if member not in members:
        raise LoadError(f"the member {member[:80]!r} is missing")
    if program.shapes.get(name, payload.shape) != payload.shape:
        raise LoadError(f"{own[:80]!r} is stored with shape {payload.shape[:8]}, but used with another")
    return stored_tensor(
        member, payload.dtype, payload.shape, payload.strides, payload.offset, members[member].size
    )


def _record(tape: Tape, values: dict[str, Handle], call: Call, program: ExportedGraph) -> None:
    """One call onto the tape, and the names of what it gives."""
    wanted = names_in(call.outputs[0]) if len(call.outputs) == 1 else []
    op = _operation(call.target)
    try:
        named = {
            name or f"argument {place}": _value(tape, values, argument)
            for place, (name, argument) in enumerate(call.arguments)
        }
    except (AttributeError, KeyError, TypeError, StopIteration) as error:
        raise LoadError(f"an operation {op[:80]!r} has damaged arguments") from error
    if not call.target.startswith(_OPERATIONS):
        result = tape.call(op, list(named.values()), {}, wanted[0] if wanted else "")
    else:
        result = tape.call(op, (), named, wanted[0] if len(wanted) == 1 else "")
    names = [name for each in call.outputs for name in names_in(each)]
    parts = list(handles_in([result]))
    if len(parts) != len(names):
        parts = [tape.opaque("part", *parts) for _ in names]
    for name, part in zip(names, parts, strict=True):
        values[name] = part
        if name in program.shapes and part.name not in tape.stored:
            tape.shapes[part.name] = program.shapes[name]


def _operation(target: str) -> str:
    """An operation's name: without a namespace for PyTorch's own, and without its overload."""
    if target.startswith(_OPERATIONS):
        namespace, _, name = target.removeprefix(_OPERATIONS).partition(".")
        name = name.partition(".")[0]
        return name if namespace == "aten" else f"{namespace or 'unknown'}:{name}"
    module, _, name = target.rpartition(".")
    return name if module == "_operator" else f"python:{name}"  # arithmetic with lengths, mostly


def _value(tape: Tape, values: Mapping[str, Handle], argument: Argument) -> Any:
    """What an argument stands for."""
    kind, value = argument
    if kind == "as_none":
        return None
    if kind in ("as_int", "as_float", "as_bool", "as_string") and isinstance(value, bool | int | float | str):
        return value
    if kind in ("as_ints", "as_floats", "as_bools") and isinstance(value, list):
        return Items(value)
    if kind == "as_scalar_type":
        return _NUMBERS.get(TYPES.get(value, "") if isinstance(value, int) else "", _NO_FLOAT)
    if kind in ("as_device", "as_layout", "as_memory_format"):
        return kind
    if kind in ("as_sym_int", "as_sym_float") and "as_name" not in value:
        return next(iter(value.values()))
    if kind == "as_sym_ints":
        return Items(_value(tape, values, ("as_sym_int", each)) for each in value)
    if kind == "as_optional_tensors":
        return Items(
            None if "as_none" in each else _value(tape, values, next(iter(each.items()))) for each in value
        )
    if kind == "as_optional_tensor":
        return _value(tape, values, next(iter(value.items())))
    names = names_in(argument)
    if not all(name in values for name in names):
        raise LoadError(
            f"the value {next(name for name in names if name not in values)[:80]!r} is used too early"
        )
    handles = [values[name] for name in names]
    return Items(handles) if kind == "as_tensors" else handles[0] if handles else tape.opaque(kind[:40])
