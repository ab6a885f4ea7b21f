"""Heads in ONNX files: every way to write the same layer, and every graph that must be refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_writer import CLASSES, FEATURES, Constants, build, constant_node, node, save
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from argmaxable.core.boxes import Box
from argmaxable.core.errors import HeadError, LoadError
from argmaxable.models import load_head
from argmaxable.models.onnx.outline import PLACE, outline
from argmaxable.models.onnx.reader import find
from argmaxable.models.protobuf import varint
from argmaxable.models.registry import ReadOptions

WEIGHT = np.random.default_rng(0).normal(size=(CLASSES, FEATURES)).astype(np.float32)
BIAS = np.random.default_rng(1).normal(size=CLASSES).astype(np.float32)
BY_FEATURE = np.ascontiguousarray(WEIGHT.T)


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
    Variant(
        "convolution",
        [node("Reshape", "x image", "i"), node("Conv", "i W b", "z"), node("Flatten", "z", "y")],
        {"W": WEIGHT[:, :, None, None], "b": BIAS, "image": integers(1, FEATURES, 1, 1)},
    ),
    Variant(
        "convolution over one axis, bias added",
        [
            node("Reshape", "x image", "i"),
            node("Conv", "i W", "c"),
            node("Add", "c b", "z"),
            node("Softmax", "z", "y", axis=1),
        ],
        {"W": WEIGHT[:, :, None], "b": BIAS[:, None], "image": integers(1, FEATURES, 1)},
    ),
    Variant(
        "mean of a convolution's logits",
        [
            node("Reshape", "x image", "i"),
            node("Conv", "i W b", "c"),
            node("GlobalAveragePool", "c", "z"),
            node("Softmax", "z", "y", axis=1),
        ],
        {"W": WEIGHT[:, :, None, None], "b": BIAS, "image": integers(1, FEATURES, 1, 1)},
    ),
    Variant(
        "bias as a column",
        [node("Reshape", "column row", "b"), *linear("y")],
        {"W": BY_FEATURE, "column": BIAS[:, None], "row": integers(1, -1)},
    ),
    after_linear("temperature", node("Div", "z T", "t"), node("Softmax", "t", "y"), T=np.float32(0.7)),
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


def test_a_quantised_tensor_without_scale_is_refused(tmp_path: Path) -> None:
    model = build([node("MatMul", "x W", "y")], {"W": np.ones((FEATURES, CLASSES), np.int8)})
    with pytest.raises(LoadError, match=r"'W' has type int8; expected float16.*scales"):
        load_head(save(tmp_path, model))


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 1.0), (1.0, 0.25), (-0.5, 4.0), (1.0, 0.0)])
def test_a_gemm_scaled_by_powers_of_two_keeps_its_dtype(tmp_path: Path, alpha: float, beta: float) -> None:
    head = load_head(save(tmp_path, build([node("Gemm", "x W b", "y", alpha=alpha, beta=beta)], LINEAR)))
    assert same_bits(head.weight, WEIGHT * np.float32(alpha))
    assert head.bias is not None
    assert np.array_equal(head.bias, BIAS * np.float32(beta))


def test_a_gemm_scaled_by_other_factors_is_exact_in_float64(tmp_path: Path) -> None:
    factor = float(np.float32(0.1))
    head = load_head(save(tmp_path, build([node("Gemm", "x W b", "y", alpha=factor, beta=factor)], LINEAR)))
    assert same_bits(head.weight, WEIGHT.astype(np.float64) * factor)
    assert same_bits(head.bias, BIAS.astype(np.float64) * factor)


def test_a_factor_that_would_round_float64_weights_is_refused(tmp_path: Path) -> None:
    constants = {name: array.astype(np.float64) for name, array in LINEAR.items()}
    path = save(tmp_path, build([node("Gemm", "x W b", "y", alpha=0.1)], constants))
    with pytest.raises(LoadError, match=r"multiplying float64 values by 0\.1.* would round them"):
        load_head(path)


@pytest.mark.parametrize("stored", [np.float16, ml_dtypes.bfloat16])
def test_a_weight_that_is_widened_comes_back_as_stored(tmp_path: Path, stored: Any) -> None:
    nodes = [node("Cast", "V", "W", to=TensorProto.FLOAT), *linear("y")]
    head = load_head(save(tmp_path, build(nodes, {"V": BY_FEATURE.astype(stored), "b": BIAS})))
    assert same_bits(head.weight, WEIGHT.astype(stored))


def test_a_weight_that_is_narrowed_comes_back_rounded_as_the_model_rounds_it(tmp_path: Path) -> None:
    nodes = [
        node("Cast", "V", "U", to=TensorProto.FLOAT16),
        node("Cast", "U", "W", to=TensorProto.FLOAT),
        *linear("y"),
    ]
    head = load_head(save(tmp_path, build(nodes, {"V": BY_FEATURE, "b": BIAS})))
    assert same_bits(head.weight, WEIGHT.astype(np.float16))


def test_a_weight_that_is_cast_to_integers_is_refused(tmp_path: Path) -> None:
    nodes = [node("Cast", "V", "W", to=TensorProto.INT32), *linear("y")]
    with pytest.raises(LoadError, match="'V' is cast to int32, no type for weights"):
        load_head(save(tmp_path, build(nodes, {"V": BY_FEATURE, "b": BIAS})))


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


@pytest.mark.parametrize(
    "names", ["{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e', 5: 'f'}", "['a', 'b', 'c', 'd', 'e', 'f']"]
)
def test_labels_of_ultralytics_are_read_as_data(tmp_path: Path, names: str) -> None:
    model = build(linear("y"), LINEAR)
    helper.set_model_props(model, {"names": names})
    assert load_head(save(tmp_path, model)).labels == tuple("abcdef")


@pytest.mark.parametrize(
    "names", ["__import__('os').abort()", "{0: 'a'}", "(" * 5000, "{0: 1}", "\x00", "a" * 2**20]
)
def test_names_that_are_no_labels_are_left_out(tmp_path: Path, names: str) -> None:
    model = build(linear("y"), LINEAR)
    helper.set_model_props(model, {"names": names})
    assert load_head(save(tmp_path, model)).labels is None


def test_labels_are_found_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "inference.yml").write_text("PostProcess:\n  character_dict:\n  - a\n  - b\n  - c\n  - '!'\n")
    head = load_head(save(tmp_path, build(linear("y"), LINEAR)))
    assert head.labels == ("<blank>", "a", "b", "c", "!", " ")


def test_labels_are_found_above_a_folder_called_onnx(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"id2label": {str(n): f"class {n}" for n in range(CLASSES)}})
    )
    (tmp_path / "onnx").mkdir()
    head = load_head(save(tmp_path / "onnx", build(linear("y"), LINEAR)))
    assert head.labels == tuple(f"class {n}" for n in range(CLASSES))


def test_the_models_own_labels_come_before_a_files(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("1\n2\n3\n4\n5\n6\n")
    head = load_head(save(tmp_path, build(linear("y"), LINEAR, character="a\nb\nc\nd\ne\nf")))
    assert head.labels == tuple("abcdef")


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
        b"neither a model nor a pointer to one\n",
    ],
    ids=["empty", "text", "zeros", "ones", "sentence"],
)
def test_garbage_is_refused(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(garbage)
    with pytest.raises(LoadError, match=r"not a readable ONNX model|not a complete model"):
        load_head(tmp_path / "model.onnx")


def test_a_model_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    graph_only = onnx.ModelProto(graph=build(linear("y"), LINEAR).graph)
    data = graph_only.SerializeToString()
    for length in range(len(data)):
        (tmp_path / "model.onnx").write_bytes(data[:length])
        with pytest.raises((LoadError, HeadError)):
            find(tmp_path / "model.onnx", ReadOptions()).head("short")


def test_a_tensor_with_bytes_missing_is_refused(tmp_path: Path) -> None:
    model = build(linear("y"), LINEAR)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(LoadError, match=r"'W' \(shape \(4, 6\)\) can't be read"):
        load_head(save(tmp_path, model))


@pytest.mark.parametrize("dims", [(-1, 6), (4, -6), (0, 6), (2**40, 2**40), (4, 7)])
def test_an_absurd_shape_is_refused(tmp_path: Path, dims: tuple[int, int]) -> None:
    model = build(linear("y"), LINEAR)
    model.graph.initializer[0].dims[:] = dims
    with pytest.raises(LoadError, match="'W'"):
        load_head(save(tmp_path, model))


def test_an_unknown_type_of_numbers_is_refused(tmp_path: Path) -> None:
    model = build(linear("y"), LINEAR)
    model.graph.initializer[0].data_type = 999
    with pytest.raises(LoadError, match=r"type 999 .*not an array of numbers"):
        load_head(save(tmp_path, model))


def test_a_file_too_large_for_protobuf_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(2**33)  # sparse: takes no space
    with pytest.raises(LoadError, match=r"8,589,934,592 bytes.*external data"):
        load_head(tmp_path / "model.onnx")


# ---------------------------------------------------------------------- weights left in the file

LARGE = np.random.default_rng(8).normal(size=(700, FEATURES)).astype(np.float32)
LARGE_NODES = [node("Gemm", "x L", "y", transB=1)]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_large_weight_is_read_from_its_place(tmp_path: Path, dtype: Any) -> None:
    model = build(LARGE_NODES, {"before": LARGE, "L": LARGE.astype(dtype), "after": LARGE})
    assert same_bits(load_head(save(tmp_path, model)).weight, LARGE.astype(dtype))


def test_a_large_constant_node_is_read_from_its_place(tmp_path: Path) -> None:
    model = build([constant_node("L", LARGE), *LARGE_NODES], {})
    assert same_bits(load_head(save(tmp_path, model)).weight, LARGE)


@pytest.mark.parametrize("same", [True, False])
def test_large_weights_in_two_branches_are_compared_by_their_values(tmp_path: Path, same: bool) -> None:
    inner = [node("Gemm", "x L", "out", transB=1)]
    then, otherwise = (
        branch("then", inner, "out", {"L": LARGE}),
        branch("else", inner, "out", {"L": LARGE + (not same)}),
    )
    path = save(tmp_path, build(choice(then, otherwise), NOUGHT))
    if same:
        assert same_bits(load_head(path).weight, LARGE)
    else:
        with pytest.raises(LoadError, match="different linear layers"):
            load_head(path)


def test_numbers_of_four_bits_are_unpacked(tmp_path: Path) -> None:
    steps = np.random.default_rng(9).integers(-8, 8, size=(700, FEATURES)).astype(ml_dtypes.int4)
    nodes = [node("DequantizeLinear", "q s", "L"), *LARGE_NODES]
    model = build(nodes, {"q": steps, "s": np.array(0.5, np.float32)})
    assert same_bits(load_head(save(tmp_path, model)).weight, steps.astype(np.float64) * 0.5)


@pytest.mark.parametrize("change", [-4, 4])
def test_a_large_weight_with_bytes_missing_or_to_spare_is_refused(tmp_path: Path, change: int) -> None:
    model = build(LARGE_NODES, {"L": LARGE})
    raw = model.graph.initializer[0].raw_data
    model.graph.initializer[0].raw_data = raw[:change] if change < 0 else raw + raw[:change]
    with pytest.raises(LoadError, match=rf"'L' \(shape \(700, 4\)\) can't be read.*{11_200 + change:,}"):
        load_head(save(tmp_path, model))


def test_an_outline_is_the_model_without_its_large_weights() -> None:
    model = build(
        [
            *choice(branch("t", TWICE, "out", LINEAR), branch("e", TWICE, "out", {"L": LARGE})),
            constant_node("C", LARGE),
        ],
        {"D": LARGE, **NOUGHT},
    )
    data = model.SerializeToString()
    slim = outline(data)
    assert len(slim) < len(data) - 3 * LARGE.nbytes + 400
    copy = onnx.load_model_from_string(slim)
    places = [entry(copy.graph.initializer[0], PLACE), entry(copy.graph.node[-1].attribute[0].t, PLACE)]
    for place in places:
        start, length = map(int, place.value.split())
        assert data[start : start + length] == LARGE.tobytes()
    copy.graph.initializer[0].CopyFrom(model.graph.initializer[0])
    copy.graph.node[-1].attribute[0].t.CopyFrom(model.graph.node[-1].attribute[0].t)
    for each, original in zip(copy.graph.node[2].attribute, model.graph.node[2].attribute, strict=True):
        each.g.initializer[0].CopyFrom(original.g.initializer[0])
    assert copy == model


def test_messages_nested_too_deep_are_refused(tmp_path: Path) -> None:
    data = b""
    for number in [7, *[1, 5, 6] * 40][::-1]:
        data = varint(number << 3 | 2) + varint(len(data)) + data
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(LoadError, match="nested more than 100 deep"):
        load_head(tmp_path / "model.onnx")


# ---------------------------------------------------------------------- data files


def external(path: Path) -> onnx.ModelProto:
    return onnx.load(path, load_external_data=False)


def entry(tensor: TensorProto, key: str) -> Any:
    return next(each for each in tensor.external_data if each.key == key)


def test_two_tensors_in_one_data_file_are_told_apart_by_offset(tmp_path: Path) -> None:
    path = save_with_external_data(tmp_path)
    offsets = {int(entry(tensor, "offset").value) for tensor in external(path).graph.initializer}
    assert len(offsets) == 2
    assert same_bits(load_head(path).bias, BIAS)


def test_a_length_that_is_missing_follows_from_the_shape(tmp_path: Path) -> None:
    path = save_with_external_data(tmp_path)
    model = external(path)
    for tensor in model.graph.initializer:
        tensor.external_data.remove(entry(tensor, "length"))
    path.write_bytes(model.SerializeToString())
    assert same_bits(load_head(path).weight, WEIGHT)


def test_no_more_is_read_than_the_shape_needs(tmp_path: Path) -> None:
    path = save_with_external_data(tmp_path)
    model = external(path)
    with (tmp_path / "model.data").open("r+b") as file:
        file.truncate(2**40)  # sparse: takes no space, but could not be read at once
    for tensor in model.graph.initializer:
        entry(tensor, "length").value = "0"  # the rest of the file, for ONNX Runtime what the shape needs
    path.write_bytes(model.SerializeToString())
    assert same_bits(load_head(path).weight, WEIGHT)
    for tensor in model.graph.initializer:
        entry(tensor, "length").value = str(2**39)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(LoadError, match=rf"and it has {2**39:,}"):
        load_head(path)


@pytest.mark.parametrize(
    ("key", "value"), [("offset", "-8"), ("offset", "x"), ("offset", "9999999"), ("length", "-1")]
)
def test_a_wrong_place_in_a_data_file_is_reported(tmp_path: Path, key: str, value: str) -> None:
    path = save_with_external_data(tmp_path)
    model = external(path)
    for tensor in model.graph.initializer:
        entry(tensor, key).value = value
    path.write_bytes(model.SerializeToString())
    with pytest.raises(LoadError, match=r"'W' .*can't be read"):
        load_head(path)


# ---------------------------------------------------------------------- If and several outputs


def branch(name: str, nodes: Sequence[NodeProto], output: str, constants: Constants | None = None) -> Any:
    tensors = [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    return helper.make_graph(list(nodes), name, [], outputs, tensors)


def choice(then: Any, otherwise: Any, output: str = "y") -> list[NodeProto]:
    """An If on the sign of the first feature, so that both branches can be run."""
    return [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total nought", "condition"),
        helper.make_node("If", ["condition"], [output], then_branch=then, else_branch=otherwise),
    ]


NOUGHT: Constants = {"nought": np.float32(0)}  # type: ignore[dict-item]  # a scalar array
TWICE = [node("MatMul", "x W", "t"), node("Add", "t b", "out")]
BRANCHES = {
    "weights outside": (
        choice(branch("then", TWICE, "out"), branch("else", TWICE, "out")),
        {**LINEAR, **NOUGHT},
    ),
    "equal weights in both": (
        choice(branch("then", TWICE, "out", LINEAR), branch("else", TWICE, "out", LINEAR)),
        NOUGHT,
    ),
    "softmax after": (
        [*choice(branch("then", TWICE, "out"), branch("else", TWICE, "out"), "z"), node("Softmax", "z", "y")],
        {**LINEAR, **NOUGHT},
    ),
    "constants in both": (
        choice(
            branch("then", [constant_node("W", BY_FEATURE), constant_node("b", BIAS), *TWICE], "out"),
            branch("else", [constant_node("W", BY_FEATURE), constant_node("b", BIAS), *TWICE], "out"),
        ),
        NOUGHT,
    ),
    "bias after": (
        [
            *choice(branch("then", TWICE[:1], "t"), branch("else", TWICE[:1], "t"), "z"),
            node("Add", "z b", "y"),
        ],
        {**LINEAR, **NOUGHT},
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_head_inside_if_branches_is_found(tmp_path: Path, name: str) -> None:
    nodes, constants = BRANCHES[name]
    model = build(nodes, constants)
    head = load_head(save(tmp_path, model))
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)
    for x in np.random.default_rng(3).normal(size=(10, FEATURES)).astype(np.float32):
        (answer,) = ReferenceEvaluator(model).run(None, {"x": x[None]})
        assert np.argmax(answer) == np.argmax(head.weight @ x + head.biases())


def test_the_branch_that_has_a_head_is_taken(tmp_path: Path) -> None:
    other = branch("else", [node("Relu", "x", "r"), node("Pad", "r pads", "out")], "out")
    model = build(
        choice(branch("then", TWICE, "out"), other), {**LINEAR, **NOUGHT, "pads": integers(0, 0, 0, 2)}
    )
    finding = find(save(tmp_path, model), ReadOptions())
    assert same_bits(finding.head("h").weight, WEIGHT)
    assert "only one branch leads to a linear layer" in finding.notes[0]


def test_different_weights_of_one_name_in_two_branches_are_refused(tmp_path: Path) -> None:
    then, otherwise = (
        branch("then", TWICE, "out", LINEAR),
        branch("else", TWICE, "out", {**LINEAR, "W": BY_FEATURE + 1}),
    )
    with pytest.raises(
        LoadError, match=r"branches of an If .*different linear layers.*y/then_branch/W \(4, 6\)"
    ):
        load_head(save(tmp_path, build(choice(then, otherwise), NOUGHT)))


def test_the_output_called_logits_is_taken_before_states(tmp_path: Path) -> None:
    nodes = [node("Gemm", "x V", "present.0.key"), *linear("logits"), node("Relu", "x", "state")]
    path = save(
        tmp_path,
        build(nodes, {**LINEAR, "V": BY_FEATURE[:, :FEATURES]}, outputs="present.0.key logits state"),
    )
    finding = find(path, ReadOptions())
    assert same_bits(finding.head("h").weight, WEIGHT)
    assert finding.notes == ("outputs that don't come from this layer: present.0.key, state",)
    assert [other.name for other in finding.alternatives] == ["V"]


# ---------------------------------------------------------------------- quantised


STEPS = np.random.default_rng(4).integers(-128, 128, size=(FEATURES, CLASSES)).astype(np.int8)
SCALES = np.random.default_rng(5).uniform(0.001, 0.1, size=CLASSES).astype(np.float32)
ZEROS = np.random.default_rng(6).integers(-20, 20, size=CLASSES).astype(np.int8)


@pytest.mark.parametrize("offset", [0, 128], ids=["int8", "uint8"])
@pytest.mark.parametrize("zero_point", [True, False], ids=["zero point", "no zero point"])
@pytest.mark.parametrize("per", ["tensor", "class", "class, by class"])
def test_dequantised_weights_are_exact(tmp_path: Path, offset: int, zero_point: bool, per: str) -> None:
    dtype = np.uint8 if offset else np.int8
    steps, scales = (STEPS.astype(int) + offset).astype(dtype), SCALES if per != "tensor" else SCALES[0]
    zeros = (ZEROS.astype(int) + offset).astype(dtype) if per != "tensor" else np.array(3 + offset, dtype)
    expected = ((steps.astype(float) - (zeros if zero_point else 0)) * scales).T
    by_class = per == "class, by class"
    constants = {"q": steps.T.copy() if by_class else steps, "s": np.asarray(scales), "z": zeros, "b": BIAS}
    nodes = [
        node("DequantizeLinear", "q s z" if zero_point else "q s", "w", axis=0 if by_class else 1),
        node("Gemm", "x w b", "y", transB=int(by_class)),
    ]
    model = build(nodes, constants)
    if not zero_point and offset == 0:  # without a zero point uint8 is meant, where onnx's evaluator is asked
        model.graph.node[0].input.append("")
    head = load_head(save(tmp_path, model))
    assert same_bits(head.weight, expected)
    assert same_bits(head.bias, BIAS)


def test_a_quantised_convolution_is_read(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", "x image", "i"),
        node("DequantizeLinear", "q s", "w", axis=0),
        node("Conv", "i w b", "y"),
    ]
    constants = {"q": STEPS.T[:, :, None, None], "s": SCALES, "b": BIAS, "image": integers(1, FEATURES, 1, 1)}
    head = load_head(save(tmp_path, build(nodes, constants)))
    assert same_bits(head.weight, STEPS.T * SCALES[:, None].astype(float))


@pytest.mark.parametrize("name", ["s", "z"])
def test_scales_that_do_not_fit_are_refused(tmp_path: Path, name: str) -> None:
    nodes = [node("DequantizeLinear", "q s z", "w", axis=1), node("MatMul", "x w", "y")]
    constants = {"q": STEPS, "s": SCALES, "z": ZEROS}
    constants[name] = constants[name][:-1]
    with pytest.raises(
        LoadError, match=r"5 (scales|zero points) don't fit a quantised tensor of shape \(4, 6\)"
    ):
        load_head(save(tmp_path, build(nodes, constants)))


def test_a_bias_too_large_to_be_exact_is_refused(tmp_path: Path) -> None:
    bias = np.full(CLASSES, 2**30 + 1, np.int32)
    nodes = [node("DequantizeLinear", "q s", "b"), *linear("y")]
    with pytest.raises(LoadError, match=r"can't be dequantised without rounding"):
        load_head(save(tmp_path, build(nodes, {"W": BY_FEATURE, "q": bias, "s": SCALES[0]})))


FLOAT_MODELS = {
    "matmul, add": linear("y"),
    "gemm": [node("Gemm", "x W b", "y")],
    "softmax": [*linear(), node("Softmax", "z", "y")],
    "activation": [node("Tanh", "x", "h"), node("Gemm", "h W b", "y")],
}
INPUTS = np.random.default_rng(7).normal(size=(40, 1, FEATURES)).astype(np.float32)


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    return model


def run(model: onnx.ModelProto) -> list[list[NDArray[Any]]]:
    """The outputs of onnxruntime for each of INPUTS."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [session.run(None, {"x": x}) for x in INPUTS]


