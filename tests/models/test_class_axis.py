"""The rows of a head that was found are the classes of one argmax, as ONNX Runtime computes the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx_writer import node, save

from argmaxable.core.errors import LoadError
from argmaxable.models import find_head, load_head

Array = NDArray[Any]
CLASSES, FEATURES = 6, 4
RNG = np.random.default_rng(17)
WEIGHT = RNG.normal(size=(FEATURES, CLASSES)).astype(np.float32)
BIAS = RNG.normal(size=CLASSES).astype(np.float32)
LINEAR = [node("MatMul", "x W", "xW"), node("Add", "xW b", "z")]
SHAPE = {"W": WEIGHT, "b": BIAS}


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def build(
    shape: list[int | str], nodes: list[NodeProto], constants: dict[str, Array], opset: int = 17
) -> onnx.ModelProto:
    """A model of which nothing but the shape of its input is declared."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def logits_of(weight: Array, bias: Array | None, x: Array, axis: int) -> Array:
    found = np.moveaxis(x, axis, -1) @ weight
    return (found if bias is None else found + bias).reshape(-1, weight.shape[1])


def orders(scores: Array) -> set[tuple[int, ...]]:
    return {tuple(row) for row in np.argsort(scores, axis=-1).tolist()}


def is_one_argmax(model: onnx.ModelProto, weight: Array, bias: Array | None, axis: int) -> bool:
    """Whether some axis of the output orders the classes as W x + b does, at every position of inputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    lengths = [2 if isinstance(length, str) else length for length in session.get_inputs()[0].shape]
    classes = weight.shape[1]
    left: set[int] | None = None
    for _ in range(4):
        x = RNG.normal(size=lengths).astype(np.float32)
        (y,) = session.run(None, {"x": x})
        wanted = orders(logits_of(weight, bias, x, axis))
        fits = {
            place
            for place in range(y.ndim)
            if y.shape[place] == classes and orders(np.moveaxis(y, place, -1).reshape(-1, classes)) <= wanted
        }
        left = fits if left is None else left & fits
    return bool(left)


def chain(*nodes: NodeProto, shape: tuple[int | str, ...] = (3, 4), **constants: Array) -> onnx.ModelProto:
    """The usual layer, and what follows it."""
    return build(list(shape), [*LINEAR, *nodes], {**SHAPE, **constants})


def convolution(*nodes: NodeProto, size: tuple[int, ...] = (2, 3), **constants: Array) -> onnx.ModelProto:
    kernel = WEIGHT.T.reshape(CLASSES, FEATURES, *(1,) * len(size)).copy()
    first = node("Conv", "x W" if "b" in constants else "x W B", "z")
    return build([2, FEATURES, *size], [first, *nodes], {"W": kernel, "B": BIAS, **constants})


SOFTMAX = node("Softmax", "r", "y")
REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "two groups, the last taking up the rest": (
        chain(node("Reshape", "z t", "r"), SOFTMAX, t=whole(0, 2, -1)),
        r"6 columns but is reshaped to \[0, 2, -1\]",
    ),
    "one row cut in two": (
        chain(node("Reshape", "z t", "r"), SOFTMAX, shape=(1, 4), t=whole(2, -1)),
        r"reshaped to \[2, -1\]",
    ),
    "six rows of something else": (
        chain(node("Reshape", "z t", "y"), t=whole(6, -1)),
        r"reshaped to \[6, -1\]",
    ),
    "a softmax over one number": (
        chain(node("Reshape", "z t", "r"), SOFTMAX, shape=(1, 4), t=whole(6, 1)),
        "Softmax over axis -1 counted from the end",
    ),
    "all rows in one": (chain(node("Reshape", "z t", "y"), t=whole(-1)), r"reshaped to \[-1\]"),
    "positions and classes in one": (
        chain(node("Reshape", "z t", "y"), shape=(2, 3, 4), t=whole(0, -1)),
        r"reshaped to \[0, -1\]",
    ),
    "positions and classes flattened": (
        chain(node("Flatten", "z", "y"), shape=(2, 3, 4)),
        "goes through Flatten",
    ),
    "rows flattened": (chain(node("Flatten", "z", "y", axis=0)), "goes through Flatten"),
    "a softmax over positions behind a reshape": (
        chain(node("Reshape", "z t", "r"), node("Softmax", "r", "y", axis=1), t=whole(1, 3, 6)),
        "Softmax over axis -2 counted from the end",
    ),
    "positions of a convolution flattened": (convolution(node("Flatten", "z", "y")), "goes through Flatten"),
    "a convolution's bias along its positions": (
        convolution(node("Add", "z b", "y"), size=(6,), b=BIAS),
        r"Add takes 'b' of shape \[6\], which does not lie along",
    ),
    "a sum that differs from class to class": (
        chain(
            node("Gather", "V i", "v"),
            node("ReduceSum", "v one", "s", keepdims=0),
            node("Sub", "z s", "y"),
            V=RNG.normal(size=(3, 2, 6)).astype(np.float32) * 9,
            i=whole(0, 1, 2),
            one=whole(1),
        ),
        "Sub with 's', which may differ from class to class",
    ),
    "probabilities over positions, expanded": (
        chain(
            node("Exp", "z", "e"),
            node("ReduceSum", "e zero", "s", keepdims=1),
            node("Expand", "s t", "S"),
            node("Div", "e S", "y"),
            zero=whole(0),
            t=whole(3, 6),
        ),
        "Div with 'S'",
    ),
    "log probabilities over positions": (
        chain(
            node("Exp", "z", "e"),
            node("ReduceSum", "e zero", "s", keepdims=1),
            node("Log", "s", "l"),
            node("Sub", "z l", "y"),
            zero=whole(0),
        ),
        "Sub with 'l'",
    ),
    "a maximum of each row laid along the classes": (
        chain(node("ReduceMax", "z", "m", axes=[1], keepdims=0), node("Sub", "z m", "y"), shape=(6, 4)),
        "Sub with 'm'",
    ),
    "a second softmax over positions": (
        chain(node("Softmax", "z", "s"), node("Transpose", "s", "t"), node("Softmax", "t", "y")),
        "Softmax over axis -1",
    ),
    "a bias in a column": (
        build(
            [1, 4],
            [node("MatMul", "x W", "m"), node("Add", "m b", "y")],
            {"W": WEIGHT, "b": BIAS.reshape(CLASSES, 1)},
        ),
        r"Add takes 'b' of shape \[6, 1\]",
    ),
    "a bias made a column": (
        build(
            [1, 4],
            [node("MatMul", "x W", "m"), node("Unsqueeze", "b one", "c"), node("Add", "m c", "y")],
            {**SHAPE, "one": whole(1)},
        ),
        r"Add takes 'c' of shape \[6, 1\]",
    ),
    "a row added to a column": (
        build(
            [4, 1],
            [node("MatMul", "W x", "m"), node("Add", "m b", "y")],
            {"W": WEIGHT.T.copy(), "b": BIAS},
        ),
        r"Add takes 'b' of shape \[6\]",
    ),
    "Gemm's bias in a column": (
        build([6, 4], [node("Gemm", "x W b", "y")], {"W": WEIGHT, "b": BIAS.reshape(CLASSES, 1)}),
        r"Gemm takes 'b' of shape \[6, 1\]",
    ),
}


def features_axis(name: str) -> int:
    return 1 if "convolution" in name else 0 if "column" in name and "row" in name else -1


@pytest.mark.parametrize(("model", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_one_argmax_over_the_rows_is_refused(
    tmp_path: Path, model: onnx.ModelProto, why: str, request: pytest.FixtureRequest
) -> None:
    axis = features_axis(request.node.callspec.id)
    assert not is_one_argmax(model, WEIGHT, BIAS, axis)
    with pytest.raises(LoadError, match=rf"the product with 'W' .*{why}.*tensor='W' \(--tensor\)"):
        load_head(save(tmp_path, model))


MISPLACED = [name for name in REFUSED if "bias" in name or name == "a row added to a column"]


@pytest.mark.parametrize("name", MISPLACED)
def test_a_bias_that_is_not_along_the_rows_is_refused_although_the_weight_is_named(
    tmp_path: Path, name: str
) -> None:
    model, why = REFUSED[name]
    path = save(tmp_path, model)
    with pytest.raises(LoadError, match=rf"{why}.*So 'b' may not be its bias.*--bias-tensor"):
        load_head(path, tensor="W")
    assert load_head(path, tensor="W", bias_tensor="b").classes == CLASSES


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in MISPLACED])
def test_a_named_weight_is_taken_with_its_own_bias(tmp_path: Path, name: str) -> None:
    finding = find_head(save(tmp_path, REFUSED[name][0]), tensor="W")
    weight, bias = finding.read()
    assert np.array_equal(weight, WEIGHT.T)
    assert bias is not None
    assert np.array_equal(bias, BIAS)


def test_the_warning_says_what_follows_a_named_weight(tmp_path: Path) -> None:
    finding = find_head(save(tmp_path, chain(node("Reshape", "z t", "y"), t=whole(6, -1))), tensor="W")
    assert any("taken because it was named" in note and "[6, -1]" in note for note in finding.notes)


ACCEPTED: dict[str, onnx.ModelProto] = {
    "flattened rows": chain(node("Flatten", "z", "r"), SOFTMAX),
    "rows of any number": chain(node("Flatten", "z", "r"), SOFTMAX, shape=("N", 4)),
    "positions in one axis": chain(node("Reshape", "z t", "r"), SOFTMAX, shape=(2, 3, 4), t=whole(-1, 6)),
    "the rest is what the classes were": chain(node("Reshape", "z t", "r"), SOFTMAX, t=whole(0, -1)),
    "one position less": chain(node("Reshape", "z t", "y"), shape=("N", 1, 4), t=whole(0, -1)),
    "classes before an axis of one": chain(
        node("Reshape", "z t", "r"), node("Softmax", "r", "y", axis=1), t=whole(-1, 6, 1)
    ),
    "axes put in and taken out": chain(
        node("Unsqueeze", "z t", "u"),
        node("Softmax", "u", "s", axis=2),
        node("Squeeze", "s t", "y"),
        t=whole(1),
    ),
    "one position of a convolution": convolution(node("Flatten", "z", "y"), size=(1, 1)),
    "positions of a convolution averaged": convolution(
        node("GlobalAveragePool", "z", "p"), node("Flatten", "p", "y")
    ),
    "a convolution moved": convolution(
        node("Transpose", "z", "t", perm=[0, 2, 3, 1]), node("Reshape", "t s", "y"), s=whole(0, -1, 6)
    ),
    "a softmax of parts": chain(
        node("ReduceMax", "z", "m", axes=[1]),
        node("Sub", "z m", "s"),
        node("Exp", "s", "e"),
        node("ReduceSum", "e one", "t"),
        node("Div", "e t", "y"),
        one=whole(1),
    ),
    "a shape worked out": chain(
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n zero1", "n1"),
        node("Concat", "n1 rest", "t", axis=0),
        node("Reshape", "z t", "y"),
        shape=("N", 4),
        zero=np.array(0, np.int64),
        zero1=whole(0),
        rest=whole(-1),
    ),
    "a vector": build(
        [4],
        [node("MatMul", "W x", "m"), node("Add", "m b", "s"), node("Softmax", "s", "y")],
        {"W": WEIGHT.T.copy(), "b": BIAS},
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_one_argmax_over_the_rows_is_found(tmp_path: Path, name: str) -> None:
    head = load_head(save(tmp_path, ACCEPTED[name]))
    axis = features_axis(name)
    if "averaged" not in name:  # there the mean of the positions is what is ordered
        assert is_one_argmax(ACCEPTED[name], np.asarray(head.weight).T, head.bias, axis)
    assert np.array_equal(head.weight, WEIGHT.T)


# ---------------------------------------------------------------------- chains at random


Constants = dict[str, Array]
Step = Callable[[np.random.Generator, str, str, Constants], list[NodeProto]]


def _reshape(rng: np.random.Generator, given: str, made: str, constants: Constants) -> list[NodeProto]:
    target = [[0, -1], [-1, 6], [6, -1], [-1], [2, -1, 6], [0, 6, 1], [0, 0, -1], [-1, 3], [1, -1], [0, 0, 6]]
    constants[f"{made}t"] = whole(*target[rng.integers(len(target))])
    return [node("Reshape", f"{given} {made}t", made)]


def _softmax(rng: np.random.Generator, given: str, made: str, _: Constants) -> list[NodeProto]:
    return [node("Softmax", given, made, axis=int(rng.integers(-3, 3)))]


def _flatten(rng: np.random.Generator, given: str, made: str, _: Constants) -> list[NodeProto]:
    return [node("Flatten", given, made, axis=int(rng.integers(3)))]


def _transpose(rng: np.random.Generator, given: str, made: str, _: Constants) -> list[NodeProto]:
    rank = int(rng.integers(2, 5))
    return [node("Transpose", given, made, perm=rng.permutation(rank).tolist())]


def _axes(rng: np.random.Generator, given: str, made: str, constants: Constants) -> list[NodeProto]:
    constants[f"{made}a"] = whole(int(rng.integers(-3, 3)))
    op = ("Unsqueeze", "Squeeze")[rng.integers(2)]
    return [node(op, f"{given} {made}a", made)]


def _normalise(
    rng: np.random.Generator, given: str, made: str, constants: dict[str, Array]
) -> list[NodeProto]:
    constants[f"{made}a"] = whole(int(rng.integers(-2, 2)))
    keepdims = int(rng.integers(4) > 0)
    return [
        node("Exp", given, f"{made}e"),
        node("ReduceSum", f"{made}e {made}a", f"{made}s", keepdims=keepdims),
        node("Div", f"{made}e {made}s", made),
    ]


def _add(rng: np.random.Generator, given: str, made: str, constants: Constants) -> list[NodeProto]:
    shapes = [(6,), (1, 6), (6, 1), (1,), (1, 1, 6), (6, 1, 1)]
    shape = shapes[rng.integers(len(shapes))]
    constants[f"{made}b"] = rng.normal(size=shape).astype(np.float32) * 3
    return [node("Add", f"{given} {made}b", made)]


STEPS: list[Step] = [_reshape, _reshape, _softmax, _flatten, _transpose, _axes, _normalise, _add]


def random_chain(seed: int) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    shape = [[3, 4], [1, 4], ["N", 4], [2, 3, 4], [1, 3, 4], [6, 4], [4, 6, 4]][rng.integers(7)]
    nodes, constants, given = [node("MatMul", "x W", "z")], {"W": WEIGHT}, "z"
    for number in range(rng.integers(1, 5)):
        made = f"t{number}"
        nodes += STEPS[rng.integers(len(STEPS))](rng, given, made, constants)
        given = made
    return build(shape, [*nodes, node("Identity", given, "y")], constants)


def contradicts(path: Path, seed: int) -> bool | None:
    """Whether a chain's head is not what ONNX Runtime orders by; None where one of the two refuses it."""
    model = random_chain(seed)
    try:
        head = load_head(save(path, model))
    except LoadError:
        return None
    try:
        return not is_one_argmax(model, np.asarray(head.weight).T, head.bias, -1)
    except Exception as error:  # ONNX Runtime has a class of its own for each kind of error
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


def test_no_chain_of_operations_gets_a_head_that_onnxruntime_does_not_order_by(tmp_path: Path) -> None:
    answers = [contradicts(tmp_path, seed) for seed in range(400)]
    assert True not in answers
    assert answers.count(False) > 20
