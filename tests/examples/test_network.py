"""Running a model up to its output layer, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from tiny_ocr import FEATURES, HEIGHT, TinyOcr

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.examples.network import TappedNetwork
from argmaxable.models.finding import Tap
from argmaxable.models.model_ref import ModelRef
from argmaxable.workflow.find_model import FoundModel


def network_of(path: Path) -> TappedNetwork:
    ref = ModelRef(path)
    finding = ref.find()
    return TappedNetwork(path, finding, ref.read(finding))


def line(width: int = 64) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, (3, HEIGHT, width)).astype(np.float32)


def test_the_head_is_found_with_the_tensor_that_feeds_it(found: FoundModel) -> None:
    assert found.finding.taps == (Tap("features"),)


def test_each_input_has_a_row_of_features_for_each_step(tiny: TinyOcr) -> None:
    answer = network_of(tiny.model).features(line())
    assert answer.shape == (32, FEATURES)
    assert answer.dtype == np.float32


def test_many_images_come_back_in_their_order(tiny: TinyOcr) -> None:
    network = network_of(tiny.model)
    widths = [64, 128, 32, 64, 96, 32, 160]
    answers = list(network.features_of((width, line(width)) for width in widths))
    assert [(width, len(features)) for width, features in answers] == [
        (width, width // 2) for width in widths
    ]


def test_the_models_own_answers_are_those_of_the_head_at_the_tapped_features(tiny: TinyOcr) -> None:
    network_of(tiny.model).require_own_answers(line())


def test_a_head_that_does_not_give_the_models_answers_is_refused(tiny: TinyOcr) -> None:
    ref = ModelRef(tiny.model)
    finding = ref.find()
    head = ref.read(finding)
    other = Head(head.weight[::-1].copy(), head.bias, head.labels, name="other")
    with pytest.raises(InputError, match="gives another answer than the model itself"):
        TappedNetwork(tiny.model, finding, other).require_own_answers(line())


def test_a_model_of_several_inputs_is_refused(tiny: TinyOcr, tmp_path: Path) -> None:
    model = onnx.load(tiny.model)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save(model, tmp_path / "four.onnx")
    with pytest.raises(InputError, match="takes 4 images at a time"):
        network_of(tmp_path / "four.onnx")


def test_an_input_that_is_not_an_image_is_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("MatMul", ["h", "W"], ["y"])],
        "vectors",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 5])],
        [onnx.numpy_helper.from_array(np.ones((4, 5), np.float32), "W")],
    )
    path = tmp_path / "vectors.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    with pytest.raises(InputError, match="expected one image"):
        network_of(path)


def test_a_model_without_a_tensor_to_tap_is_refused(tiny: TinyOcr, found: FoundModel) -> None:
    with pytest.raises(InputError, match="0 tensors feed the output layer 'W'"):
        TappedNetwork(tiny.model, replace(found.finding, taps=()), found.head())


def test_only_onnx_models_are_run(tiny: TinyOcr, found: FoundModel) -> None:
    with pytest.raises(InputError, match="only ONNX models can be run here, not npz"):
        TappedNetwork(tiny.model, replace(found.finding, format="npz"), found.head())