@pytest.mark.parametrize("name", FLOAT_MODELS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8], ids=["int8", "uint8"])
def test_a_dynamically_quantised_model_is_close_to_its_twin_and_answers_as_its_head_says(
    tmp_path: Path, name: str, per_channel: bool, kind: Any
) -> None:
    path = save(tmp_path, build(FLOAT_MODELS[name], LINEAR))
    quantize_dynamic(path, tmp_path / "q.onnx", weight_type=kind, per_channel=per_channel)
    head = load_head(tmp_path / "q.onnx")
    assert np.abs(head.weight - WEIGHT).max() < 0.02
    assert same_bits(head.bias, BIAS)
    model = onnx.load(tmp_path / "q.onnx")
    quantiser = next(each for each in model.graph.node if each.op_type == "DynamicQuantizeLinear")
    # Not onnxruntime: without VNNI instructions its sums of int8 products saturate.
    evaluator = ReferenceEvaluator(with_outputs(model, quantiser.output))
    for x in INPUTS:
        answer, steps, scale, zero = evaluator.run(None, {"x": x})
        features = (steps.astype(float) - zero) * scale
        assert np.argmax(answer) == np.argmax(features @ head.weight.T + head.biases())


class Calibration(CalibrationDataReader):
    """onnxruntime asks for inputs one by one to learn the ranges of tensors."""

    def __init__(self) -> None:
        self.inputs = iter([{"x": x} for x in INPUTS])

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self.inputs, None)


