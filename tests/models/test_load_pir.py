"""Heads in programs of PaddlePaddle 3, which `pir_writer` makes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from paddle_writer import CLASSES, FEATURES, matrix
from pir_writer import PirModel, classifier, ended

from argmaxable import AmbiguousError, Box, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = matrix((FEATURES, CLASSES)), matrix((CLASSES,), 6)


def holds_head(path: Path) -> bool:
    head = load_head(path)
    same_bias = head.bias is not None and head.bias.tobytes() == BIAS.tobytes()
    return same_bias and head.weight.tobytes() == np.ascontiguousarray(WEIGHT.T).tobytes()


def test_a_program_in_json_and_the_folder_it_is_in(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    finding = find_head(path)
    assert (finding.format, finding.weight.name, finding.activation) == ("paddle", "w", "softmax")
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)
    assert holds_head(path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert holds_head(tmp_path)


def test_labels_of_inference_yml(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    lines = ["PostProcess:", "  name: CTCLabelDecode", "  character_dict:"]
    lines += [f"  - {each}" for each in "abcdefgh"[: CLASSES - 2]]
    (tmp_path / "inference.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert load_head(path).label(1) == "a"


def test_a_layer_norm_and_axes_that_are_values(tmp_path: Path) -> None:
    model = PirModel()
    gain = model.parameter("gain", np.linspace(1, 2, FEATURES).astype(np.float32))
    shift = model.parameter("shift", np.zeros(FEATURES, np.float32))
    x = model.add("data", [], [-1, FEATURES, 1, -1], name="x")
    flat = model.add("squeeze", [x, model.axes(2)], [-1, FEATURES, -1])
    turned = model.add("transpose", [flat], [-1, -1, FEATURES], perm=[0, 2, 1])
    norm = model.add("layer_norm", [turned, gain, shift], [-1, -1, FEATURES], epsilon=1e-5, begin_norm_axis=2)
    path = ended(model, norm, 3).save(tmp_path)
    finding = find_head(path)
    assert holds_head(path)
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, LayerNorm)


def test_a_convolution_whose_bias_is_reshaped(tmp_path: Path) -> None:
    model = PirModel()
    kernel = model.parameter("w", np.ascontiguousarray(WEIGHT.T).reshape(CLASSES, FEATURES, 1, 1))
    bias = model.parameter("b", BIAS)
    x = model.add("data", [], [-1, FEATURES, 8, 8], name="x")
    shape = [-1, CLASSES, 8, 8]
    product = model.add("conv2d", [x, kernel], shape, paddings=[0, 0], padding_algorithm="EXPLICIT", groups=1,
                        data_format="NCHW")  # fmt: skip
    laid = model.add("reshape", [bias, model.axes(1, -1, 1, 1)], [1, CLASSES, 1, 1])
    logits = model.add("add", [product, laid], shape)
    model.add("fetch", [model.add("softmax", [logits], shape, axis=1)], shape)
    assert holds_head(model.save(tmp_path))


def test_an_operation_that_is_not_known_bounds_nothing(tmp_path: Path) -> None:
    finding = find_head(classifier("mystery").save(tmp_path))
    assert finding.inputs is not None
    assert finding.inputs.domain == Everywhere()


def test_a_parameter_that_is_changed_in_place_is_not_followed(tmp_path: Path) -> None:
    model = PirModel()
    x = model.add("data", [], [-1, FEATURES], name="x")
    weight = model.parameter("w", WEIGHT)
    changed = model.add("relu_", [weight], [FEATURES, CLASSES])
    product = model.add("matmul", [x, changed], [-1, CLASSES], transpose_x=False, transpose_y=False)
    model.add("fetch", [product], [-1, CLASSES])
    with pytest.raises(LoadError, match="no linear layer"):
        find_head(model.save(tmp_path))


def test_loops_and_branches_are_refused(tmp_path: Path) -> None:
    model = classifier()
    model.operations[2]["regions"] = [{"blocks": []}]
    with pytest.raises(LoadError, match="has loops or branches"):
        find_head(model.save(tmp_path))


def test_two_values_of_one_number_are_refused(tmp_path: Path) -> None:
    model = classifier()
    softmax = next(each for each in model.operations if each["#"] == "1.softmax")
    softmax["O"][0]["%"] = 1
    with pytest.raises(AmbiguousError, match="two values have the number 1"):
        find_head(model.save(tmp_path))


@pytest.mark.parametrize("change", ["attribute", "parameter"])
def test_what_is_there_twice_is_refused(tmp_path: Path, change: str) -> None:
    model = classifier()
    if change == "parameter":
        again = json.loads(json.dumps(model.operations[0]))
        again["O"]["%"] = 99
        model.operations.insert(0, again)
    else:
        softmax = next(each for each in model.operations if each["#"] == "1.softmax")
        softmax["A"] *= 2
    with pytest.raises(AmbiguousError, match=r"twice|two variables are called 'a'"):
        find_head(model.save(tmp_path))
