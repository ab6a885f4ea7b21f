"""Heads in ONNX files: every way to write the same layer, and every graph that must be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from argmaxable.errors import LoadError
from argmaxable.load import load_head

CLASSES, FEATURES = 6, 4
WEIGHT = np.random.default_rng(0).normal(size=(CLASSES, FEATURES)).astype(np.float32)
BIAS = np.random.default_rng(1).normal(size=CLASSES).astype(np.float32)
BY_FEATURE = np.ascontiguousarray(WEIGHT.T)
Constants = dict[str, NDArray[Any]]


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def constant_node(name: str, array: NDArray[Any]) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def build(
    nodes: Sequence[NodeProto],
    constants: Constants,
    *,
    outputs: str = "y",
    rows: int | None = 1,
    character: str | None = None,
) -> onnx.ModelProto:
    """A model of one input `x`; `rows` None makes it a column."""
    shape = [FEATURES, 1] if rows is None else [rows, FEATURES]
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs.split()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if character is not None:
        helper.set_model_props(model, {"character": character})
    return model


def save(tmp_path: Path, model: onnx.ModelProto) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def linear(product: str = "z") -> list[NodeProto]:
    """The usual layer, up to its logits."""
    return [node("MatMul", "x W", "xW"), node("Add", "xW b", product)]


LINEAR: Constants = {"W": BY_FEATURE, "b": BIAS}


@dataclass(frozen=True)
class Variant:
    """One way to write softmax(W x + b), or its logits."""

    name: str
    nodes: list[NodeProto]
    constants: Constants
    rows: int | None = 1


def after_linear(name: str, *nodes: NodeProto, **constants: NDArray[Any]) -> Variant:
    return Variant(name, [*linear(), *nodes], {**LINEAR, **constants})


def integers(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


BIASED = [
    Variant("matmul", linear("y"), LINEAR),
    Variant("bias first", [node("MatMul", "x W", "z"), node("Add", "b z", "y")], LINEAR),
    Variant("bias 1 × C", linear("y"), {**LINEAR, "b": BIAS[None]}),
    Variant("bias 1 × 1 × C", linear("y"), {**LINEAR, "b": BIAS[None, None]}),
    Variant(
        "weight left",
        [node("MatMul", "W x", "z"), node("Add", "z b", "y")],
        {"W": WEIGHT, "b": BIAS[:, None]},
        None,
    ),
    Variant("gemm", [node("Gemm", "x W b", "y")], LINEAR),
    Variant("gemm transB", [node("Gemm", "x W b", "y", transB=1)], {"W": WEIGHT, "b": BIAS}),
    Variant("gemm ones", [node("Gemm", "x W b", "y", alpha=1.0, beta=1.0)], LINEAR),
    Variant("gemm, add", [node("Gemm", "x W", "z", beta=0.5), node("Add", "z b", "y")], LINEAR),
    Variant("constant nodes", [constant_node("W", BY_FEATURE), constant_node("b", BIAS), *linear("y")], {}),
    Variant(
        "transposed constant",
        [node("Transpose", "V", "W", perm=[1, 0]), *linear("y")],
        {"V": WEIGHT, "b": BIAS},
    ),
    Variant(
        "identity of constants",
        [node("Identity", "V", "W"), node("Identity", "c", "b"), *linear("y")],
        {"V": BY_FEATURE, "c": BIAS},
    ),
    Variant(
        "reshaped before the bias",
        [node("MatMul", "x W", "z"), node("Reshape", "z shape", "r"), node("Add", "r b", "y")],
        {**LINEAR, "shape": integers(1, 1, CLASSES)},
    ),
    Variant(
        "shape asked for",
        [
            node("MatMul", "x W", "z"),
            node("Shape", "z", "s"),
            node("Reshape", "z s", "r"),
            node("Add", "r b", "y"),
        ],
        LINEAR,
    ),
    after_linear("softmax", node("Softmax", "z", "y", axis=-1)),
    after_linear("log softmax", node("LogSoftmax", "z", "y", axis=-1)),
    after_linear("log of softmax", node("Softmax", "z", "p", axis=-1), node("Log", "p", "y")),
    after_linear(
        "identity", node("Identity", "z", "i"), node("Softmax", "i", "s"), node("Identity", "s", "y")
    ),
    after_linear("reshape", node("Reshape", "z shape", "y"), shape=integers(0, 1, -1)),
    after_linear("squeeze", node("Squeeze", "z axes", "y"), axes=integers(0)),
    after_linear("unsqueeze", node("Unsqueeze", "z axes", "y"), axes=integers(0)),
    after_linear("transpose", node("Transpose", "z", "y", perm=[1, 0])),
    after_linear("flatten", node("Flatten", "z", "y")),
    after_linear("cast", node("Cast", "z", "y", to=TensorProto.DOUBLE)),
    after_linear("dropout", node("Dropout", "z", "y")),
    after_linear(
        "decomposed softmax",
        node("ReduceMax", "z", "max", axes=[1], keepdims=1),
        node("Sub", "z max", "shifted"),
        node("Exp", "shifted", "exp"),
        node("ReduceSum", "exp axes", "sum", keepdims=1),
        node("Div", "exp sum", "y"),
        axes=integers(1),
    ),
    after_linear(
        "decomposed softmax of jax",
        node("ReduceMax", "z", "max", axes=[1], keepdims=0),
        node("Max", "lowest max", "bounded"),
        node("Reshape", "bounded column", "m"),
        node("Expand", "m column", "broadcast"),
        node("Sub", "z broadcast", "shifted"),
        node("Exp", "shifted", "exp"),
        node("Identity", "exp", "e"),
        node("ReduceSum", "e axes", "sum", keepdims=0),
        node("Reshape", "sum column", "s"),
        node("Div", "exp s", "y"),
        axes=integers(1),
        column=integers(1, 1),
        lowest=np.array(-np.inf, dtype=np.float32),
    ),
    after_linear(
        "decomposed log softmax",
        node("ReduceLogSumExp", "z", "total", axes=[1]),
        node("Sub", "z total", "y"),
    ),
    after_linear(
        "log softmax from its parts",
        node("Exp", "z", "exp"),
        node("ReduceSum", "exp axes", "sum"),
        node("Log", "sum", "total"),
        node("Sub", "z total", "y"),
        axes=integers(1),
    ),
]


@pytest.mark.parametrize("variant", BIASED, ids=lambda variant: variant.name)
def test_weight_and_bias_come_back_bit_for_bit(tmp_path: Path, variant: Variant) -> None:
    head = load_head(save(tmp_path, build(variant.nodes, variant.constants, rows=variant.rows)))
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)
    assert head.labels is None
    assert head.name == "model.onnx"


@pytest.mark.parametrize("variant", BIASED, ids=lambda variant: variant.name)
def test_the_head_orders_classes_as_the_model_does(tmp_path: Path, variant: Variant) -> None:
    model = build(variant.nodes, variant.constants, rows=variant.rows)
    head = load_head(save(tmp_path, model))
    for x in np.random.default_rng(2).normal(size=(20, FEATURES)).astype(np.float32):
        column = x[:, None] if variant.rows is None else x[None]
        (answer,) = ReferenceEvaluator(model).run(None, {"x": column})
        assert np.argmax(answer) == np.argmax(head.weight @ x + head.biases())


@pytest.mark.parametrize(
    ("nodes", "weight"),
    [
        ([node("MatMul", "x W", "y")], BY_FEATURE),
        ([node("Gemm", "x W", "y", transB=1)], WEIGHT),
        ([helper.make_node("Gemm", ["x", "W", ""], ["y"], transB=1)], WEIGHT),
    ],
    ids=["matmul", "gemm", "gemm with an omitted input"],
)
def test_a_layer_without_bias_has_none(tmp_path: Path, nodes: list[NodeProto], weight: NDArray[Any]) -> None:
    head = load_head(save(tmp_path, build(nodes, {"W": weight})))
    assert same_bits(head.weight, WEIGHT)
    assert head.bias is None


@pytest.mark.parametrize("number", [np.float32(0.5), np.array([0.5], np.float32)], ids=["scalar", "vector"])
def test_one_number_is_added_to_all_classes(tmp_path: Path, number: Any) -> None:
    head = load_head(save(tmp_path, build(linear("y"), {"W": BY_FEATURE, "b": np.asarray(number)})))
    assert same_bits(head.bias, np.full(CLASSES, 0.5, np.float32))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_the_dtype_is_kept(tmp_path: Path, dtype: Any, raw: bool) -> None:
    weight, bias = WEIGHT.astype(dtype), BIAS.astype(dtype)
    model = build([node("Gemm", "x W b", "y", transB=1)], {"W": weight, "b": bias})
    if not raw:
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, values.shape, values.ravel()))
            assert not tensor.HasField("raw_data")
    head = load_head(save(tmp_path, model))
    assert same_bits(head.weight, weight)
    assert same_bits(head.bias, bias)


def test_the_last_of_consecutive_layers_is_the_head(tmp_path: Path) -> None:
    inner = np.eye(FEATURES, dtype=np.float32)
    nodes = [
        node("MatMul", "x V", "v"),
        node("Add", "v c", "h"),
        node("MatMul", "h W", "z"),
        node("Add", "z b", "y"),
    ]
    head = load_head(save(tmp_path, build(nodes, {**LINEAR, "V": inner, "c": BIAS[:FEATURES]})))
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_outputs_of_the_same_layer_agree_on_the_head(tmp_path: Path) -> None:
    nodes = [*linear("logits"), node("Softmax", "logits", "probabilities")]
    head = load_head(save(tmp_path, build(nodes, LINEAR, outputs="logits probabilities")))
    assert same_bits(head.weight, WEIGHT)


def save_with_external_data(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save_model(
        build(linear("y"), LINEAR), path, save_as_external_data=True, location="model.data", size_threshold=0
    )
    return path


def test_weights_are_read_from_a_file_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_with_external_data(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    head = load_head(path)
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_a_missing_data_file_is_reported(tmp_path: Path) -> None:
    path = save_with_external_data(tmp_path)
    (tmp_path / "model.data").unlink()
    with pytest.raises(LoadError, match=r"tensor 'W'.*data file that belongs beside it"):
        load_head(path)


def test_a_data_file_cut_short_is_reported(tmp_path: Path) -> None:
    path = save_with_external_data(tmp_path)
    (tmp_path / "model.data").write_bytes((tmp_path / "model.data").read_bytes()[:10])
    with pytest.raises(LoadError, match="cut short"):
        load_head(path)


def test_a_data_file_outside_the_models_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    path = save_with_external_data(tmp_path / "inside")
    (tmp_path / "inside" / "model.data").rename(tmp_path / "model.data")
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = "../model.data"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(LoadError, match="tensor 'W'"):
        load_head(path)


def two_layers() -> onnx.ModelProto:
    """An inner layer (V, c), a ReLU, and the head (W, b)."""
    nodes = [
        node("Gemm", "x V c", "v", transB=1),
        node("Relu", "v", "h"),
        node("MatMul", "h W", "z"),
        node("Add", "z b", "y"),
    ]
    return build(nodes, {**LINEAR, "V": WEIGHT[:FEATURES], "c": BIAS[:FEATURES], "ids": integers(1, 2)})


def test_tensor_chooses_a_layer_with_its_own_orientation_and_bias(tmp_path: Path) -> None:
    path = save(tmp_path, two_layers())
    inner, outer = load_head(path, tensor="V"), load_head(path, tensor="W")
    assert same_bits(inner.weight, WEIGHT[:FEATURES])
    assert same_bits(inner.bias, BIAS[:FEATURES])
    assert same_bits(outer.weight, WEIGHT)
    assert same_bits(outer.bias, BIAS)


def test_bias_tensor_replaces_the_bias(tmp_path: Path) -> None:
    constants = {**LINEAR, "other": BIAS + 1}
    head = load_head(save(tmp_path, build(linear("y"), constants)), bias_tensor="other")
    assert same_bits(head.bias, BIAS + 1)


def test_transpose_flips_the_deduced_orientation(tmp_path: Path) -> None:
    model = build([node("MatMul", "x W", "y")], {"W": BY_FEATURE})
    assert same_bits(load_head(save(tmp_path, model), transpose=True).weight, BY_FEATURE)


def test_a_tensor_no_layer_uses_is_taken_as_stored(tmp_path: Path) -> None:
    model = build([node("Gather", "W ids", "y")], {"W": WEIGHT, "ids": integers(0)})
    path = save(tmp_path, model)
    assert same_bits(load_head(path, tensor="W").weight, WEIGHT)
    assert same_bits(load_head(path, tensor="W", transpose=True).weight, BY_FEATURE)


def test_a_wrong_tensor_name_lists_the_candidates(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'Q' not found \(5 tensors\).*W \(4, 6\), V \(4, 4\)\..*--tensor"):
        load_head(save(tmp_path, two_layers()), tensor="Q")


def test_a_tensor_that_is_no_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'b' has shape \(6,\), expected a matrix"):
        load_head(save(tmp_path, two_layers()), tensor="b")


def test_a_wrong_bias_name_names_the_layers_own_bias(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'q' not found .*added to the layer: b\).*--bias-tensor"):
        load_head(save(tmp_path, two_layers()), bias_tensor="q")


def test_a_bias_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"bias has shape \(4,\) but the weight has 6 classes"):
        load_head(save(tmp_path, two_layers()), bias_tensor="c")


def test_a_quantised_tensor_is_refused(tmp_path: Path) -> None:
    model = build([node("MatMul", "x W", "y")], {"W": np.ones((FEATURES, CLASSES), np.int8)})
    with pytest.raises(LoadError, match=r"'W' has type INT8; expected FLOAT16.*scales"):
        load_head(save(tmp_path, model))


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_a_scaled_gemm_is_refused(tmp_path: Path, factor: str) -> None:
    model = build([node("Gemm", "x W b", "y", **{factor: 2.0})], LINEAR)
    with pytest.raises(LoadError, match="uses 'W' has alpha or beta other than 1"):
        load_head(save(tmp_path, model))


def test_two_biases_are_refused_unless_one_is_chosen(tmp_path: Path) -> None:
    nodes = [node("Gemm", "x W b", "z"), node("Add", "z prior", "y")]
    path = save(tmp_path, build(nodes, {**LINEAR, "prior": BIAS + 1}))
    with pytest.raises(LoadError, match=r"2 constants are added .*: prior, b\..*bias_tensor="):
        load_head(path)
    assert same_bits(load_head(path, bias_tensor="b").bias, BIAS)


def test_classes_cut_into_groups_are_refused_unless_chosen(tmp_path: Path) -> None:
    nodes = [*linear(), node("Reshape", "z groups", "r"), node("Softmax", "r", "y")]
    path = save(tmp_path, build(nodes, {**LINEAR, "groups": integers(-1, 3, 2)}))
    with pytest.raises(LoadError, match=r"6 columns but is reshaped to \[-1, 3, 2\].*tensor='W'"):
        load_head(path)
    assert same_bits(load_head(path, tensor="W").weight, WEIGHT)


@pytest.mark.parametrize(
    ("character", "labels"),
    [
        ("a\nb\nc\nd", ("<blank>", "a", "b", "c", "d", " ")),
        ("a\nb\nc\nd\n", ("<blank>", "a", "b", "c", "d", " ")),
        ("a\n\x85\n\u2028\n\x0c", ("<blank>", "a", "\x85", "\u2028", "\x0c", " ")),
        ("a\nb\nc\nd\n ", ("<blank>", "a", "b", "c", "d", " ")),
        ("a\nb\nc\nd\ne\nf", ("a", "b", "c", "d", "e", "f")),
        ("a\nb\nc", None),
        ("a\nb\nc\nd\ne\nf\ng", None),
        ("", None),
    ],
    ids=["blank and space", "final newline", "odd separators", "own space", "all", "few", "many", "empty"],
)
def test_labels_of_recognisers_are_taken_only_if_they_fit(
    tmp_path: Path, character: str, labels: tuple[str, ...] | None
) -> None:
    assert load_head(save(tmp_path, build(linear("y"), LINEAR, character=character))).labels == labels


def test_an_empty_label_list_does_not_name_the_only_class(tmp_path: Path) -> None:
    model = build([node("MatMul", "x W", "y")], {"W": BY_FEATURE[:, :1]}, character="")
    assert load_head(save(tmp_path, model)).labels is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"garbage",
        b"\x00" * 64,
        b"\xff" * 64,
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    ],
    ids=["empty", "text", "zeros", "ones", "git lfs pointer"],
)
def test_garbage_is_refused(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(garbage)
    with pytest.raises(LoadError, match=r"no readable ONNX model|no complete model"):
        load_head(tmp_path / "model.onnx")


def test_a_model_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    graph_only = onnx.ModelProto(graph=build(linear("y"), LINEAR).graph)
    data = graph_only.SerializeToString()
    for length in range(len(data)):
        (tmp_path / "model.onnx").write_bytes(data[:length])
        with pytest.raises(LoadError):
            load_head(tmp_path / "model.onnx")


def test_a_tensor_with_bytes_missing_is_refused(tmp_path: Path) -> None:
    model = build(linear("y"), LINEAR)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(LoadError, match=r"'W' \(shape \(4, 6\)\) can't be read"):
        load_head(save(tmp_path, model))
