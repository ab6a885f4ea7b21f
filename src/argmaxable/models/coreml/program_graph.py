"""A Core ML program as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

Most programs compute in float16. Ranges that rounding to float16 can leave, such as a norm's or a mean's, are
then not claimed. What is not understood becomes `coreml:…`, which ends every walk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from argmaxable.models.coreml.program import MilProgram, ProgramStep, ProgramTensor, ProgramValue
from argmaxable.models.coreml.weights import CASTS, MilConstant, MilWeights
from argmaxable.models.graph.nodes import Attribute, Graph, Node
from argmaxable.models.graph.translation import NotTranslated

# Functions of each entry whose range rounding to float16 does not leave, and those for which it does.
_EXACT = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softsign": "Softsign", "abs": "Abs",
          "identity": "Identity", "erf": "Erf"}  # fmt: skip
_ROUNDED = {
    "gelu": "Gelu",
    "silu": "Swish",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "softplus": "Softplus",
}
_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "real_div": "Div", "maximum": "Max", "minimum": "Min"}
_REDUCING = {"reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}
_CHOOSING = frozenset({"slice_by_index", "slice_by_size", "gather", "gather_along_axis", "gather_nd", "tile"})


@dataclass
class _Parts:
    """The graph under construction. `stored` are names of constants and of what only casts them."""

    constants: dict[str, MilConstant] = field(default_factory=dict)
    types: dict[str, ProgramTensor] = field(default_factory=dict)
    values: dict[str, ProgramValue] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, op: str, inputs: tuple[str, ...], output: str, **attributes: Attribute) -> None:
        self.nodes.append(Node(op, inputs, (output,), attributes))


@dataclass(frozen=True)
class _Given:
    """One operation with what its parameters stand for."""

    parts: _Parts
    step: ProgramStep

    @property
    def output(self) -> str:
        return self.step.outputs[0][0]

    @property
    def is_rounded(self) -> bool:
        """Whether its result is anything but float32."""
        tensor = self.step.outputs[0][1]
        return tensor is None or tensor.dtype != "float32"

    def name(self, parameter: str) -> str:
        """The tensor that a parameter is; a value that stands there gets a name of its own."""
        found = self.step.inputs.get(parameter, ())
        if len(found) != 1:
            raise NotTranslated(parameter)
        if isinstance(found[0], str):
            return found[0]
        name = f"{self.output}_{parameter}"
        if name in self.parts.types or name in self.parts.constants:
            raise NotTranslated(parameter)
        _add_constant(self.parts, name, found[0])
        return name

    def has(self, parameter: str) -> bool:
        return bool(self.step.inputs.get(parameter))

    def value(self, parameter: str) -> ProgramValue | None:
        found = self.step.inputs.get(parameter, ())
        if len(found) != 1:
            return None
        return self.parts.values.get(found[0]) if isinstance(found[0], str) else found[0]

    def integers(self, parameter: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        value = self.value(parameter)
        numbers = None if value is None else value.numbers
        if numbers is None:
            if default is None or self.has(parameter):
                raise NotTranslated(parameter)
            return default
        if any(number != int(number) for number in numbers):
            raise NotTranslated(parameter)
        return tuple(map(int, numbers))

    def flag(self, parameter: str) -> int:
        return int(any(self.integers(parameter, (0,))))

    def text(self, parameter: str, default: str) -> str:
        value = self.value(parameter)
        texts = None if value is None else value.texts
        if texts is None and self.has(parameter):
            raise NotTranslated(parameter)
        return texts[0] if texts else default

    def shape(self, name: str) -> tuple[int, ...]:
        tensor = self.parts.types.get(name)
        if tensor is None:
            raise NotTranslated("shape")
        return tensor.shape


def translate(program: MilProgram, weights: Path) -> tuple[Graph, MilWeights, list[tuple[str, ...]]]:
    """The program's graph, what reads its constants, and the labels that it classifies with."""
    parts = _Parts()
    for name, tensor in program.inputs.items():
        if tensor is not None:
            parts.types[name] = tensor
    for step in program.steps:
        for name, tensor in step.outputs:
            if tensor is not None:
                parts.types[name] = tensor
        if step.kind == "const" and step.value is not None and len(step.outputs) == 1:
            _add_constant(parts, step.outputs[0][0], step.value)
        elif step.outputs:
            _add(parts, step)
    scalars = {
        name: value.numbers[0]
        for name, value in parts.values.items()
        if value.numbers and len(value.numbers) == 1
    }
    shapes = {name: tensor.shape for name, tensor in parts.types.items() if tensor.dtype != "text"}
    graph = Graph(
        nodes=tuple(parts.nodes),
        outputs=tuple(dict.fromkeys(program.outputs)),
        constants={name: constant.tensor.shape for name, constant in parts.constants.items()},
        scalars=scalars,
        types={name: constant.tensor.dtype for name, constant in parts.constants.items()},
        shapes={name: shape for name, shape in shapes.items() if name not in parts.constants},
    )
    return graph, MilWeights(parts.constants, weights), parts.labels


