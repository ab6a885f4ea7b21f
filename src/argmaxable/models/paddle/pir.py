"""PaddlePaddle 3's programs in JSON (inference.json), as the `Program` that older ones are parsed into.

Operations have other names there, their inputs have no slots, and lists of axes are values that other
operations make. What is unknown keeps its new name, which nothing translates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json
from argmaxable.models.paddle.program import Operation, Program, TensorType, Value, Variable

MAGIC = rb'\s*\{\s*"base_code"\s*:\s*\{\s*"magic"\s*:\s*"pir"'
_PREFIX = "1."
_PARAMETER = "p"
_LOD_TENSOR = 7
# PaddlePaddle's older numbers of the data types.
_TYPES = {
    **{"0.t_bool": 0, "0.t_i16": 1, "0.t_i32": 2, "0.t_i64": 3, "0.t_f16": 4, "0.t_f32": 5, "0.t_f64": 6},
    **{"0.t_ui8": 20, "0.t_i8": 21, "0.t_bf16": 22},
}
_DTYPES = {"float16": 4, "float32": 5, "float64": 6, "bfloat16": 22, "int32": 2, "int64": 3}
_LONGEST_LIST = 64


@dataclass(frozen=True)
class _Call:
    """An operation as it stands in the file. Inputs are names of values, lists of them, or ""."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Value | None]


@dataclass
class _State:
    """What is known while the operations are read one after the other.

    `constants` are values of lists of numbers, `lists` values that stand for several, `columns` parameters
    that were reshaped to lie along the channels.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    constants: dict[str, tuple[float, ...]] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def rank(self, name: str) -> int | None:
        variable = self.variables.get(name)
        return None if variable is None or variable.tensor is None else len(variable.tensor.shape)

    def is_parameter(self, name: str) -> bool:
        return name in self.variables and self.variables[name].is_persistable


def parse_pir(data: bytes) -> Program:
    """The program in these bytes; raises LoadError, also for one with control flow."""
    root = parse_json(data, "the program")
    try:
        regions = root["program"]["regions"]
        (block,) = regions[0]["blocks"]
        state = _State()
        for each in block["ops"]:
            _read(state, each)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"its operations can't be understood ({type(error).__name__}: {error})") from error
    return Program(state.variables, tuple(state.operations))


def _read(state: _State, record: dict[str, Any]) -> None:
    if record.get("regions"):
        raise LoadError("has loops or branches, whose variables can't be followed here")
    kind = record["#"]
    if kind == _PARAMETER:
        name = record["A"][3]
        if not isinstance(name, str) or not name or "\0" in name or name.startswith("%"):
            raise LoadError("a parameter has no name")
        if name in state.variables:
            raise ambiguous(f"two variables are called {name[:80]!r}")
        _declare(state, record["O"], name, is_persistable=True)
        return
    inputs = tuple(_name(state, each) for each in record["I"])
    outputs = []
    for each in record["O"]:
        name = f"%{int(each['%'])}"
        _declare(state, each, name, is_persistable=False)
        outputs.append(name)
    attributes = {}
    for each in record["A"]:
        if each["N"] in attributes:
            raise ambiguous(f"a {kind[:80]} has the attribute {each['N'][:80]!r} twice")
        attributes[each["N"]] = _value(each["AT"])
    _add(state, _Call(kind.removeprefix(_PREFIX), inputs, tuple(outputs), attributes))


def _declare(state: _State, record: dict[str, Any], name: str, *, is_persistable: bool) -> None:
    """A value's number stands for one name, and what is declared of it."""
    number = record["%"]
    if not isinstance(number, int) or number in state.names:
        raise ambiguous(f"two values have the number {number!r:.20}")
    state.names[number] = name
    type_ = record.get("TT") or {}
    tensor = None
    if type_.get("#") in ("0.t_dtensor", "0.t_dense"):
        element, shape = type_["D"][:2]
        if not all(type(length) is int for length in shape):
            raise LoadError(f"{name[:80]!r} has a shape that is not a list of whole numbers")
        tensor = TensorType(_TYPES.get(element["#"], -1), tuple(shape))
    state.variables[name] = Variable(name, _LOD_TENSOR, tensor, is_persistable)


def _name(state: _State, record: dict[str, Any]) -> str:
    number = record["%"]
    if number == 0:  # an input that is left out
        return ""
    if number not in state.names:
        raise LoadError(f"the value {number!r:.20} is used before it is made")
    return state.names[number]


