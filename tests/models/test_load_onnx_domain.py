"""What the graph in front of a head proves about its features: never more than holds, and no less than said.

Every model here is run by onnxruntime on inputs from tiny to huge; its features must lie in the domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from norms import rounded
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.errors import LoadError
from argmaxable.models.finding import HeadInputs
from argmaxable.models.onnx.reader import find
from argmaxable.models.registry import ReadOptions

FEATURES, CLASSES = 8, 5
RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(FEATURES, CLASSES)).astype(np.float32)
GAIN, SHIFT = RNG.normal(size=(2, FEATURES)).astype(np.float32)
Constants = dict[str, Any]
# A fine grid for the minima of activation functions, and vectors from tiny to huge.
GRID = RNG.permutation(np.linspace(-6, 6, 4000 * FEATURES)).reshape(-1, FEATURES)
INPUTS = np.concatenate([GRID, *(RNG.normal(size=(50, FEATURES)) * 10.0**k for k in range(-4, 5))]).astype(
    np.float32
)


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


def build(nodes: Sequence[NodeProto], constants: Constants, *, features: str | None = "h") -> onnx.ModelProto:
    """A model of an input `x` (rows × features) with a head behind the tensor `features`, if there is one."""
    head = [] if features is None else [node("MatMul", f"{features} W", "y")]
    arrays = {"W": WEIGHT, **constants}
    graph = helper.make_graph(
        [*nodes, *head],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    # Exporters note down the shapes of all tensors; their number of axes is what is needed of them.
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=9))


def inputs_of(tmp_path: Path, model: onnx.ModelProto) -> HeadInputs:
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    inputs = find(tmp_path / "model.onnx", ReadOptions()).inputs
    assert inputs is not None
    return inputs


def features_of(model: onnx.ModelProto, name: str = "h") -> NDArray[np.float64]:
    """The vectors that reach the head for INPUTS (n × features)."""
    model.graph.output.append(helper.make_empty_tensor_value_info(name))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (features,) = session.run([name], {"x": INPUTS})
    return np.asarray(features, dtype=np.float64).reshape(-1, FEATURES)


def assert_inside(features: NDArray[np.float64], domain: Domain) -> None:
    """Up to the rounding of float32, in which the model is run."""
    if isinstance(domain, Box):
        slack = 1e-6 * np.abs(features) + 1e-7
        assert (features >= domain.lo - slack).all()
        assert (features <= domain.hi + slack).all()
        return
    assert isinstance(domain, LayerNorm | RMSNorm)
    z = (features - domain.shift) / domain.gain
    assert (np.linalg.norm(z, axis=1) <= math.sqrt(FEATURES) * (1 + 1e-5)).all()
    if isinstance(domain, LayerNorm):
        assert np.abs(z.sum(axis=1)).max() < 1e-3


def integers(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


# ---------------------------------------------------------------------- activations


@dataclass(frozen=True)
class Activation:
    """Nodes that make h from x, and the box that follows; `least` is the smallest value they reach."""

    name: str
    nodes: list[NodeProto]
    lo: float
    hi: float = math.inf
    constants: Constants = field(default_factory=dict)
    least: float | None = None


def number(value: float) -> NDArray[np.float32]:
    return np.array(value, dtype=np.float32)


SILU, GELU, MISH = -0.2784645, -0.1699712, -0.3088434
ERF = [node("Erf", "v", "e"), node("Add", "e one", "g")]
ACTIVATIONS = [
    Activation("relu", [node("Relu", "x", "h")], 0.0, least=0.0),
    Activation("sigmoid", [node("Sigmoid", "x", "h")], 0.0, 1.0),
    Activation("tanh", [node("Tanh", "x", "h")], -1.0, 1.0, least=-1.0),
    Activation("softplus", [node("Softplus", "x", "h")], 0.0),
    Activation("softsign", [node("Softsign", "x", "h")], -1.0, 1.0),
    Activation("softmax", [node("Softmax", "x", "h")], 0.0, 1.0),
    Activation("hard sigmoid", [node("HardSigmoid", "x", "h")], 0.0, 1.0, least=0.0),
    Activation("hard swish", [node("HardSwish", "x", "h")], -0.375, least=-0.375),
    Activation("mish", [node("Mish", "x", "h")], -0.3089, least=MISH),
    Activation("gelu", [node("Gelu", "x", "h")], -0.1701, least=GELU),
    Activation("tanh gelu", [node("Gelu", "x", "h", approximate="tanh")], -0.1701, least=-0.1700408),
    Activation(
        "quick gelu",
        [node("QuickGelu", "x", "h", domain="com.microsoft")],
        -0.27847 / 1.702,
        least=SILU / 1.702,
    ),
    Activation("elu", [node("Elu", "x", "h", alpha=0.5)], -0.5, least=-0.5),
    Activation("selu", [node("Selu", "x", "h")], -1.7581, least=-1.7580993),
    Activation("celu", [node("Celu", "x", "h", alpha=2.0)], -2.0, least=-2.0),
    Activation("thresholded", [node("ThresholdedRelu", "x", "h", alpha=0.5)], 0.0, least=0.0),
    Activation("abs", [node("Abs", "x", "h")], 0.0),
    Activation(
        "relu6", [node("Clip", "x zero six", "h")], 0.0, 6.0, {"zero": number(0), "six": number(6)}, 0.0
    ),
    Activation(
        "clip below",
        [helper.make_node("Clip", ["x", "two"], ["h"])],
        -2.0,
        math.inf,
        {"two": number(-2)},
        -2.0,
    ),
    Activation(
        "clip above", [helper.make_node("Clip", ["x", "", "two"], ["h"])], -math.inf, 2.0, {"two": number(2)}
    ),
    Activation("max", [node("Max", "x two", "h")], 2.0, math.inf, {"two": number(2)}, 2.0),
    Activation("min", [node("Min", "two x", "h")], -math.inf, 2.0, {"two": number(2)}),
    Activation("silu", [node("Sigmoid", "x", "g"), node("Mul", "x g", "h")], -0.27847, least=SILU),
    Activation(
        "silu, gate first", [node("Sigmoid", "x", "g"), node("Mul", "g x", "h")], -0.27847, least=SILU
    ),
    Activation(
        "swish with a factor",
        [node("Mul", "x two", "v"), node("Sigmoid", "v", "g"), node("Mul", "x g", "h")],
        -0.27847 / 2,
        constants={"two": number(2)},
        least=SILU / 2,
    ),
    Activation(
        "hard swish from a gate",
        [node("HardSigmoid", "x", "g", alpha=0.25, beta=0.5), node("Mul", "g x", "h")],
        -0.25,
        least=-0.25,
    ),
    Activation(
        "hard swish from relu6",
        [
            node("Add", "x three", "t"),
            node("Clip", "t zero six", "g"),
            node("Mul", "x g", "p"),
            node("Div", "p six", "h"),
        ],
        -0.375,
        constants={"three": number(3), "zero": number(0), "six": number(6)},
        least=-0.375,
    ),
    Activation(
        "mish written out",
        [node("Softplus", "x", "s"), node("Tanh", "s", "g"), node("Mul", "x g", "h")],
        -0.3089,
        least=MISH,
    ),
    Activation(
        "gelu as PyTorch writes it",
        [node("Div", "x root", "v"), *ERF, node("Mul", "x g", "p"), node("Mul", "p half", "h")],
        -0.24038 * math.sqrt(2) / 2,
        constants={"root": number(math.sqrt(2)), "one": number(1), "half": number(0.5)},
        least=GELU,
    ),
    Activation(
        "gelu as TensorFlow writes it",
        [node("Mul", "x root", "v"), *ERF, node("Mul", "half g", "k"), node("Mul", "x k", "h")],
        -0.24038 * math.sqrt(2) / 2,
        constants={"root": number(math.sqrt(0.5)), "one": number(1), "half": number(0.5)},
        least=GELU,
    ),
    Activation("square", [node("Mul", "x x", "h")], 0.0),
    Activation(
        "squeezed and excited",
        [node("Relu", "x", "r"), node("Neg", "x", "n"), node("Sigmoid", "n", "g"), node("Mul", "r g", "h")],
        0.0,
        least=0.0,
    ),
    Activation(
        "product of bounded",
        [node("Tanh", "x", "t"), node("Clip", "x zero six", "c"), node("Mul", "t c", "h")],
        -6.0,
        6.0,
        {"zero": number(0), "six": number(6)},
    ),
    Activation(
        "sum of bounded",
        [node("Tanh", "x", "t"), node("Relu", "x", "r"), node("Add", "t r", "h")],
        -1.0,
        least=-1.0,
    ),
    Activation(
        "difference", [node("Tanh", "x", "t"), node("Sigmoid", "x", "s"), node("Sub", "t s", "h")], -2.0, 1.0
    ),
    Activation(
        "negated",
        [node("Relu", "x", "r"), node("Mul", "r minus", "h")],
        -math.inf,
        0.0,
        {"minus": number(-0.5)},
    ),
    Activation(
        "divided",
        [node("Tanh", "x", "t"), node("Div", "t four", "h")],
        -0.25,
        0.25,
        {"four": number(4)},
        -0.25,
    ),
    Activation(
        "shifted",
        [node("Relu", "x", "r"), node("Add", "r c", "h")],
        -0.5,
        math.inf,
        {"c": np.linspace(-0.5, 1, FEATURES, dtype=np.float32)},
        -0.5,
    ),
    Activation(
        "one of two",
        [
            node("Relu", "x", "r"),
            node("Tanh", "x", "t"),
            node("Greater", "x zero", "c"),
            node("Where", "c r t", "h"),
        ],
        -1.0,
        math.inf,
        {"zero": number(0)},
        -1.0,
    ),
    Activation(
        "mean of two", [node("Relu", "x", "r"), node("Sigmoid", "x", "t"), node("Mean", "r t", "h")], 0.0
    ),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.name)
def test_an_activation_bounds_the_features(tmp_path: Path, activation: Activation) -> None:
    model = build(activation.nodes, activation.constants)
    domain = inputs_of(tmp_path, model).domain
    assert isinstance(domain, Box)
    assert (float(domain.lo), float(domain.hi)) == pytest.approx((activation.lo, activation.hi), rel=1e-4)
    features = features_of(model)
    assert_inside(features, domain)
    if activation.least is not None:
        assert features.min() == pytest.approx(activation.least, abs=1e-5)


UNBOUNDED = {
    "a linear layer": ([node("Gemm", "x V", "h")], "a linear layer (Gemm with V), which bounds nothing"),
    "a linear layer with bias": (
        [node("MatMul", "x V", "v"), node("Add", "v c", "h")],
        "a linear layer (MatMul with V), which bounds nothing",
    ),
    "a leaky activation": ([node("LeakyRelu", "x", "h")], "LeakyRelu, which bounds nothing"),
    "the input itself": ([node("Identity", "x", "h")], "the model's input"),
    "another gate": (
        [node("Sigmoid", "x", "g"), node("Gemm", "x V", "v"), node("Mul", "v g", "h")],
        "a linear layer (Gemm with V), which bounds nothing",
    ),
    "a residual": (
        [node("Tanh", "x", "t"), node("Add", "t x", "h")],
        "the model's input",
    ),
    "a negative factor": ([node("Elu", "x", "h", alpha=-1.0)], "Elu, which bounds nothing"),
    "a limit that varies": (
        [node("ReduceMin", "x", "m", keepdims=0), node("Clip", "x zero m", "h")],
        "Clip to limits that are not known",
    ),
    "limits that cross": ([node("Clip", "x one zero", "h")], "Clip to limits that are not known"),
    "rounding to whole numbers": (
        [node("Relu", "x", "r"), node("Cast", "r", "i", to=TensorProto.INT32), node("Cast", "i", "h", to=1)],
        "Cast of what may be whole numbers, which bounds nothing",
    ),
    "another gate's argument": (
        [
            node("Cast", "x", "i", to=TensorProto.INT32),
            node("Cast", "i", "t", to=1),
            node("Sigmoid", "t", "g"),
            node("Mul", "x g", "h"),
        ],
        "the model's input",
    ),
    "no zero point": (
        [node("QuantizeLinear", "x one", "q"), node("DequantizeLinear", "q one", "h")],
        "quantised in steps that are not known",
    ),
    "a quotient": (
        [node("Relu", "x", "r"), node("Tanh", "x", "t"), node("Div", "r t", "h")],
        "the quotient of (Relu) and (Tanh)",
    ),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_bounds_nothing_is_named(tmp_path: Path, name: str) -> None:
    nodes, words = UNBOUNDED[name]
    constants = {"V": np.eye(FEATURES, dtype=np.float32), "c": GAIN, "zero": number(0), "one": number(1)}
    inputs = inputs_of(tmp_path, build(nodes, constants))
    assert inputs.domain == Everywhere()
    assert inputs.description == words


# ---------------------------------------------------------------------- norms

EPSILON = number(1e-5)
MEAN = node("ReduceMean", "x last", "m")
CENTRED = [MEAN, node("Sub", "x m", "u")]
SQUARE = [node("Pow", "u two", "q"), node("ReduceMean", "q last", "v")]
ROOT = [node("Add", "v eps", "ve"), node("Sqrt", "ve", "s")]
AFFINE = [node("Mul", "z gain", "zg"), node("Add", "zg shift", "h")]
NORM_CONSTANTS: Constants = {
    "last": integers(-1),
    "second": integers(1),
    "two": number(2),
    "eps": EPSILON,
    "one": number(1),
    "zero": number(0),
    "gain": GAIN,
    "shift": SHIFT,
    "n": number(FEATURES),
    "inverse": number(1 / FEATURES),
    "row": integers(-1, 1),
}
JAX = [
    node("ReduceSum", "x second", "sum", keepdims=0),
    node("Mul", "sum inverse", "mean"),
    node("Reshape", "mean row", "m"),
    node("Sub", "x m", "u"),
    node("Mul", "x x", "xx"),
    node("ReduceSum", "xx second", "squares", keepdims=0),
    node("Mul", "squares inverse", "meansquare"),
    node("Mul", "mean mean", "squaredmean"),
    node("Sub", "meansquare squaredmean", "raw"),
    node("Max", "zero raw", "var"),
    node("Reshape", "var row", "v"),
    *ROOT,
    node("Reciprocal", "s", "r"),
    node("Mul", "r gain", "rg"),
    node("Mul", "u rg", "zg"),
    node("Add", "zg shift", "h"),
]
LAYER_NORMS = {
    "one operation": [node("LayerNormalization", "x gain shift", "h")],
    "one operation, axis given": [node("LayerNormalization", "x gain shift", "h", axis=1)],
    "PyTorch": [*CENTRED, *SQUARE, *ROOT, node("Div", "u s", "z"), *AFFINE],
    "square by multiplication": [
        *CENTRED,
        node("Mul", "u u", "q"),
        SQUARE[1],
        *ROOT,
        node("Div", "u s", "z"),
        *AFFINE,
    ],
    "reciprocal": [*CENTRED, *SQUARE, *ROOT, node("Reciprocal", "s", "r"), node("Mul", "u r", "z"), *AFFINE],
    "one over": [*CENTRED, *SQUARE, *ROOT, node("Div", "one s", "r"), node("Mul", "r u", "z"), *AFFINE],
    "divided sum": [
        node("ReduceSum", "x last", "sum"),
        node("Div", "sum n", "m"),
        node("Sub", "x m", "u"),
        *SQUARE,
        *ROOT,
        node("Div", "u s", "z"),
        *AFFINE,
    ],
    "jax": JAX,
}


@pytest.mark.parametrize("name", LAYER_NORMS)
def test_a_layer_norm_is_recognised_with_its_gain_and_shift(tmp_path: Path, name: str) -> None:
    model = build(LAYER_NORMS[name], NORM_CONSTANTS)
    inputs = inputs_of(tmp_path, model)
    assert inputs.description == "LayerNorm with its gain and shift"
    assert inputs.domain == rounded(LayerNorm, GAIN, SHIFT)
    assert_inside(features_of(model)[: len(GRID)], inputs.domain)


RMS = [node("Pow", "x two", "q"), node("ReduceMean", "q last", "v"), *ROOT]
RMS_NORMS = {
    "one operation": [helper.make_node("SimplifiedLayerNormalization", ["x", "gain"], ["h"], axis=-1)],
    "division": [*RMS, node("Div", "x s", "z"), node("Mul", "gain z", "h")],
    "reciprocal": [*RMS, node("Reciprocal", "s", "r"), node("Mul", "x r", "z"), node("Mul", "z gain", "h")],
    "one over": [*RMS, node("Div", "one s", "r"), node("Mul", "r x", "z"), node("Mul", "gain z", "h")],
}


@pytest.mark.parametrize("name", RMS_NORMS)
def test_an_rms_norm_is_recognised_with_its_gain(tmp_path: Path, name: str) -> None:
    model = build(RMS_NORMS[name], NORM_CONSTANTS)
    inputs = inputs_of(tmp_path, model)
    assert inputs.description == "RMSNorm with its gain"
    assert inputs.domain == rounded(RMSNorm, GAIN)
    assert_inside(features_of(model), inputs.domain)


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("SkipLayerNormalization", "a b gain shift", rounded(LayerNorm, GAIN, SHIFT)),
        ("SkipSimplifiedLayerNormalization", "a b gain", rounded(RMSNorm, GAIN)),
    ],
)
def test_a_norm_fused_with_a_sum_is_recognised(
    tmp_path: Path, op: str, inputs: str, expected: Domain
) -> None:
    nodes = [
        node("Unsqueeze", "x k", "a"),
        node("Neg", "a", "n"),
        node("Relu", "n", "b"),
        node(op, inputs, "h", domain="com.microsoft", epsilon=1e-5),
    ]
    model = build(nodes, {"gain": GAIN, "shift": SHIFT, "k": integers(0)})
    domain = inputs_of(tmp_path, model).domain
    assert domain == expected
    assert_inside(features_of(model)[: len(GRID)], domain)


def test_a_scaled_norm_has_a_scaled_gain(tmp_path: Path) -> None:
    nodes = [*RMS, node("Div", "x s", "z"), node("Mul", "gain z", "g"), node("Mul", "g factor", "h")]
    model = build(nodes, {**NORM_CONSTANTS, "factor": number(FEATURES**-0.5)})
    domain = inputs_of(tmp_path, model).domain
    assert domain == rounded(RMSNorm, GAIN.astype(float) * float(number(FEATURES**-0.5)))
    assert_inside(features_of(model), domain)


def test_a_norm_without_constants_has_a_gain_of_one(tmp_path: Path) -> None:
    model = build([*CENTRED, *SQUARE, *ROOT, node("Div", "u s", "h")], NORM_CONSTANTS)
    domain = inputs_of(tmp_path, model).domain
    assert domain == rounded(LayerNorm, 1.0, features=FEATURES)
    assert_inside(features_of(model)[: len(GRID)], domain)


@pytest.mark.parametrize(
    "nodes",
    [
        [*CENTRED, *SQUARE, node("Sqrt", "v", "s"), node("Div", "u s", "z"), *AFFINE],
        [*CENTRED, *SQUARE, *ROOT, node("Div", "x s", "z"), *AFFINE],
        [*CENTRED, node("Pow", "u one", "q"), SQUARE[1], *ROOT, node("Div", "u s", "z"), *AFFINE],
        [
            node("ReduceMean", "x first", "m"),
            node("Sub", "x m", "u"),
            node("Pow", "u two", "q"),
            node("ReduceMean", "q first", "v"),
            *ROOT,
            node("Div", "u s", "z"),
            *AFFINE,
        ],
        [
            node("ReduceSum", "x last", "sum"),
            node("Div", "sum two", "m"),
            node("Sub", "x m", "u"),
            *SQUARE,
            *ROOT,
            node("Div", "u s", "z"),
            *AFFINE,
        ],
        [*CENTRED, *SQUARE, node("Sub", "v eps", "ve"), ROOT[1], node("Div", "u s", "z"), *AFFINE],
    ],
    ids=["no epsilon", "another dividend", "no square", "over the rows", "no mean", "less epsilon"],
)
def test_what_is_almost_a_norm_is_none(tmp_path: Path, nodes: list[NodeProto]) -> None:
    assert inputs_of(tmp_path, build(nodes, {**NORM_CONSTANTS, "first": integers(0)})).domain == Everywhere()


def test_the_mean_is_only_taken_off_if_it_is_over_the_same_axis(tmp_path: Path) -> None:
    nodes = [
        node("ReduceMean", "x first", "m"),
        node("Sub", "x m", "u"),
        *SQUARE,
        *ROOT,
        node("Div", "u s", "z"),
        *AFFINE,
    ]
    model = build(nodes, {**NORM_CONSTANTS, "first": integers(0)})
    domain = inputs_of(tmp_path, model).domain
    assert domain == rounded(RMSNorm, GAIN, SHIFT)
    assert_inside(features_of(model), domain)


# ---------------------------------------------------------------------- seen through other operations

THROUGH: dict[str, tuple[list[NodeProto], Constants]] = {
    "reshape": ([node("Reshape", "a s", "h")], {"s": integers(-1, 2, FEATURES)}),
    "squeeze": ([node("Unsqueeze", "a k", "u"), node("Squeeze", "u k", "h")], {"k": integers(1)}),
    "squeeze from the end": (
        [node("Unsqueeze", "a k", "u"), node("Squeeze", "u k", "h")],
        {"k": integers(-2)},
    ),
    "transpose twice": ([node("Transpose", "a", "t"), node("Transpose", "t", "h")], {}),
    "transpose around a squeeze": (
        [
            node("Unsqueeze", "a k", "u"),
            node("Transpose", "u", "t", perm=[2, 1, 0]),
            node("Squeeze", "t k", "v"),
            node("Transpose", "v", "h", perm=[1, 0]),
        ],
        {"k": integers(1)},
    ),
    "a mean over rows": ([node("ReduceMean", "a k", "h")], {"k": integers(0)}),
    "a mean over rows, axis dropped": (
        [node("Unsqueeze", "a one", "u"), node("ReduceMean", "u one", "h", keepdims=0)],
        {"one": integers(1)},
    ),
    "the first row": (
        [node("Gather", "a k", "g"), node("Unsqueeze", "g k1", "h")],
        {"k": integers(0)[0], "k1": integers(0)},
    ),
    "some rows": ([node("Gather", "a k", "h")], {"k": integers(0, 3)}),
    "a slice of rows": (
        [node("Slice", "a s e k", "h")],
        {"s": integers(0), "e": integers(9), "k": integers(0)},
    ),
    "half of the rows": (
        [node("Slice", "a s e k", "b"), node("Split", "b", "h rest", num_outputs=2, axis=0)],
        {"s": integers(0), "e": integers(10), "k": integers(0)},
    ),
    "pooling": (
        [
            node("Transpose", "a", "t", perm=[1, 0]),
            node("Unsqueeze", "t k", "u"),
            node("GlobalAveragePool", "u", "p"),
            node("Flatten", "p", "h"),
        ],
        {"k": integers(0)},
    ),
    "dropout and cast": ([node("Dropout", "a", "d"), node("Cast", "d", "h", to=TensorProto.FLOAT)], {}),
}


@pytest.mark.parametrize("name", THROUGH)
def test_a_bound_for_all_entries_is_seen_through(tmp_path: Path, name: str) -> None:
    nodes, constants = THROUGH[name]
    model = build([node("Relu", "x", "a"), *nodes], constants)
    domain = inputs_of(tmp_path, model).domain
    assert domain == Box(0, math.inf)
    assert_inside(features_of(model), domain)


@pytest.mark.parametrize("name", sorted(set(THROUGH) - {"pooling"}))
def test_a_solid_is_seen_through_where_features_keep_their_order(tmp_path: Path, name: str) -> None:
    nodes, constants = THROUGH[name]
    model = build(
        [node("LayerNormalization", "x gain shift", "a"), *nodes], {"gain": GAIN, "shift": SHIFT, **constants}
    )
    domain = inputs_of(tmp_path, model).domain
    assert domain == rounded(LayerNorm, GAIN, SHIFT)
    assert_inside(features_of(model), domain)


SHUFFLED: dict[str, tuple[list[NodeProto], Constants]] = {
    "a transposed square": (
        [node("Slice", "a s e k", "c"), node("Transpose", "c", "h")],
        {"s": integers(0), "e": integers(FEATURES), "k": integers(0)},
    ),
    "cut and joined differently": (
        [
            node("Slice", "a s e k", "c"),
            node("Reshape", "c cut", "r"),
            node("Transpose", "r", "t", perm=[1, 0, 2]),
            node("Reshape", "t whole", "h"),
        ],
        {
            "s": integers(0),
            "e": integers(2),
            "k": integers(0),
            "cut": integers(2, 2, FEATURES // 2),
            "whole": integers(2, FEATURES),
        },
    ),
    "chosen features": ([node("Gather", "a k", "h", axis=1)], {"k": integers(*reversed(range(FEATURES)))}),
    "joined halves": (
        [node("Split", "a", "p q", num_outputs=2, axis=1), node("Concat", "q p", "h", axis=1)],
        {},
    ),
    "pooled with its neighbours": (
        [
            node("Unsqueeze", "a k", "u"),
            node("MaxPool", "u", "m", kernel_shape=[3], pads=[1, 1]),
            node("Squeeze", "m k", "h"),
        ],
        {"k": integers(1)},
    ),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_where_features_change_places_only_their_common_range_is_left(tmp_path: Path, name: str) -> None:
    nodes, constants = SHUFFLED[name]
    model = build(
        [node("LayerNormalization", "x gain shift", "a"), *nodes], {"gain": GAIN, "shift": SHIFT, **constants}
    )
    domain = inputs_of(tmp_path, model).domain
    reach = np.abs(GAIN) * math.sqrt(FEATURES - 1)
    assert isinstance(domain, Box)
    assert float(domain.lo) == pytest.approx((SHIFT - reach).min())
    assert float(domain.hi) == pytest.approx((SHIFT + reach).max())
    assert_inside(features_of(model), domain)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("ReduceMax", "a k", "h")], {"k": integers(0)}),
        (
            [
                node("Transpose", "a", "t"),
                node("Unsqueeze", "t k", "u"),
                node("GlobalMaxPool", "u", "p"),
                node("Squeeze", "p two", "h"),
            ],
            {"k": integers(0), "two": integers(2)},
        ),
    ],
    ids=["of rows", "of pooled rows"],
)
def test_the_largest_of_several_vectors_leaves_the_solid_but_not_each_features_range(
    tmp_path: Path, nodes: list[NodeProto], constants: Constants
) -> None:
    model = build(
        [node("LayerNormalization", "x gain shift", "a"), *nodes], {"gain": GAIN, "shift": SHIFT, **constants}
    )
    domain = inputs_of(tmp_path, model).domain
    assert isinstance(domain, Box)
    assert domain.hi == pytest.approx(SHIFT + np.abs(GAIN) * math.sqrt(FEATURES - 1), rel=1e-5)
    features = features_of(model)
    assert_inside(features, domain)
    z = (features - SHIFT) / GAIN
    assert np.linalg.norm(z) > math.sqrt(FEATURES)


def test_a_gain_for_each_row_is_no_gain_of_features(tmp_path: Path) -> None:
    nodes = [
        node("Slice", "x from to first", "c"),
        node("ReduceMean", "c last", "m"),
        node("Sub", "c m", "u"),
    ]
    nodes += [*SQUARE, *ROOT, node("Div", "u s", "z"), node("Mul", "z column", "h")]
    rows = {"from": integers(0), "to": integers(FEATURES), "first": integers(0), "column": GAIN[:, None]}
    domain = inputs_of(tmp_path, build(nodes, {**NORM_CONSTANTS, **rows})).domain
    reach = float(np.abs(GAIN).max()) * math.sqrt(FEATURES - 1)
    assert isinstance(domain, Box)
    assert (float(domain.lo.min()), float(domain.hi.max())) == pytest.approx((-reach, reach))


def test_a_sum_with_a_norm_has_a_range_for_each_feature(tmp_path: Path) -> None:
    nodes = [node("LayerNormalization", "x gain shift", "a"), node("Relu", "x", "r"), node("Add", "a r", "h")]
    model = build(nodes, {"gain": GAIN, "shift": SHIFT})
    inputs = inputs_of(tmp_path, model)
    assert isinstance(inputs.domain, Box)
    assert inputs.domain.lo == pytest.approx(SHIFT - np.abs(GAIN) * math.sqrt(FEATURES - 1), rel=1e-5)
    assert (inputs.domain.hi == math.inf).all()
    assert inputs.description == "the sum of (LayerNorm with its gain and shift) and (Relu)"
    assert_inside(features_of(model), inputs.domain)


def test_zeros_that_are_averaged_in_are_part_of_the_range(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", "x", "s"),
        node("Add", "s one", "a"),
        node("Unsqueeze", "a k", "u"),
        node("AveragePool", "u", "p", kernel_shape=[3], pads=[1, 1], count_include_pad=1),
        node("Squeeze", "p k", "h"),
    ]
    model = build(nodes, {"k": integers(1), "one": number(1)})
    domain = inputs_of(tmp_path, model).domain
    assert isinstance(domain, Box)
    assert domain.lo == 0
    assert 2 * (1 + 5 * 2.0**-24) <= domain.hi <= 2 * (1 + 2.0**-20)  # a mean of three is rounded
    assert_inside(features_of(model), domain)


def test_parts_that_are_joined_share_a_range(tmp_path: Path) -> None:
    half = FEATURES // 2
    nodes = [
        node("Split", "x", "p q", num_outputs=2, axis=1),
        node("Tanh", "p", "t"),
        node("Relu", "q", "r"),
        node("Concat", "t r", "h", axis=1),
    ]
    model = build(nodes, {})
    domain = inputs_of(tmp_path, model).domain
    assert domain == Box(-1, math.inf)
    features = features_of(model)
    assert_inside(features, domain)
    assert (features[:, half:] >= 0).all()


# ---------------------------------------------------------------------- recurrent, convolutional, quantised


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("outputs", [["a"], ["", "a"]], ids=["sequence", "last state"])
def test_a_recurrent_state_lies_between_minus_one_and_one(
    tmp_path: Path, op: str, outputs: list[str]
) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    weights = {
        name: RNG.normal(size=(1, gates * FEATURES, FEATURES)).astype(np.float32) for name in ("P", "R")
    }
    nodes = [
        node("Unsqueeze", "x k", "s"),
        helper.make_node(op, ["s", "P", "R"], outputs, hidden_size=FEATURES),
        node("Reshape", "a flat", "h"),
    ]
    model = build(nodes, {"k": integers(1), "flat": integers(-1, FEATURES), **weights})
    domain = inputs_of(tmp_path, model).domain
    assert domain == Box(-1, 1)
    assert_inside(features_of(model), domain)


@pytest.mark.parametrize(
    ("op", "outputs", "attributes", "inputs"),
    [
        ("LSTM", ["", "", "a"], {}, []),
        ("LSTM", ["a"], {"activations": ["Sigmoid", "Tanh", "Relu"]}, []),
        ("RNN", ["a"], {"activations": ["Relu"]}, []),
        ("GRU", ["a"], {}, ["", "", "start"]),
    ],
    ids=["cell state", "other activations", "a relu", "a state that is given"],
)
def test_other_states_are_not_bounded(
    tmp_path: Path, op: str, outputs: list[str], attributes: dict[str, Any], inputs: list[str]
) -> None:
    weights = dict.fromkeys(("P", "R"), np.ones((1, 4 * FEATURES, FEATURES), np.float32))
    cell = helper.make_node(op, ["s", "P", "R", *inputs], outputs, hidden_size=FEATURES, **attributes)
    nodes = [node("Unsqueeze", "x k", "s"), cell, node("Squeeze", "a k", "h")]
    assert inputs_of(tmp_path, build(nodes, {"k": integers(1), **weights})).domain == Everywhere()


def test_a_convolutions_features_lie_along_its_channels(tmp_path: Path) -> None:
    nodes = [
        node("LayerNormalization", "x gain shift", "a"),
        node("Unsqueeze", "a k", "u"),
        node("Transpose", "u", "t", perm=[0, 2, 1]),
        node("Conv", "t K", "y"),
    ]
    kernel = np.ascontiguousarray(WEIGHT.T[:, :, None])
    model = build(nodes, {"gain": GAIN, "shift": SHIFT, "k": integers(0), "K": kernel}, features=None)
    assert inputs_of(tmp_path, model).domain == rounded(LayerNorm, GAIN, SHIFT)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Relu", "x", "a")], Box(0, math.inf)),
        ([node("Tanh", "x", "a")], Box(-1 - 1 / 255, 1 + 1 / 255)),
        ([node("Sigmoid", "x", "g"), node("Mul", "x g", "a")], None),
    ],
    ids=["relu", "tanh", "silu"],
)
def test_dynamic_quantisation_moves_bounds_by_half_a_step(
    tmp_path: Path, nodes: list[NodeProto], expected: Box | None
) -> None:
    quantised = [
        *nodes,
        node("DynamicQuantizeLinear", "a", "q s z"),
        node("MatMulInteger", "q V z v0", "i"),
        node("Cast", "i", "f", to=TensorProto.FLOAT),
        node("Mul", "s vs", "scales"),
        node("Mul", "f scales", "y"),
    ]
    steps = RNG.integers(0, 255, size=(FEATURES, CLASSES)).astype(np.uint8)
    model = build(quantised, {"V": steps, "v0": np.array(7, np.uint8), "vs": number(0.01)}, features=None)
    domain = inputs_of(tmp_path, model).domain
    if expected is None:
        assert domain == Everywhere()
        return
    assert isinstance(domain, Box)
    assert (float(domain.lo), float(domain.hi)) == pytest.approx((float(expected.lo), float(expected.hi)))
    for name in ("q", "s", "z"):
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for scale in (0.1, 1.0, 10.0):
        _, q, s, z = session.run(None, {"x": INPUTS[:50] * np.float32(scale)})
        assert_inside((q.astype(float) - float(z)) * float(s), domain)


def test_static_quantisation_bounds_by_the_integers_there_are(tmp_path: Path) -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "h")]
    model = build(nodes, {"s": number(0.5), "z": np.array(10, np.uint8)})
    domain = inputs_of(tmp_path, model).domain
    assert domain == Box(-5, 122.5)
    features = features_of(model)
    assert_inside(features, domain)
    assert (features.min(), features.max()) == (-5, 122.5)


def test_without_declared_shapes_axes_from_the_front_are_not_guessed(tmp_path: Path) -> None:
    nodes = [
        node("LayerNormalization", "x gain shift", "a"),
        node("Unsqueeze", "a k", "u"),
        node("Squeeze", "u k", "h"),
    ]
    model = build(nodes, {"gain": GAIN, "shift": SHIFT, "k": integers(1)})
    assert inputs_of(tmp_path, model).domain == rounded(LayerNorm, GAIN, SHIFT)
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert isinstance(inputs_of(tmp_path, model).domain, Box)


def test_a_head_used_by_two_tensors_has_no_domain(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "h"), node("Tanh", "x", "t"), node("MatMul", "t W", "y2")]
    model = build(nodes, {})
    model.graph.output.append(helper.make_tensor_value_info("y2", TensorProto.FLOAT, None))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert find(tmp_path / "model.onnx", ReadOptions()).inputs is None


def test_a_tensor_named_by_the_user_has_a_domain_too(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "h")], {})
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    inputs = find(tmp_path / "model.onnx", ReadOptions(tensor="W")).inputs
    assert inputs == HeadInputs("Relu", Box(0, math.inf))


def test_a_maze_of_sums_is_left_in_time(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a0")]
    nodes += [node("Add", f"a{n} a{n}", f"a{n + 1}") for n in range(500)]
    model = build(nodes, {}, features="a500")
    assert inputs_of(tmp_path, model).domain == Everywhere()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_damaged_gain_costs_the_domain_but_not_the_head(tmp_path: Path, value: float) -> None:
    gain = GAIN.copy()
    gain[3] = value
    inputs = inputs_of(
        tmp_path, build([node("LayerNormalization", "x gain shift", "h")], {"gain": gain, "shift": SHIFT})
    )
    assert inputs.domain is None
    assert "LayerNorm gain holds NaN or infinite values" in inputs.description


def test_a_constant_that_is_no_number_costs_the_domain(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "r"), node("Mul", "r c", "h")], {"c": GAIN * np.float32(math.nan)})
    assert inputs_of(tmp_path, model).domain is None


# ---------------------------------------------------------------------- any graph

# Steps from tensor `a` to `b` that keep a square a square, so that rows and features can be confused.
STEPS: dict[str, list[NodeProto]] = {
    **{
        op: [node(op, "a", "b")]
        for op in ("Relu", "Tanh", "Sigmoid", "HardSwish", "Softplus", "Elu", "Neg", "Transpose")
    },
    "relu6": [node("Clip", "a zero six", "b")],
    "silu": [node("Sigmoid", "a", "t1"), node("Mul", "a t1", "b")],
    "layer norm": [node("LayerNormalization", "a gain shift", "b")],
    "rms norm": [helper.make_node("SimplifiedLayerNormalization", ["a", "gain"], ["b"], axis=-1)],
    "gain": [node("Mul", "a gain", "b")],
    "shift": [node("Add", "shift a", "b")],
    "rows turned": [node("Gather", "a turned", "b", axis=0)],
    "features turned": [node("Gather", "a turned", "b", axis=-1)],
    "mean row": [node("ReduceMean", "a first", "t1"), node("Expand", "t1 square", "b")],
    "largest row": [node("ReduceMax", "a first", "t1"), node("Add", "t1 nothing", "b")],
    "recut": [
        node("Reshape", "a cut", "t1"),
        node("Transpose", "t1", "t2", perm=[1, 0, 2]),
        node("Reshape", "t2 square", "b"),
    ],
    "reshaped and back": [node("Reshape", "a cut", "t1"), node("Reshape", "t1 square", "b")],
    "squeezed": [
        node("Unsqueeze", "a first", "t1"),
        node("Transpose", "t1", "t2", perm=[1, 0, 2]),
        node("Squeeze", "t2 second", "b"),
    ],
    "pooled": [
        node("Unsqueeze", "a first", "t1"),
        node("AveragePool", "t1", "t2", kernel_shape=[3], pads=[1, 1], count_include_pad=1),
        node("Squeeze", "t2 first", "b"),
    ],
    "averaged rows": [
        node("Transpose", "a", "t1"),
        node("Unsqueeze", "t1 first", "t2"),
        node("AveragePool", "t2", "t3", kernel_shape=[3], pads=[1, 1]),
        node("Squeeze", "t3 first", "t4"),
        node("Transpose", "t4", "b"),
    ],
    "quantised": [node("DynamicQuantizeLinear", "a", "t1 t2 t3"), node("DequantizeLinear", "t1 t2 t3", "b")],
    "in steps": [
        node("QuantizeLinear", "a step middle", "t1"),
        node("DequantizeLinear", "t1 step middle", "b"),
    ],
}
PAIRS = ("Add", "Sub", "Mul", "Max", "Min", "Mean", "Div")
SQUARE_CONSTANTS: Constants = {
    "zero": number(0),
    "six": number(6),
    "gain": GAIN,
    "shift": SHIFT,
    "turned": integers(*np.roll(range(FEATURES), 3)),
    "first": integers(0),
    "second": integers(1),
    "square": integers(FEATURES, FEATURES),
    "cut": integers(2, 4, FEATURES),
    "nothing": np.zeros((FEATURES, FEATURES), np.float32),
    "step": number(0.1),
    "middle": np.array(100, np.uint8),
}


def renamed(step: NodeProto, tag: int, source: str) -> NodeProto:
    """A step from the tensor `source` to `h` and the tag, which its own tensors are numbered with too."""
    names = {"a": source, "b": f"h{tag}", **{f"t{k}": f"t{tag}_{k}" for k in range(1, 5)}}
    copy = NodeProto()
    copy.CopyFrom(step)
    copy.input[:] = [names.get(name, name) for name in step.input]
    copy.output[:] = [names.get(name, name) for name in step.output]
    return copy


@settings(max_examples=150)
@given(st.data())
def test_whatever_the_graph_its_features_lie_in_the_domain(tmp_path: Path, data: st.DataObject) -> None:
    nodes = [node("Identity", "x", "h0")]
    count = data.draw(st.integers(1, 6))
    for tag in range(1, count + 1):
        sources = [f"h{k}" for k in range(tag)]
        kind = data.draw(st.sampled_from([*STEPS, *PAIRS]))
        if kind in PAIRS:
            nodes.append(
                node(kind, " ".join(data.draw(st.sampled_from(sources)) for _ in range(2)), f"h{tag}")
            )
        else:
            source = data.draw(st.sampled_from(sources[-2:]))
            nodes += [renamed(step, tag, source) for step in STEPS[kind]]
    model = build(nodes, SQUARE_CONSTANTS, features=f"h{count}")
    domain = inputs_of(tmp_path, model).domain
    if domain == Everywhere():
        return
    model.graph.output.append(helper.make_empty_tensor_value_info(f"h{count}"))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for scale in (1e-2, 1.0, 1e2):
        square = INPUTS[: 4 * FEATURES].reshape(4, FEATURES, FEATURES) * np.float32(scale)
        for x in square:
            features = session.run(None, {"x": x})[1].astype(np.float64)
            if np.isfinite(features).all():  # a division by 0 has no features
                assert_inside(features, domain)


# ---------------------------------------------------------------------- half precision


def in_half(nodes: Sequence[NodeProto], constants: Constants, *, cast: bool) -> onnx.ModelProto:
    """The same model in float16, with an input of that type or one that is cast to it."""
    arrays = {
        name: array.astype(np.float16) if np.asarray(array).dtype == np.float32 else array
        for name, array in {"W": WEIGHT, **constants}.items()
    }
    entrance = [node("Cast", "x", "x16", to=TensorProto.FLOAT16)] if cast else []
    body = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
    if cast:
        for each in body:
            each.input[:] = ["x16" if name == "x" else name for name in each.input]
    type_ = TensorProto.FLOAT if cast else TensorProto.FLOAT16
    graph = helper.make_graph(
        [*entrance, *body, node("MatMul", "h W", "y")],
        "graph",
        [helper.make_tensor_value_info("x", type_, ["rows", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=9))


HALF_NORM = [
    *(node("Mul", "x x", "xx"), node("ReduceMean", "xx last", "m"), node("Add", "m eps", "v")),
    *(node("Sqrt", "v", "r"), node("Div", "x r", "n"), node("Mul", "n gain", "h")),
]
# What holds in float32 and is left by rounding to float16.
LEFT_IN_HALF: dict[str, tuple[list[NodeProto], Constants]] = {
    "silu": ([node("Sigmoid", "x", "g"), node("Mul", "x g", "h")], {}),
    "gelu": ([node("Gelu", "x", "h")], {}),
    "mish": ([node("Mish", "x", "h")], {}),
    "selu": ([node("Selu", "x", "h")], {}),
    "hard swish": ([node("HardSwish", "x", "h")], {}),
    "hard swish written out": ([node("HardSigmoid", "x", "g"), node("Mul", "x g", "h")], {}),
    "layer norm": ([node("LayerNormalization", "x gain shift", "h")], {"gain": GAIN, "shift": SHIFT}),
    "rms norm": (HALF_NORM, {"gain": GAIN, "eps": number(1e-3), "last": integers(-1)}),
    "silu, then relayout": (
        [
            *(node("Sigmoid", "x", "g"), node("Mul", "x g", "a")),
            *(node("Unsqueeze", "a k", "u"), node("Squeeze", "u k", "h")),
        ],
        {"k": integers(0)},
    ),
}
# What rounding to float16 leaves alone, because the ends are numbers of that type.
SURVIVES_HALF: dict[str, tuple[list[NodeProto], Box]] = {
    "relu": ([node("Relu", "x", "h")], Box(0, math.inf)),
    "sigmoid": ([node("Sigmoid", "x", "h")], Box(0, 1)),
    "tanh": ([node("Tanh", "x", "h")], Box(-1, 1)),
    "elu": ([node("Elu", "x", "h", alpha=0.5)], Box(-0.5, math.inf)),
    "relu and a mean": (
        [node("Relu", "x", "a"), node("Unsqueeze", "a k", "u"), node("ReduceMean", "u k", "h", keepdims=0)],
        Box(0, math.inf),
    ),
    "a sum of ends that are numbers": ([node("Tanh", "x", "t"), node("Add", "t t", "h")], Box(-2, 2)),
}


@pytest.mark.parametrize("cast", [True, False], ids=["cast", "typed input"])
@pytest.mark.parametrize("name", LEFT_IN_HALF)
def test_half_precision_leaves_bounds_that_it_can_round_beyond(tmp_path: Path, name: str, cast: bool) -> None:
    nodes, constants = LEFT_IN_HALF[name]
    assert inputs_of(tmp_path, build(nodes, constants)).domain != Everywhere()
    inputs = inputs_of(tmp_path, in_half(nodes, constants, cast=cast))
    assert inputs.domain == Everywhere()
    assert "in half precision" in inputs.description


@pytest.mark.parametrize("cast", [True, False], ids=["cast", "typed input"])
@pytest.mark.parametrize("name", SURVIVES_HALF)
def test_half_precision_respects_bounds_that_are_its_numbers(tmp_path: Path, name: str, cast: bool) -> None:
    nodes, expected = SURVIVES_HALF[name]
    model = in_half(nodes, {"k": integers(0)}, cast=cast)
    assert inputs_of(tmp_path, model).domain == expected
    if cast:
        features = features_of(model)
        assert (features >= expected.lo).all()
        assert (features <= expected.hi).all()


def test_a_mean_of_half_precision_numbers_has_a_sign_but_no_other_bound(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", "x", "a"),
        node("Unsqueeze", "a k", "u"),
        node("ReduceMean", "u k", "h", keepdims=0),
    ]
    single = inputs_of(tmp_path, build(nodes, {"k": integers(0)})).domain
    assert isinstance(single, Box)
    assert single.lo == 0
    assert 1 <= single.hi <= 1 + 2.0**-20
    assert inputs_of(tmp_path, in_half(nodes, {"k": integers(0)}, cast=True)).domain == Box(0, math.inf)


def test_float16_features_do_go_below_the_minimum_of_silu() -> None:
    """Why: float16's SiLU, which ONNX Runtime computes, reaches less than any real number's."""
    nodes, constants = LEFT_IN_HALF["silu"]
    assert features_of(in_half(nodes, constants, cast=True)).min() < -0.27847


def test_bounds_in_float32_stay_where_only_constants_are_stored_in_half(tmp_path: Path) -> None:
    half = {"gain16": GAIN.astype(np.float16), "W16": WEIGHT.astype(np.float16)}
    nodes = [
        node("Cast", "gain16", "gain", to=TensorProto.FLOAT),
        node("Cast", "W16", "V", to=TensorProto.FLOAT),
        node("LayerNormalization", "x gain", "h"),
        node("MatMul", "h V", "y"),
    ]
    model = build(nodes, half, features=None)
    expected = rounded(LayerNorm, half["gain16"].astype(np.float32), np.float32(0))
    assert inputs_of(tmp_path, model).domain == expected


def test_a_cast_to_half_precision_in_front_of_the_head_is_rounding_too(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", "x", "g"),
        node("Mul", "x g", "a"),
        node("Cast", "a", "a16", to=TensorProto.FLOAT16),
        node("Cast", "a16", "h", to=TensorProto.FLOAT),
    ]
    assert inputs_of(tmp_path, build(nodes, {})).domain == Everywhere()
    relu = [node("Relu", "x", "a"), *nodes[2:]]
    assert inputs_of(tmp_path, build(relu, {})).domain == Box(0, math.inf)


# ---------------------------------------------------------------------- what only looks bounded


def declared(name: str, type_: int, shape: list[Any] | None = None) -> Any:
    return helper.make_tensor_value_info(name, type_, ["rows", FEATURES] if shape is None else shape)


def rms_parts(reduced: NodeProto, *between: NodeProto, deviation: str) -> list[NodeProto]:
    """x over the root of a mean of its squares that is written out by the given nodes."""
    return [
        node("Mul", "x x", "squares"), reduced, *between, node("Add", "mean epsilon", "m"),
        node("Sqrt", "m", "root"), node("Div", f"x {deviation}", "z"), node("Mul", "z gain", "h"),
    ]  # fmt: skip


RMS_CONSTANTS = {"axis": integers(-1), "first": integers(0), "epsilon": number(1e-6), "gain": GAIN}
MISPLACED = {
    "no axis": rms_parts(node("ReduceMean", "squares axis", "mean", keepdims=0), deviation="root"),
    "axis at the front": rms_parts(
        node("ReduceMean", "squares axis", "means", keepdims=0),
        node("Unsqueeze", "means first", "mean"),
        deviation="root",
    ),
    "reshaped": [
        *rms_parts(node("ReduceMean", "squares axis", "mean", keepdims=1), deviation="turned")[:4],
        node("Reshape", "root row", "turned"),
        node("Div", "x turned", "z"),
        node("Mul", "z gain", "h"),
    ],
}


@pytest.mark.parametrize("name", MISPLACED)
def test_a_mean_along_another_axis_makes_no_norm(tmp_path: Path, name: str) -> None:
    model = build(MISPLACED[name], RMS_CONSTANTS | {"row": integers(1, -1)})
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


def test_a_mean_whose_axis_is_put_back_makes_a_norm(tmp_path: Path) -> None:
    reduced = node("ReduceMean", "squares axis", "means", keepdims=0)
    model = build(
        rms_parts(reduced, node("Unsqueeze", "means axis", "mean"), deviation="root"), RMS_CONSTANTS
    )
    domain = inputs_of(tmp_path, model).domain
    assert isinstance(domain, RMSNorm)
    assert_inside(features_of(model), domain)


@pytest.mark.parametrize("mode", ["constant", "input"])
def test_dropout_in_training_bounds_nothing(tmp_path: Path, mode: str) -> None:
    constants = {"ratio": number(0.5)} | ({"mode": np.array(True)} if mode == "constant" else {})
    model = build([node("Tanh", "x", "t"), node("Dropout", "t ratio mode", "h")], constants)
    if mode == "input":
        model.graph.input.append(declared("mode", TensorProto.BOOL, []))
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)
    if mode == "constant":
        assert np.abs(features_of(model)).max() > 1


def test_dropout_that_is_switched_off_hands_bounds_on(tmp_path: Path) -> None:
    constants = {"ratio": number(0.5), "mode": np.array(False)}
    model = build([node("Tanh", "x", "t"), node("Dropout", "t ratio mode", "h")], constants)
    assert inputs_of(tmp_path, model).domain == Box(-1, 1)


def retyped(model: onnx.ModelProto, type_: int) -> onnx.ModelProto:
    """The model with another type of input, without the types that were inferred for the first."""
    model.graph.input[0].type.tensor_type.elem_type = type_
    del model.graph.value_info[:]
    return model


WHOLE = {
    "square": [node("Mul", "x x", "s")],
    "abs": [node("Abs", "x", "s")],
    "relu": [node("Relu", "x", "r"), node("Add", "r r", "s")],
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_wrap_round_so_they_have_no_bounds(tmp_path: Path, name: str) -> None:
    model = retyped(build([*WHOLE[name], node("Cast", "s", "h", to=1)], {}), TensorProto.INT32)
    inputs = inputs_of(tmp_path, model)
    assert isinstance(inputs.domain, Everywhere)
    assert "whole numbers" in inputs.description


def test_half_precision_inputs_are_seen_by_their_declared_type(tmp_path: Path) -> None:
    model = build([node("HardSwish", "x", "s"), node("Cast", "s", "h", to=1)], {})
    assert inputs_of(tmp_path, model).domain == Box(-0.375, math.inf)
    model = retyped(model, TensorProto.FLOAT16)
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


def test_a_gate_of_rounded_numbers_has_no_minimum(tmp_path: Path) -> None:
    rounded_ = [node("Cast", "x", "b", to=16), node("Cast", "b", "v", to=1), node("Sigmoid", "v", "s")]
    model = build([*rounded_, node("Mul", "x s", "h")], {})
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


def test_a_deviation_of_rounded_numbers_makes_no_norm(tmp_path: Path) -> None:
    nodes = rms_parts(node("ReduceMean", "squares axis", "mean", keepdims=1), deviation="root")
    rounded_ = [node("Cast", "x", "b", to=16), node("Cast", "b", "v", to=1), node("Mul", "v v", "squares")]
    model = build([*rounded_, *nodes[1:]], RMS_CONSTANTS)
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


@pytest.mark.parametrize("epsilon", [-0.5, math.nan])
@pytest.mark.parametrize("op", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_a_norm_with_a_negative_epsilon_has_no_domain(tmp_path: Path, op: str, epsilon: float) -> None:
    model = build([node(op, "x gain", "h", epsilon=epsilon)], {"gain": GAIN})
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


ROUNDED = {
    "sum": [node("Add", "s k", "h")],
    "quotient": [node("Div", "s k", "h")],
    "product": [node("Add", "s k", "t"), node("Mul", "t t", "h")],
}


@pytest.mark.parametrize("name", ROUNDED)
def test_bounds_of_arithmetic_have_room_for_its_rounding(tmp_path: Path, name: str) -> None:
    model = build([node("Sigmoid", "x", "s"), *ROUNDED[name]], {"k": number(0.7 if "q" in name else 0.1)})
    box = inputs_of(tmp_path, model).domain
    assert isinstance(box, Box)
    features = features_of(model)
    assert (features >= box.lo).all()
    assert (features <= box.hi).all()
    assert box.hi <= features.max() * (1 + 2.0**-20)


def test_ends_that_float32_holds_stay_as_they_are(tmp_path: Path) -> None:
    nodes = [node("Clip", "x zero six", "c"), node("Div", "c six", "q"), node("Add", "q six", "h")]
    model = build(nodes, {"zero": number(0), "six": number(6)})
    assert inputs_of(tmp_path, model).domain == Box(6, 7)


def test_a_mean_of_unknown_length_keeps_only_bounds_of_zero(tmp_path: Path) -> None:
    shape = ["rows", "positions", FEATURES]
    for lengths, high in ((shape, math.inf), (["rows", 9, FEATURES], 6 * (1 + 11 * 2.0**-24))):
        nodes = [node("Clip", "x zero six", "c"), node("ReduceMean", "c axis", "h", keepdims=0)]
        model = build(nodes, {"zero": number(0), "six": number(6), "axis": integers(1)})
        del model.graph.value_info[:]
        model.graph.input[0].CopyFrom(declared("x", TensorProto.FLOAT, lengths))
        box = inputs_of(tmp_path, onnx.shape_inference.infer_shapes(model)).domain
        assert isinstance(box, Box)
        assert box.lo == 0
        assert high <= box.hi <= high * (1 + 2.0**-20)


@pytest.mark.parametrize("version", [3, 9])
def test_no_domain_rests_on_a_constant_that_can_be_replaced(tmp_path: Path, version: int) -> None:
    """Before version 4 of the format every constant had to be listed as an input."""
    model = build([node("Mul", "x gain", "g"), node("Clip", "g low high", "h")], {
        "gain": GAIN, "low": number(0), "high": number(1),
    })  # fmt: skip
    model.ir_version = version
    model.graph.input.append(declared("high", TensorProto.FLOAT, []))
    model.graph.input.append(declared("W", TensorProto.FLOAT, [FEATURES, CLASSES]))
    domain = inputs_of(tmp_path, model).domain
    notes = find(tmp_path / "model.onnx", ReadOptions()).notes
    assert isinstance(domain, Everywhere) == (version >= 4)
    assert any("'W' is also an input of the graph" in note for note in notes) == (version >= 4)


def test_a_replaceable_gain_makes_no_norm(tmp_path: Path) -> None:
    model = build([node("LayerNormalization", "x gain", "h")], {"gain": GAIN})
    model.graph.input.append(declared("gain", TensorProto.FLOAT, [FEATURES]))
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)


# ---------------------------------------------------------------------- names in branches


def branched(
    nodes: Sequence[NodeProto], inner: Constants, after: Sequence[NodeProto], outer: Constants, *given: Any
) -> onnx.ModelProto:
    """A model with an If called y, whose first branch has these nodes and constants."""
    tensors = [
        [numpy_helper.from_array(np.asarray(array), name) for name, array in each.items()]
        for each in (inner, outer)
    ]
    empty = helper.make_empty_tensor_value_info
    then = helper.make_graph(list(nodes), "then", [], [empty("to")], tensors[0])
    other = helper.make_graph([node("Identity", "x", "eo")], "else", [], [empty("eo")])
    choice = helper.make_node("If", ["condition"], ["y"], then_branch=then, else_branch=other)
    inputs = [declared("x", TensorProto.FLOAT), declared("condition", TensorProto.BOOL, []), *given]
    graph = helper.make_graph([choice, *after], "graph", inputs, [empty("logits")], tensors[1])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_a_constant_of_a_branch_never_stands_for_one_outside(tmp_path: Path) -> None:
    model = branched(
        [node("MatMul", "x W", "to")],
        {"W": 7 * WEIGHT},
        [node("MatMul", "x y/then_branch/W", "logits")],
        {"y/then_branch/W": WEIGHT, "W": 3 * WEIGHT},
    )
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    weight, _ = find(tmp_path / "model.onnx", ReadOptions()).read()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    unit = np.eye(FEATURES, dtype=np.float32)
    (logits,) = session.run(["logits"], {"x": unit, "condition": np.array(True)})
    assert (logits == weight.T).all()


def test_a_constant_of_a_branch_never_stands_for_an_input(tmp_path: Path) -> None:
    given = declared("V", TensorProto.FLOAT, [FEATURES, CLASSES])
    model = branched(
        [node("MatMul", "x V", "to")], {"V": WEIGHT}, [node("MatMul", "x V", "logits")], {}, given
    )
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LoadError, match="no linear layer leads straight"):
        find(tmp_path / "model.onnx", ReadOptions())


def test_a_tensor_of_a_branch_never_stands_for_an_input(tmp_path: Path) -> None:
    model = branched(
        [node("Tanh", "w", "x"), node("Identity", "x", "to")], {}, [node("MatMul", "x W", "logits")],
        {"W": WEIGHT}, declared("w", TensorProto.FLOAT),
    )  # fmt: skip
    assert isinstance(inputs_of(tmp_path, model).domain, Everywhere)