@pytest.mark.parametrize("name", FLOAT_MODELS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("layout", [QuantFormat.QDQ, QuantFormat.QOperator], ids=["QDQ", "operators"])
def test_a_statically_quantised_model_answers_as_its_head_says(
    tmp_path: Path, name: str, per_channel: bool, layout: Any
) -> None:
    path = save(tmp_path, build(FLOAT_MODELS[name], LINEAR))
    quantize_static(path, tmp_path / "q.onnx", Calibration(), quant_format=layout, per_channel=per_channel)
    finding = find(tmp_path / "q.onnx", ReadOptions())
    head = finding.head("q")
    assert np.abs(head.weight - WEIGHT).max() < 0.02
    assert finding.notes == (
        "the model rounds its logits to 8 bits, so classes that differ here may be equal there",
    )
    model = onnx.load(tmp_path / "q.onnx")
    values = {tensor.name: numpy_helper.to_array(tensor).astype(float) for tensor in model.graph.initializer}
    quantiser = next(each for each in model.graph.node if each.op_type == "QuantizeLinear")
    _, scale, zero = quantiser.input
    in_steps = layout == QuantFormat.QOperator and finding.bias is not None and finding.bias.dtype == "int32"
    for answer, steps in run(with_outputs(model, quantiser.output)):
        features = (steps - values[zero]) * (1.0 if in_steps else values[scale])
        logits = features @ head.weight.T + head.biases()
        # The model has rounded logits: the head's best is among the equal best ones, or a step below.
        ranks = np.unique(answer)
        assert np.ravel(answer)[np.argmax(logits)] >= ranks[-2:].min()
        assert finding.inputs is not None
        assert isinstance(finding.inputs.domain, Box)
        assert (features >= finding.inputs.domain.lo - 1e-9).all()
        assert (features <= finding.inputs.domain.hi + 1e-9).all()


# ---------------------------------------------------------------------- damaged files


VALID = build(
    [*choice(branch("then", TWICE, "out"), branch("else", TWICE, "out"), "z"), node("Softmax", "z", "y")],
    {**LINEAR, **NOUGHT},
    character="a\nb\nc\nd",
).SerializeToString()


@settings(max_examples=120)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_bytes_changed_anywhere_raise_nothing_but_load_errors(
    tmp_path: Path, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(VALID)
    for place, value in changes:
        data[place] = value
    (tmp_path / "model.onnx").write_bytes(data)
    with contextlib.suppress(LoadError, HeadError):
        find(tmp_path / "model.onnx", ReadOptions()).head("damaged")