def _value(record: dict[str, Any]) -> Value | None:
    kind: str = record["#"]
    data: Any = record.get("D")
    if kind == "0.a_array":
        items = [each.get("D") for each in data[: _LONGEST_LIST + 1]]
        is_short = len(items) <= _LONGEST_LIST and all(type(each) is int for each in items)
        return tuple(items) if is_short else None
    if kind == "1.a_intarray" and all(type(each) is int for each in data):
        return tuple(data)
    if kind in ("0.a_i32", "0.a_i64") and type(data) is int:
        return data
    if kind in ("0.a_f32", "0.a_f64") and isinstance(data, int | float):
        return float(data)
    if kind == "0.a_bool" and isinstance(data, bool):
        return data
    if kind == "1.a_dtype" and isinstance(data, str):
        return _DTYPES.get(data, -1)
    if kind == "1.a_scalar" and isinstance(data, int | float):
        return float(data)
    return data if kind == "0.a_str" and isinstance(data, str) else None


# ---------------------------------------------------------------------- the same in older operations


def _add(state: _State, call: _Call) -> None:
    value = call.attributes.get("value")
    if call.kind == "full_int_array" and isinstance(value, tuple):
        state.constants[call.outputs[0]] = value
    elif call.kind == "full" and isinstance(value, int | float):
        state.constants[call.outputs[0]] = (float(value),)
    elif call.kind == "0.combine":
        state.lists[call.outputs[0]] = call.inputs
    if call.kind == "reshape" and _lies_along_channels(state, call):
        state.columns[call.outputs[0]] = call.inputs[0]
    changes = call.kind.endswith("_") and bool(call.inputs) and state.is_parameter(call.inputs[0])
    convert = None if changes else _CONVERSIONS.get(call.kind.removesuffix("_"))
    found = None if convert is None else convert(state, call)
    if found is None:
        slots = {f"input {place}": (name,) for place, name in enumerate(call.inputs) if name}
        found = Operation(f"pir:{call.kind}", slots, {"Out": call.outputs}, {})
    state.operations.append(found)


def _lies_along_channels(state: _State, call: _Call) -> bool:
    """Whether a list of numbers, one for each channel, is given axes of positions."""
    name, target = call.inputs[0], state.constants.get(call.inputs[1], ())
    variable = state.variables.get(name)
    is_list = variable is not None and variable.tensor is not None and len(variable.tensor.shape) == 1
    return is_list and state.is_parameter(name) and len(target) == 4 and (target[0], *target[2:]) == (1, 1, 1)


def _made(call: _Call, kind: str, inputs: Mapping[str, str | Sequence[str]], output: str = "Out", /,
          **attributes: Value | None) -> Operation:  # fmt: skip
    """An older operation; outputs behind the first, such as means, get a slot that nothing asks for."""
    slots = {
        slot: (names,) if isinstance(names, str) else tuple(names) for slot, names in inputs.items() if names
    }
    outputs = {output: call.outputs[:1]}
    if call.outputs[1:]:
        outputs["More"] = call.outputs[1:]
    return Operation(kind, slots, outputs, attributes)


def _matmul(_: _State, call: _Call) -> Operation:
    x, y = call.inputs
    transposed = {f"trans_{name}": call.attributes.get(f"transpose_{name}", False) for name in "xy"}
    return _made(call, "matmul_v2", {"X": x, "Y": y}, "Out", **transposed)


def _binary(kind: str) -> Callable[[_State, _Call], Operation]:
    def convert(state: _State, call: _Call) -> Operation:
        x, y = call.inputs
        if y in state.columns and kind == "elementwise_add":
            return _made(call, kind, {"X": x, "Y": state.columns[y]}, "Out", axis=1)
        return _made(call, kind, {"X": x, "Y": y}, "Out", axis=-1)

    return convert


def _convolution(_: _State, call: _Call) -> Operation:
    return _made(
        call, "conv2d", {"Input": call.inputs[0], "Filter": call.inputs[1]}, "Output", **call.attributes
    )


def _layer_norm(_: _State, call: _Call) -> Operation:
    names = dict(zip(("X", "Scale", "Bias"), call.inputs, strict=False))
    return _made(call, "layer_norm", names, "Y", **call.attributes)


def _unary(kind: str) -> Callable[[_State, _Call], Operation]:
    def convert(_: _State, call: _Call) -> Operation:
        return _made(call, kind, {"X": call.inputs[0]}, "Out", **call.attributes)

    return convert