def _add_constant(parts: _Parts, name: str, value: ProgramValue) -> None:
    parts.values[name] = value
    is_stored = value.offset is not None or value.numbers is not None
    if (
        value.tensor.dtype
        and value.tensor.dtype != "text"
        and is_stored
        and min(value.tensor.shape, default=0) >= 0
    ):
        parts.constants[name] = MilConstant(value.tensor, value.offset, value.numbers)


def _add(parts: _Parts, step: ProgramStep) -> None:
    given = _Given(parts, step)
    before = len(parts.nodes)
    translation = _TRANSLATIONS.get(step.kind)
    try:
        if translation is None:
            raise NotTranslated(step.kind)
        translation(given)
    except NotTranslated:
        del parts.nodes[before:]
        names = tuple(each for found in step.inputs.values() for each in found if isinstance(each, str))
        parts.nodes.append(Node(f"coreml:{step.kind}", names, tuple(name for name, _ in step.outputs), {}))


# ---------------------------------------------------------------------- linear layers


def _linear(given: _Given) -> None:
    product = f"{given.output}\0product" if given.has("bias") else given.output
    given.parts.add("FusedMatMul", (given.name("x"), given.name("weight")), product, transB=1)
    if given.has("bias"):
        given.parts.add("Add", (product, given.name("bias")), given.output)


def _matmul(given: _Given) -> None:
    left, right = given.name("x"), given.name("y")
    if left in given.parts.constants:
        raise NotTranslated("place of the weight")
    given.parts.add(
        "FusedMatMul",
        (left, right),
        given.output,
        transA=given.flag("transpose_x"),
        transB=given.flag("transpose_y"),
    )


def _convolution(given: _Given) -> None:
    kind, pads = given.text("pad_type", "valid"), given.integers("pad", ())
    if kind not in ("valid", "custom", "same") or (kind == "custom" and any(pads)):
        raise NotTranslated("pad")
    names = [given.name("x"), given.name("weight")]
    names += [given.name("bias")] if given.has("bias") else []
    (groups,) = given.integers("groups", (1,)) or (0,)
    given.parts.add("Conv", tuple(names), given.output, group=groups)


def _binary(given: _Given) -> None:
    names = (given.name("x"), given.name("y"))
    is_product = given.step.kind in ("mul", "real_div") and not given.parts.constants.keys() & set(names)
    if given.is_rounded and is_product:  # a hard swish written out may round to less than its minimum
        raise NotTranslated("float16")
    given.parts.add(_BINARY[given.step.kind], names, given.output)


# ---------------------------------------------------------------------- along an axis


def _softmax(given: _Given) -> None:
    (axis,) = given.integers("axis", (-1,)) or (0,)
    given.parts.add("Softmax", (given.name("x"),), given.output, axis=axis, opset=13)


def _argmax(given: _Given) -> None:
    (axis,) = given.integers("axis", (-1,)) or (0,)
    given.parts.add("ArgMax", (given.name("x"),), given.output, axis=axis)


