"""Heads in PaddlePaddle models, which `paddle_writer` makes."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzz_files import disturbed
from norms import rounded
from paddle_writer import (
    CLASSES,
    FEATURES,
    Model,
    attribute,
    classifier,
    delimited,
    matrix,
    number,
    operation,
    tensor_variable,
)

from argmaxable import AmbiguousError, Box, HeadError, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

ROW = {"s": [-1, FEATURES]}


def changed(model: Model, place: int, new: bytes) -> Model:
    """The model with another operation in that place."""
    operations = list(model.operations)
    operations[place] = new
    return replace(model, operations=operations)


def softmax(**attributes: Any) -> bytes:
    return operation("softmax", {"X": "z"}, {"Out": "y"}, **attributes)


def product(kind: str = "matmul_v2", **attributes: Any) -> bytes:
    return operation(kind, {"X": "x", "Y": "w"}, {"Out": "xw"}, **attributes)


def bias(**attributes: Any) -> bytes:
    return operation("elementwise_add", {"X": "xw", "Y": "b"}, {"Out": "z"}, **attributes)


def assert_is_head(path: Path, model: Model) -> None:
    head = load_head(path)
    assert np.array_equal(head.weight, model.parameters["w"].T)
    assert head.bias is not None
    assert np.array_equal(head.bias, model.parameters["b"])


# ---------------------------------------------------------------------- which layer


@pytest.mark.parametrize("rank", [2, 3])
def test_the_layer_before_the_softmax_is_the_head(tmp_path: Path, rank: int) -> None:
    model = classifier(rank)
    path = model.save(tmp_path)
    finding = find_head(path)
    assert (finding.format, finding.classes, finding.features) == ("paddle", CLASSES, FEATURES)
    assert str(finding.weight) == "w (4 × 6, float32)"
    assert finding.bias is not None
    assert finding.bias.name == "b"
    assert_is_head(path, model)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_weights_of_every_float_type_are_read_exactly(tmp_path: Path, dtype: str) -> None:
    model = classifier()
    type_ = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    model.parameters["w"] = model.parameters["w"].astype(type_)
    head = load_head(model.save(tmp_path))
    assert head.weight.dtype.name == dtype
    assert np.array_equal(head.weight, model.parameters["w"].T)


@pytest.mark.parametrize(
    "new",
    [
        product("mul", x_num_col_dims=1, y_num_col_dims=1),
        product("matmul", transpose_X=False, transpose_Y=False, alpha=1.0),
    ],
)
def test_older_products_are_known(tmp_path: Path, new: bytes) -> None:
    model = changed(classifier(), 0, new)
    assert_is_head(model.save(tmp_path), model)


def test_a_transposed_weight_is_turned(tmp_path: Path) -> None:
    model = changed(classifier(), 0, product(trans_x=False, trans_y=True))
    model.parameters["w"] = matrix((CLASSES, FEATURES))
    assert np.array_equal(load_head(model.save(tmp_path)).weight, model.parameters["w"])


def test_a_convolution_of_one_position_is_a_head(tmp_path: Path) -> None:
    model = changed(
        classifier(4), 0, operation("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "xw"}, groups=1)
    )
    model = changed(changed(model, 1, bias(axis=1)), 2, softmax(axis=1))
    model.parameters["w"] = matrix((CLASSES, FEATURES, 1, 1))
    head = load_head(model.save(tmp_path))
    assert np.array_equal(head.weight, model.parameters["w"].reshape(CLASSES, FEATURES))
    assert head.bias is not None


def test_a_copy_before_the_output_is_looked_through(tmp_path: Path) -> None:
    model = classifier()
    model.operations.append(
        operation("scale", {"X": "y"}, {"Out": "out"}, scale=1.0, bias=0.0, bias_after_scale=True)
    )
    model.output = "out"
    assert_is_head(model.save(tmp_path), model)


def test_a_tensor_can_be_chosen_by_name(tmp_path: Path) -> None:
    path = changed(classifier(), 2, operation("mystery", {"X": "z"}, {"Out": "y"})).save(tmp_path)
    with pytest.raises(LoadError, match=r"trace ends at paddle:mystery.*w \(4, 6\).*--tensor"):
        find_head(path)
    assert load_head(path, tensor="w").weight.shape == (CLASSES, FEATURES)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("place", "new"),
    [
        (2, softmax(axis=0)),  # over the batch
        (2, softmax(axis=[1])),  # an attribute of another type
        (2, operation("softmax", {"X": "z", "AxisTensor": "a"}, {"Out": "y"})),
        (2, softmax(axis=1, fuse_activation="relu")),
        (2, operation("reshape2", {"X": "z"}, {"Out": "y"}, shape=[-1, 3])),
        (2, operation("flatten_contiguous_range", {"X": "z"}, {"Out": "y"}, start_axis=1, stop_axis=-1)),
        (2, operation("scale", {"X": "z"}, {"Out": "y"}, scale=-1.0)),
        (2, operation("dropout", {"X": "z"}, {"Out": "y"}, is_test=False)),
        (1, bias(axis=0)),  # along the batch
        (0, product("mul", x_num_col_dims=1, y_num_col_dims=2)),
        (0, product("matmul", alpha=-1.0)),
        (0, product("matmul", head_number=2)),
        (0, operation("matmul_v2", {"X": "w", "Y": "x"}, {"Out": "xw"})),
    ],
)
def test_what_may_change_the_order_of_classes_is_refused(tmp_path: Path, place: int, new: bytes) -> None:
    with pytest.raises(LoadError, match=r"no linear layer leads straight|not the axis of its 6 classes"):
        find_head(changed(classifier(), place, new).save(tmp_path))


def test_a_parameter_that_the_program_writes_again_is_not_taken_as_stored(tmp_path: Path) -> None:
    before = operation("mystery", {"X": "x"}, {"Out": "w"})
    with pytest.raises(LoadError, match="no linear layer leads straight to the output"):
        find_head(classifier(2, before).save(tmp_path))


def test_a_variable_that_is_written_twice_is_what_was_written_last(tmp_path: Path) -> None:
    model = changed(classifier(), 2, softmax(axis=-1))
    again = operation("mystery", {"X": "x"}, {"Out": "z"})
    model.operations.insert(2, again)
    with pytest.raises(LoadError, match="trace ends at paddle:mystery"):
        find_head(model.save(tmp_path))
    model.operations.remove(again)
    model.operations.append(again)
    assert_is_head(model.save(tmp_path), model)


def test_a_variable_read_before_it_is_written_is_not_the_later_one(tmp_path: Path) -> None:
    model = classifier()
    model.operations.insert(0, model.operations.pop())
    with pytest.raises(LoadError, match="no linear layer leads straight to the output"):
        find_head(model.save(tmp_path))


def test_control_flow_is_refused(tmp_path: Path) -> None:
    model = classifier()
    path = model.save(tmp_path)
    path.write_bytes(model.program() + delimited(1, model.block()))
    with pytest.raises(LoadError, match=r"2 blocks: loops or branches.*paddle2onnx"):
        find_head(path)


def test_quantised_weights_are_refused(tmp_path: Path) -> None:
    model = classifier()
    model.parameters["w"] = np.ones((FEATURES, CLASSES), np.int8)
    with pytest.raises(LoadError, match="has type int8"):
        load_head(model.save(tmp_path))


# ---------------------------------------------------------------------- domains and labels


@pytest.mark.parametrize(
    ("before", "domain"),
    [
        (operation("relu", {"X": "x"}, {"Out": "s"}), Box(0, np.inf)),
        (operation("swish", {"X": "x"}, {"Out": "s"}, beta=1.0), Box(-0.27847, np.inf)),
        (operation("swish", {"X": "x"}, {"Out": "s"}, beta=2.0), Everywhere()),
        (operation("hard_swish", {"X": "x"}, {"Out": "s"}), Box(-0.375, np.inf)),
        (operation("hard_swish", {"X": "x"}, {"Out": "s"}, offset=4.0), Everywhere()),
        (operation("relu6", {"X": "x"}, {"Out": "s"}, threshold=6.0), Box(0, 6)),
        (operation("relu6", {"X": "x"}, {"Out": "s"}, threshold=3.0), Everywhere()),
        (operation("sigmoid", {"X": "x"}, {"Out": "s"}), Box(0, 1)),
        (operation("mystery", {"X": "x"}, {"Out": "s"}), Everywhere()),
    ],
)
def test_what_feeds_the_head_bounds_its_inputs(tmp_path: Path, before: bytes, domain: Any) -> None:
    inputs = find_head(classifier(2, before, features="s", **ROW).save(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == domain


def test_pooling_and_layout_keep_the_bounds(tmp_path: Path) -> None:
    before = (
        operation("relu", {"X": "x"}, {"Out": "r"}),
        operation("pool2d", {"X": "r"}, {"Out": "p"}, pooling_type="avg", global_pooling=True),
        operation("squeeze2", {"X": "p"}, {"Out": "q", "XShape": "shape"}, axes=[2, 3]),
        operation("reshape2", {"X": "q", "ShapeTensor": "shape"}, {"Out": "s"}, shape=[-1, FEATURES]),
    )
    shapes = {"p": [-1, FEATURES, 1, 1], "x": [-1, FEATURES, -1, -1], "q": [-1, FEATURES], **ROW}
    inputs = find_head(classifier(2, *before, features="s", **shapes).save(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == Box(0, np.inf)


def test_a_layer_norm_bounds_its_inputs_by_a_ball(tmp_path: Path) -> None:
    norm = operation(
        "layer_norm", {"X": "x", "Scale": "g", "Bias": "h"}, {"Y": "s"}, begin_norm_axis=1, epsilon=1e-5
    )
    model = classifier(2, norm, features="s", **ROW)
    model.parameters |= {"g": matrix((FEATURES,), 1), "h": matrix((FEATURES,), 2)}
    inputs = find_head(model.save(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == rounded(LayerNorm, model.parameters["g"].astype(float), model.parameters["h"])


def test_an_axis_of_unknown_length_is_not_taken_as_squeezed(tmp_path: Path) -> None:
    before = (
        operation("relu", {"X": "x"}, {"Out": "r"}),
        operation("squeeze2", {"X": "r"}, {"Out": "s"}, axes=[1]),
    )
    model = classifier(2, *before, features="s", r=[-1, -1, FEATURES], **ROW)
    inputs = find_head(model.save(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == Everywhere()


def test_labels_come_from_the_inference_yml_beside_the_model(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    names = ["一", "二", "'", "d"]
    items = "".join(f"  - {name!r}\n" if name != "'" else "  - ''''\n" for name in names)
    (tmp_path / "inference.yml").write_text(
        f"PostProcess:\n  name: CTCLabelDecode\n  character_dict:\n{items}", encoding="utf-8"
    )
    labels = find_head(path).labels
    assert labels is not None
    assert labels.names == ("<blank>", *names, " ")


# ---------------------------------------------------------------------- ambiguous and damaged files


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (delimited(3, tensor_variable("w", [1], persistable=True)), "two variables are called 'w'"),
        (delimited(4, delimited(3, "relu") * 2), "an operation's type is there twice"),
        (delimited(4, delimited(3, "relu") + delimited(4, attribute("a", 1)) * 2), "attribute 'a' twice"),
        (delimited(4, delimited(3, "relu") + delimited(1, delimited(1, "X")) * 2), "two lists .* 'X'"),
        (delimited(3, delimited(1, "a\0b") + delimited(2, number(1, 7))), "zero byte"),
    ],
)
def test_a_program_with_two_readings_is_refused(tmp_path: Path, extra: bytes, message: str) -> None:
    model = classifier()
    path = model.save(tmp_path)
    path.write_bytes(delimited(1, model.block() + extra))
    with pytest.raises(AmbiguousError, match=message):
        find_head(path)


def test_parameters_of_another_program_are_refused(tmp_path: Path) -> None:
    model = classifier()
    path = model.save(tmp_path)
    weights = path.with_suffix(".pdiparams")
    weights.write_bytes(model.weights() + b"\0")
    with pytest.raises(LoadError, match="belong to this program"):
        find_head(path)
    weights.write_bytes(replace(model, parameters={**model.parameters, "b": matrix((7,))}).weights())
    with pytest.raises(LoadError, match=r"shape \(7,\), but the program declares .*\(6,\)"):
        find_head(path)
    weights.write_bytes(model.weights()[:-1])
    with pytest.raises(LoadError, match="cut short"):
        find_head(path)
    weights.unlink()
    with pytest.raises(LoadError, match=r"inference\.pdiparams, which is not beside it"):
        find_head(path)


def test_the_weights_alone_lead_to_the_program(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    with pytest.raises(LoadError, match=r"pass inference\.pdmodel"):
        find_head(path.with_suffix(".pdiparams"))
    assert find_head(tmp_path).classes == CLASSES


def test_weights_without_any_program_are_refused(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    path.unlink()
    for model in (path.with_suffix(".pdiparams"), tmp_path):
        with pytest.raises(LoadError, match="weights alone have no names"):
            find_head(model)


def test_only_the_head_is_read(tmp_path: Path) -> None:
    model = classifier()
    model.parameters["large"] = np.zeros((1024, 4096), np.float32)
    path = model.save(tmp_path)
    load_head(path)
    tracemalloc.start()
    try:
        load_head(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < model.parameters["large"].nbytes / 8


@pytest.mark.parametrize("part", ["program", "weights"])
def test_changed_files_give_a_head_or_our_errors(tmp_path: Path, part: str) -> None:
    rng = random.Random(part)
    norm = operation("layer_norm", {"X": "x", "Scale": "g"}, {"Y": "s"}, begin_norm_axis=1)
    model = classifier(2, norm, features="s", **ROW)
    model.parameters["g"] = matrix((FEATURES,), 1)
    path = model.save(tmp_path)
    whole = path if part == "program" else path.with_suffix(".pdiparams")
    data, read, refused = whole.read_bytes(), 0, 0
    for _ in range(220):
        whole.write_bytes(disturbed(rng, data))
        try:
            head = find_head(path).head("changed")
        except (LoadError, HeadError):
            refused += 1
        else:
            read += 1
            assert head.weight.size
    assert read > 20
    assert refused > 100