def _with_axes(kind: str, name: str) -> Callable[[_State, _Call], Operation | None]:
    """An operation whose axes are a value."""

    def convert(state: _State, call: _Call) -> Operation | None:
        axes = state.constants.get(call.inputs[1]) if len(call.inputs) > 1 else None
        if axes is None:
            return None
        numbers: Value = tuple(map(int, axes)) if name != "axis" else int(axes[0])
        more = {
            "keep_dim": call.attributes.get("keepdim", False),
            "flatten": call.attributes.get("flatten", False),
        }
        return _made(call, kind, {"X": call.inputs[0]}, "Out", **{name: numbers, **more})

    return convert


def _mean(_: _State, call: _Call) -> Operation:
    axes = call.attributes.get("axis", ())
    return _made(
        call,
        "reduce_mean",
        {"X": call.inputs[0]},
        "Out",
        dim=axes,
        keep_dim=call.attributes.get("keepdim", False),
    )


def _transpose(_: _State, call: _Call) -> Operation:
    return _made(call, "transpose2", {"X": call.inputs[0]}, "Out", axis=call.attributes.get("perm", ()))


def _flatten(state: _State, call: _Call) -> Operation:
    rank, stop = state.rank(call.inputs[0]), call.attributes.get("stop_axis", 1)
    is_last = rank is not None and stop == rank - 1
    start = call.attributes.get("start_axis", 1)
    return _made(
        call,
        "flatten_contiguous_range",
        {"X": call.inputs[0]},
        "Out",
        start_axis=start,
        stop_axis=-1 if is_last else stop,
    )


def _cast(state: _State, call: _Call) -> Operation:
    variable = state.variables.get(call.inputs[0])
    given = variable.tensor.number if variable is not None and variable.tensor is not None else -1
    return _made(
        call, "cast", {"X": call.inputs[0]}, "Out", in_dtype=given, out_dtype=call.attributes.get("dtype", -1)
    )


def _scale(state: _State, call: _Call) -> Operation | None:
    factor = state.constants.get(call.inputs[1]) if len(call.inputs) > 1 else None
    if factor is None or len(factor) != 1:
        return None
    return _made(
        call,
        "scale",
        {"X": call.inputs[0]},
        "Out",
        scale=float(factor[0]),
        bias=call.attributes.get("bias", 0.0),
    )


def _dropout(_: _State, call: _Call) -> Operation:
    mode, is_test = call.attributes.get("mode", ""), call.attributes.get("is_test", False)
    return _made(call, "dropout", {"X": call.inputs[0]}, "Out", is_test=is_test, dropout_implementation=mode)


def _joined(kind: str) -> Callable[[_State, _Call], Operation | None]:
    def convert(state: _State, call: _Call) -> Operation | None:
        names = state.lists.get(call.inputs[0])
        return None if names is None else _made(call, kind, {"X": names})

    return convert


def _fetch(_: _State, call: _Call) -> Operation:
    return Operation("fetch", {"X": call.inputs[:1]}, {"Out": call.outputs}, {})


def _feed(_: _State, call: _Call) -> Operation:
    return Operation("feed", {}, {"Out": call.outputs}, {})


_CONVERSIONS: dict[str, Callable[[_State, _Call], Operation | None]] = {
    **{"matmul": _matmul, "conv2d": _convolution, "layer_norm": _layer_norm, "pool2d": _unary("pool2d")},
    **{"add": _binary("elementwise_add"), "multiply": _binary("elementwise_mul")},
    **{"maximum": _binary("elementwise_max"), "minimum": _binary("elementwise_min")},
    **{
        "softmax": _unary("softmax"),
        "log_softmax": _unary("log_softmax"),
        "argmax": _with_axes("arg_max", "axis"),
    },
    **{"reshape": lambda _, call: _made(call, "reshape2", {"X": call.inputs[0]})},
    **{"squeeze": _with_axes("squeeze2", "axes"), "unsqueeze": _with_axes("unsqueeze2", "axes")},
    **{"max": _with_axes("reduce_max", "dim"), "min": _with_axes("reduce_min", "dim"), "mean": _mean},
    **{"transpose": _transpose, "flatten": _flatten, "cast": _cast, "scale": _scale, "dropout": _dropout},
    **{"concat": _joined("concat"), "add_n": _joined("sum"), "fetch": _fetch, "data": _feed, "feed": _feed},
    **{
        each: _unary(each)
        for each in ("relu", "sigmoid", "tanh", "softsign", "exp", "log", "abs", "sqrt", "erf")
    },
    **{each: _unary(each) for each in ("gelu", "silu", "swish", "relu6", "assign", "share_data")},
    **{"hardswish": _unary("hard_swish"), "hardsigmoid": _unary("hard_sigmoid")},
}
