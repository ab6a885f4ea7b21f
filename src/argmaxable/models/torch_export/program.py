"""An exported program: its graph out of JSON, with tensors, inputs and outputs by name, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice

Shape = tuple[int | str, ...]
Argument = tuple[str, Any]  # the kind, such as "as_tensor", and the value

# torch.export's numbers of types that are read here.
TYPES = {
    **{1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"},
    **{12: "bool", 13: "bfloat16", 29: "float8_e4m3fn", 30: "float8_e5m2"},
}
_STRIDED = 7
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Call:
    """One operation: its target, arguments by name, and what it gives."""

    target: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[Argument, ...]


@dataclass(frozen=True)
class ExportedGraph:
    """The calls in their order. `stored` are inputs that are tensors of the archive: their kind ("parameter",
    "buffer" or "tensor_constant") and name there. `changed` are buffers that the program writes back."""

    calls: tuple[Call, ...]
    inputs: tuple[str, ...]
    stored: Mapping[str, tuple[str, str]]
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    types: Mapping[str, str]
    changed: frozenset[str]


@dataclass(frozen=True)
class Payload:
    """Where a tensor's numbers are: a file of the archive, and how they are laid out in it."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def parse_program(value: Any) -> ExportedGraph:
    """The program in a JSON value; raises LoadError where it is not built as torch.export writes it."""
    try:
        return _program(value)
    except LoadError:  # which is a ValueError
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise LoadError(f"its program is damaged ({type(error).__name__}: {str(error)[:80]})") from error


def _program(value: Any) -> ExportedGraph:
    module = value["graph_module"]
    graph, signature = module["graph"], module["signature"]
    inputs = [_name(each) for each in graph["inputs"]]
    calls = tuple(map(_call, graph["nodes"]))
    names = [*inputs, *(name for call in calls for each in call.outputs for name in names_in(each))]
    repeated = twice(names)
    if repeated is not None:
        raise ambiguous(f"two values of the program are called {repeated[:80]!r}")
    stored: dict[str, tuple[str, str]] = {}
    for spec in signature["input_specs"]:
        kind, detail = _only(spec)
        if kind in ("parameter", "buffer", "tensor_constant"):
            stored[_text(detail["arg"]["name"])] = (kind, _text(detail[f"{kind}_name"]))
    outputs: list[str] = []
    changed: set[str] = set()
    for spec in signature["output_specs"]:
        kind, detail = _only(spec)
        if kind == "user_output":
            outputs += names_in(_only(detail["arg"]))
        elif "mutation" in kind:
            changed.add(_text(detail.get("buffer_name", detail.get("parameter_name", ""))))
    shapes = {_text(name): _shape(each["sizes"]) for name, each in graph["tensor_values"].items()}
    types = {name: TYPES.get(each["dtype"], "unknown") for name, each in graph["tensor_values"].items()}
    return ExportedGraph(calls, tuple(inputs), stored, tuple(outputs), shapes, types, frozenset(changed))


def _call(node: Any) -> Call:
    arguments = tuple((_text(each["name"]), _only(each["arg"])) for each in node["inputs"])
    repeated = twice(name for name, _ in arguments if name)
    if repeated is not None:
        raise ambiguous(f"an operation has two arguments called {repeated[:80]!r}")
    return Call(_text(node["target"]), arguments, tuple(map(_only, node["outputs"])))


def names_in(argument: Argument) -> list[str]:
    """The names of the values in an argument that is an output."""
    kind, value = argument
    if kind in ("as_tensor", "as_token", "as_custom_obj"):
        return [_text(value["name"])]
    if kind == "as_tensors":
        return [_text(each["name"]) for each in value]
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return [_text(value["as_name"])] if "as_name" in value else []
    if kind == "as_optional_tensors":
        return [_text(each["as_tensor"]["name"]) for each in value if "as_tensor" in each]
    return []


def parse_payloads(value: Any) -> dict[str, Payload]:
    """The tensors that a list of an archive names, without those that are pickled; raises LoadError."""
    try:
        entries = {_text(name): each for name, each in value["config"].items()}
        found = {name: _payload(each) for name, each in entries.items() if each["use_pickle"] is False}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LoadError(
            f"its list of tensors is damaged ({type(error).__name__}: {str(error)[:80]})"
        ) from error
    types: dict[str, str] = {}
    for each in found.values():
        if types.setdefault(each.file, each.dtype) != each.dtype:
            raise ambiguous(f"the numbers in {each.file[:80]!r} are declared to be of two types")
    return found


def _payload(entry: Any) -> Payload:
    meta = entry["tensor_meta"]
    shape, strides = (tuple(_whole(each["as_int"]) for each in meta[key]) for key in ("sizes", "strides"))
    is_plain = meta["layout"] == _STRIDED
    dtype = TYPES.get(meta["dtype"], "unknown") if is_plain else "not strided"
    return Payload(_text(entry["path_name"]), dtype, shape, strides, _whole(meta["storage_offset"]["as_int"]))


# ---------------------------------------------------------------------- pieces of JSON


def _only(value: Any) -> Argument:
    """The kind and the value of a union, which has just one."""
    ((kind, inner),) = value.items()
    return kind, inner


def _name(value: Any) -> str:
    names = names_in(_only(value))
    return names[0] if names else ""


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME:
        raise TypeError("expected a name")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**63:
        raise TypeError("expected a whole number")
    return value


def _shape(sizes: Any) -> Shape:
    """Lengths: numbers, and the text of an expression for those not known in advance."""

    def length(size: Any) -> int | str:
        kind, value = _only(size)
        return _whole(value) if kind == "as_int" else _text(value["expr_str"])

    lengths = tuple(map(length, sizes))
    known = [each for each in lengths if isinstance(each, int)]
    if min(known, default=0) < 0 or math.prod(known) >= 2**63:
        raise ValueError("a shape")
    return lengths