def _reduction(given: _Given) -> None:
    if given.is_rounded and given.step.kind == "reduce_mean":
        raise NotTranslated("float16")  # the mean of numbers up to 6 may round to more than 6
    axes = given.integers("axes")
    op, keepdims = _REDUCING[given.step.kind], given.flag("keep_dims")
    given.parts.add(op, (given.name("x"),), given.output, axes=axes, keepdims=keepdims)


def _norm(given: _Given) -> None:
    epsilon = given.value("epsilon")
    known = epsilon is not None and epsilon.numbers is not None and min(epsilon.numbers, default=-1.0) >= 0
    axes, rank = given.integers("axes"), len(given.shape(given.name("x")))
    is_last = axes in ((-1,), (rank - 1,))
    if given.is_rounded or not known or not is_last or not given.has("gamma"):
        raise NotTranslated("axes")
    names = (given.name("x"), given.name("gamma"), *([given.name("beta")] if given.has("beta") else []))
    given.parts.add("LayerNormalization", names, given.output, axis=-1)


# ---------------------------------------------------------------------- layout


def _reshape(given: _Given) -> None:
    shape = given.integers("shape", ())
    if shape and 0 not in shape:
        given.parts.add("Reshape", (given.name("x"),), given.output, shape=shape)
    else:
        given.parts.add("Reshape", (given.name("x"),), given.output)


def _transpose(given: _Given) -> None:
    order = given.integers("perm")
    places = tuple(axis % max(len(order), 1) for axis in order)
    if sorted(places) != list(range(len(order))):
        raise NotTranslated("perm")
    given.parts.add("Transpose", (given.name("x"),), given.output, perm=places)


def _squeeze(given: _Given) -> None:
    op = {"squeeze": "Squeeze", "expand_dims": "Unsqueeze"}[given.step.kind]
    axes = given.integers("axes")
    if not axes:
        raise NotTranslated("axes")
    given.parts.add(op, (given.name("x"),), given.output, axes=axes)


def _chosen(given: _Given) -> None:
    given.parts.add("GatherND", (given.name("x"),), given.output)


def _max_pool(given: _Given) -> None:
    given.parts.add("MaxPool", (given.name("x"),), given.output)


# ---------------------------------------------------------------------- numbers


def _exact(given: _Given) -> None:
    given.parts.add(_EXACT[given.step.kind], (given.name("x"),), given.output)


def _rounded(given: _Given) -> None:
    if given.is_rounded and given.step.kind not in ("exp", "log"):
        raise NotTranslated("float16")
    given.parts.add(_ROUNDED[given.step.kind], (given.name("x"),), given.output)


def _relu6(given: _Given) -> None:
    given.parts.add("Clip", (given.name("x"),), given.output, min=0.0, max=6.0)


def _cast(given: _Given) -> None:
    number = CASTS.get(given.text("dtype", ""))
    source = given.parts.types.get(given.name("x"))
    if number is None or source is None or not source.dtype.startswith("float"):
        raise NotTranslated("dtype")
    given.parts.add("Cast", (given.name("x"),), given.output, to=number)


def _classify(given: _Given) -> None:
    """The name of the largest, and a dictionary of the probabilities."""
    value = given.value("classes")
    if value is not None and value.texts:
        given.parts.labels.append(value.texts)
    outputs = [name for name, _ in given.step.outputs]
    if len(outputs) != 2:
        raise NotTranslated("classify")
    given.parts.add("coreml:classify", (given.name("probabilities"),), outputs[0])
    given.parts.add("Identity", (given.name("probabilities"),), outputs[1])


_TRANSLATIONS: dict[str, Callable[[_Given], None]] = {
    **{
        "linear": _linear,
        "matmul": _matmul,
        "conv": _convolution,
        "softmax": _softmax,
        "reduce_argmax": _argmax,
    },
    **{"layer_norm": _norm, "reshape": _reshape, "transpose": _transpose, "squeeze": _squeeze},
    **{"expand_dims": _squeeze, "max_pool": _max_pool, "relu6": _relu6, "cast": _cast, "classify": _classify},
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_REDUCING, _reduction),
    **dict.fromkeys(_CHOOSING, _chosen),
    **dict.fromkeys(_EXACT, _exact),
    **dict.fromkeys(_ROUNDED, _rounded),
}
