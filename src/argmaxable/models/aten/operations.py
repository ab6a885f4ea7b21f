"""What PyTorch's operations are called in ONNX, with which inputs and attributes.

An operation is translated only where it does exactly, or within the same bounds, what ONNX's does. For any
other NoCounterpart is raised, and the operation then ends every walk through the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argmaxable.models.aten.arguments import CallArguments, NoCounterpart
from argmaxable.models.aten.layout_operations import LAYOUT
from argmaxable.models.aten.stored import CAST_TYPES

if TYPE_CHECKING:
    from argmaxable.models.aten.tape import Tape

Result = str | tuple[str, ...]
Translation = Callable[["Tape", CallArguments], Result]

# Functions of each entry, without arguments that matter.
_PLAIN = {
    **{"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "abs": "Abs"},
    **{"sqrt": "Sqrt", "erf": "Erf", "gelu": "Gelu", "silu": "Swish", "mish": "Mish", "neg": "Neg"},
    **{"hardswish": "HardSwish", "selu": "Selu", "softsign": "Softsign", "reciprocal": "Reciprocal"},
}
_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min"}
_POOLS = {"avg_pool": "AveragePool", "max_pool": "MaxPool"}
# Calls of these give new numbers, never a view of what they are given.
_FRESH = frozenset(
    {
        *_PLAIN,
        *_BINARY,
        "linear",
        "addmm",
        "matmul",
        "mm",
        "bmm",
        "baddbmm",
        "embedding",
        "lstm",
        "gru",
        "cat",
    }
    | {"batch_norm", "layer_norm", "native_layer_norm", "rms_norm", "group_norm", "softmax", "log_softmax"}
    | {"_softmax", "_log_softmax", "conv1d", "conv2d", "conv3d", "_convolution", "convolution", "relu6"}
    | {"hardtanh", "clamp", "clamp_min", "clamp_max", "softplus", "elu", "celu", "hardsigmoid", "leaky_relu"}
    | {"rsub", "pow", "rsqrt", "mean", "sum", "amax", "amin", "argmax", "size", "dim", "clone", "stack"}
    | {"scaled_dot_product_attention", "arange", "ones", "zeros", "full", "tensor", "eq", "ne", "lt", "gt"}
    | {"le", "ge", "cumsum", "where", "masked_fill", "rand", "randn", "index", "index_select", "gather"}
    | {f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)}
    | {f"{kind}{n}d" for kind in _POOLS for n in (1, 2, 3)}
)


def is_fresh(op: str) -> bool:
    """Whether what an operation gives shares no numbers with what it is given."""
    return op in _FRESH


def translated(tape: Tape, arguments: CallArguments) -> Result:
    """The name or names of what an operation gives, after its nodes were added; raises NoCounterpart."""
    translation = TRANSLATIONS.get(arguments.op)
    if translation is None:
        raise NoCounterpart(arguments.op)
    return translation(tape, arguments)


# ---------------------------------------------------------------------- linear layers


def _linear(tape: Tape, given: CallArguments) -> str:
    x, weight, bias = given.bound("input", "weight", "bias")
    return _biased_product(tape, given.tensor(x), given.tensor(weight), bias, given)


def _biased_product(tape: Tape, x: str, weight: str, bias: Any, given: CallArguments) -> str:
    if tape.rank(weight) != 2:
        raise NoCounterpart("rank")
    rank = tape.rank(x)
    product = tape.add("FusedMatMul", (x, weight), rank, transB=1)
    return product if bias is None else tape.add("Add", (product, given.tensor(bias)), rank)


def _addmm(tape: Tape, given: CallArguments) -> str:
    bias, x, weight, beta, alpha = given.bound("self", "mat1", "mat2", beta=1, alpha=1)
    names = [given.tensor(each) for each in (x, weight, bias)]
    return tape.add("Gemm", names, 2, alpha=given.number(alpha), beta=given.number(beta))


def _matmul(tape: Tape, given: CallArguments) -> str:
    names = [given.tensor(each) for each in given.bound("self", "other")]
    ranks = [tape.rank(name) for name in names]
    rank = None if None in ranks else max(each or 0 for each in ranks)
    return tape.add("MatMul", names, rank if rank and min(each or 0 for each in ranks) > 1 else None)


def _mm(tape: Tape, given: CallArguments) -> str:
    return tape.add("Gemm", [given.tensor(each) for each in given.bound("self", "mat2")], 2)


_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation")


def _convolution(tape: Tape, given: CallArguments) -> str:
    if given.op in ("_convolution", "convolution"):
        x, weight, bias, _, padding, _, transposed, _, groups, *_ = given.bound(
            *_CONVOLUTION, "transposed", "output_padding", "groups", "benchmark", "deterministic",
            "cudnn_enabled", "allow_tf32",
        )  # fmt: skip
    else:
        x, weight, bias, _, padding, _, groups = given.bound(*_CONVOLUTION, groups=1)
        transposed = False
    name = given.tensor(weight)
    pads = (0,) if padding is None or padding == "valid" else given.integers(padding)
    if transposed is not False or groups != 1:
        raise NoCounterpart("groups")
    names = [given.tensor(x), name, *([] if bias is None else [given.tensor(bias)])]
    return tape.add("Conv", names, tape.rank(name), group=1, pads=pads)


# ---------------------------------------------------------------------- norms and softmax


def _layer_norm(tape: Tape, given: CallArguments) -> Result:
    x, shape, weight, bias, eps, *_ = given.bound(
        "input", "normalized_shape", "weight", "bias", eps=1e-5, cudnn_enable=True
    )
    if len(given.integers(shape)) != 1 or not given.number(eps) >= 0:
        raise NoCounterpart("normalized_shape")
    name = given.tensor(x)
    rank = tape.rank(name)
    gains = [None if each is None else given.tensor(each) for each in (weight, bias)]
    if gains[0] is None:
        if gains[1] is not None:
            raise NoCounterpart("bias")
        return tape.add("MeanVarianceNormalization", (name,), rank, axes=(-1,))
    names = [name, *(each for each in gains if each is not None)]
    output = tape.add("LayerNormalization", names, rank, axis=-1)
    if given.op == "layer_norm":
        return output
    return output, tape.add("aten:mean", (name,)), tape.add("aten:rstd", (name,))


def _rms_norm(tape: Tape, given: CallArguments) -> str:
    x, shape, weight, eps = given.bound("input", "normalized_shape", "weight", "eps")
    if len(given.integers(shape)) != 1 or weight is None or (eps is not None and not given.number(eps) >= 0):
        raise NoCounterpart("normalized_shape")
    name = given.tensor(x)
    return tape.add("RMSNormalization", (name, given.tensor(weight)), tape.rank(name), axis=-1)


def _softmax(tape: Tape, given: CallArguments) -> str:
    x, dim, *_ = given.bound("self", "dim", "half_to_float" if given.op.startswith("_") else "dtype")
    op = "LogSoftmax" if "log" in given.op else "Softmax"
    name = given.tensor(x)
    return tape.add(op, (name,), tape.rank(name), axis=given.integer(dim), opset=13)


# ---------------------------------------------------------------------- functions of each entry


def _plain(tape: Tape, given: CallArguments) -> str:
    (x, *_) = given.bound("self", *(["approximate"] if given.op == "gelu" else []))
    name = given.tensor(x)
    return tape.add(_PLAIN[given.op], (name,), tape.rank(name))


def _binary(tape: Tape, given: CallArguments) -> str:
    usual: dict[str, Any] = {}
    if given.op in ("add", "sub", "rsub"):
        usual = {"alpha": 1}
    elif given.op == "div":
        usual = {"rounding_mode": None}
    first, second, *setting = given.bound("self", "other", **usual)
    if setting != list(usual.values()):
        raise NoCounterpart("alpha")
    inputs = [given.tensor_or_number(tape, each) for each in (first, second)]
    if given.op == "rsub":
        inputs.reverse()
    return tape.add(_BINARY[given.op.removeprefix("r")], inputs, _broadcast_rank(tape, inputs))


def _broadcast_rank(tape: Tape, names: Sequence[str]) -> int | None:
    ranks = [tape.rank(name) for name in names]
    return None if None in ranks else max(each or 0 for each in ranks)


def _extreme(tape: Tape, given: CallArguments) -> Result:
    """max(x, y), or max(x, dim): the greatest entries and their places."""
    if given.op == "max" and len(given.positional) + len(given.named) > 1:
        second = given.positional[1] if len(given.positional) > 1 else given.named.get("dim")
        if isinstance(second, int):
            x, dim, keepdim = given.bound("self", "dim", keepdim=False)
            axis, keeps = given.integer(dim), int(given.flag(keepdim))
            name = given.tensor(x)
            rank = _reduced_rank(tape, name, 1, keeps)
            return (
                tape.add("ReduceMax", (name,), rank, axes=(axis,), keepdims=keeps),
                tape.add("ArgMax", (name,), rank, axis=axis, keepdims=keeps),
            )
    inputs = [given.tensor(each) for each in given.bound("self", "other")]
    return tape.add({"max": "Max", "min": "Min"}[given.op], inputs, _broadcast_rank(tape, inputs))


def _power(tape: Tape, given: CallArguments) -> str:
    x, exponent = given.bound("self", "exponent")
    name = given.tensor(x)
    return tape.add("Pow", (name, tape.number(given.number(exponent))), tape.rank(name))


def _rsqrt(tape: Tape, given: CallArguments) -> str:
    name = given.tensor(given.bound("self")[0])
    rank = tape.rank(name)
    return tape.add("Reciprocal", (tape.add("Sqrt", (name,), rank),), rank)


def _clip(tape: Tape, given: CallArguments) -> str:
    low: Any
    high: Any
    if given.op == "relu6":
        (x,), low, high = given.bound("self"), 0, 6
    elif given.op == "hardtanh":
        x, low, high = given.bound("self", min_val=-1, max_val=1)
    elif given.op == "clamp":
        x, low, high = given.bound("self", "min", "max")
    else:
        (x, limit), is_low = given.bound("self", given.op[-3:]), given.op == "clamp_min"
        low, high = (limit, None) if is_low else (None, limit)
    limits = {
        name: _outwards(given.number(limit), upwards=name == "max")
        for name, limit in (("min", low), ("max", high))
        if limit is not None
    }
    name = given.tensor(x)
    return tape.add("Clip", (name,), tape.rank(name), **limits)


def _outwards(number: float, *, upwards: bool) -> float:
    """A limit as it is in any type of floats: of those that bfloat16 does not hold a little beyond it."""
    if not math.isfinite(number) or math.frexp(number)[0] * 256 % 1 == 0:
        return number
    return number + abs(number) / 128 * (1 if upwards else -1)


def _softplus(tape: Tape, given: CallArguments) -> str:
    x, beta, threshold = given.bound("self", beta=1, threshold=20)
    if given.number(beta) <= 0 or given.number(threshold) < 0:
        raise NoCounterpart("beta")
    name = given.tensor(x)
    return tape.add("Softplus", (name,), tape.rank(name))


def _elu(tape: Tape, given: CallArguments) -> str:
    if given.op == "celu":
        x, alpha = given.bound("self", alpha=1.0)
    else:
        x, alpha, scale, input_scale = given.bound("self", alpha=1, scale=1, input_scale=1)
        if (scale, input_scale) != (1, 1):
            raise NoCounterpart("scale")
    name = given.tensor(x)
    return tape.add("Elu", (name,), tape.rank(name), alpha=_outwards(given.number(alpha), upwards=True))


def _hard_sigmoid(tape: Tape, given: CallArguments) -> str:
    name = given.tensor(given.bound("self")[0])
    return tape.add("HardSigmoid", (name,), tape.rank(name), alpha=1 / 6, beta=0.5)


def _where(tape: Tape, given: CallArguments) -> str:
    condition, first, second = given.bound("condition", "self", "other")
    inputs = [given.tensor(condition), *(given.tensor_or_number(tape, each) for each in (first, second))]
    return tape.add("Where", inputs, _broadcast_rank(tape, inputs))


# ---------------------------------------------------------------------- sums, means and pools


def _reduction(tape: Tape, given: CallArguments) -> str:
    op = {"mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin"}[given.op]
    more = {"dtype": None} if given.op in ("mean", "sum") else {}
    x, dim, keepdim, *dtype = given.bound("self", "dim", **{"keepdim": False, **more})
    if any(each is not None and given.cast_type(each) not in CAST_TYPES.values() for each in dtype):
        raise NoCounterpart("dtype")
    axes, keeps, name = given.integers(dim), int(given.flag(keepdim)), given.tensor(x)
    if not axes:
        raise NoCounterpart("dim")
    return tape.add(op, (name,), _reduced_rank(tape, name, len(axes), keeps), axes=axes, keepdims=keeps)


def _reduced_rank(tape: Tape, name: str, axes: int, keeps: int) -> int | None:
    rank = tape.rank(name)
    return None if rank is None else max(0, rank - (0 if keeps else axes))


def _argmax(tape: Tape, given: CallArguments) -> str:
    x, dim, keepdim = given.bound("self", "dim", keepdim=False)
    name, keeps = given.tensor(x), int(given.flag(keepdim))
    rank = _reduced_rank(tape, name, 1, keeps)
    return tape.add("ArgMax", (name,), rank, axis=given.integer(dim), keepdims=keeps)


def _adaptive_pool(tape: Tape, given: CallArguments) -> Result:
    x, sizes = given.bound("self", "output_size")
    name, is_max = given.tensor(x), "max" in given.op
    is_global = set(given.integers(sizes)) == {1}
    op = (
        f"Global{'Max' if is_max else 'Average'}Pool" if is_global else "MaxPool" if is_max else "AveragePool"
    )
    output = tape.add(op, (name,), int(given.op[-2]) + 2)
    return (output, tape.add("aten:indices", (name,))) if is_max else output


def _pool(tape: Tape, given: CallArguments) -> str:
    names = ("self", "kernel_size", "stride", "padding")
    rank = int(given.op[-2]) + 2
    if given.op.startswith("max"):
        x, *_ = given.bound(*names, "dilation", "ceil_mode")
        return tape.add("MaxPool", (given.tensor(x),), rank)
    x, kernel, *_, includes, divisor = given.bound(
        *names, ceil_mode=False, count_include_pad=True, divisor_override=None
    )
    if divisor is not None:
        raise NoCounterpart("divisor_override")
    size = given.integers(kernel)
    shape = size if len(size) == rank - 2 else size * (rank - 2)
    includes = int(given.flag(includes))
    return tape.add("AveragePool", (given.tensor(x),), rank, count_include_pad=includes, kernel_shape=shape)


def _lstm(tape: Tape, given: CallArguments) -> tuple[str, ...]:
    """Without projections, hidden states are a sigmoid times a tanh. They are the first two outputs."""
    x, _, weights, has_biases, layers, *rest = given.bound(
        "input",
        "hx",
        "params",
        "has_biases",
        "num_layers",
        "dropout",
        "train",
        "bidirectional",
        "batch_first",
    )
    ways = 2 if given.flag(rest[2]) else 1
    expected = given.integer(layers) * ways * (4 if given.flag(has_biases) else 2)
    if given.integer(layers) < 1 or len(given.tensors(weights)) != expected:
        raise NoCounterpart("projections")
    name = given.tensor(x)
    outputs = [tape.add("LSTM", (name,), tape.rank(name)), tape.add("LSTM", (name,))]
    return (*outputs, tape.add("aten:cell", (name,)))


TRANSLATIONS: Mapping[str, Translation] = {
    **LAYOUT,
    **dict.fromkeys(_PLAIN, _plain),
    **dict.fromkeys((*_BINARY, "rsub"), _binary),
    **dict.fromkeys(("max", "min"), _extreme),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "_convolution", "convolution"), _convolution),
    **dict.fromkeys(("softmax", "log_softmax", "_softmax", "_log_softmax"), _softmax),
    **dict.fromkeys(("layer_norm", "native_layer_norm"), _layer_norm),
    **dict.fromkeys(("relu6", "hardtanh", "clamp", "clamp_min", "clamp_max"), _clip),
    **dict.fromkeys(("mean", "sum", "amax", "amin"), _reduction),
    **dict.fromkeys(("elu", "celu"), _elu),
    **{f"adaptive_{kind}_pool{n}d": _adaptive_pool for kind in ("avg", "max") for n in (1, 2, 3)},
    **{f"{kind}{n}d": _pool for kind in _POOLS for n in (1, 2, 3)},
    **{"linear": _linear, "addmm": _addmm, "matmul": _matmul, "mm": _mm, "rms_norm": _rms_norm},
    **{"pow": _power, "rsqrt": _rsqrt, "softplus": _softplus, "hardsigmoid": _hard_sigmoid},
    **{"where": _where, "argmax": _argmax, "lstm": _lstm},
}
