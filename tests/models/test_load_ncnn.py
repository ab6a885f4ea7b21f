"""Heads in ncnn's models, which `ncnn_writer` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ncnn_writer import CLASSES, FEATURES, Model, body, classifier, tagged, weights

from argmaxable import AmbiguousError, Box, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = weights()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_head_of_a_classifier(tmp_path: Path, dtype: str) -> None:
    path = classifier(dtype).save(tmp_path)
    finding, head = find_head(path), load_head(path)
    assert (finding.format, finding.classes, finding.features) == ("ncnn", CLASSES, FEATURES)
    assert head.weight.tobytes() == WEIGHT.astype(dtype).tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()
    assert finding.activation == "softmax"
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)


@pytest.mark.parametrize("by_class", [0, 1])
def test_a_product_of_two_matrices(tmp_path: Path, by_class: int) -> None:
    """As pnnx writes a linear layer of sequences."""
    model, gain, shift = Model(), np.linspace(1, 2, FEATURES), np.linspace(-1, 0, FEATURES)
    model.layer("Input", "in", [], ["x"])
    norm = gain.astype(np.float32).tobytes() + shift.astype(np.float32).tobytes()
    model.layer("LayerNorm", "ln", ["x"], ["n"], norm, _0=FEATURES, _1=1e-5, _2=1)
    stored = WEIGHT if by_class else np.ascontiguousarray(WEIGHT.T)
    model.layer(
        "Gemm", "fc", ["n"], ["y"], tagged(stored), tagged(BIAS),
        _3=by_class, _4=0, _5=1, _6=1, _7=5, _8=CLASSES, _9=FEATURES, _10=4,
    )  # fmt: skip
    path = model.save(tmp_path)
    finding, head = find_head(path), load_head(path)
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, LayerNorm)


@pytest.mark.parametrize("axis", [0, 2])
def test_a_convolution_of_one_position_and_the_axis_of_its_softmax(tmp_path: Path, axis: int) -> None:
    model = Model()
    model.layer("Input", "in", [], ["x"], _0=8, _1=8, _2=FEATURES)
    model.layer("TanH", "tanh", ["x"], ["t"])
    model.layer(
        "Convolution", "out", ["t"], ["y"], tagged(WEIGHT), BIAS.tobytes(),
        _0=CLASSES, _1=1, _5=1, _6=WEIGHT.size,
    )  # fmt: skip
    model.layer("Softmax", "softmax", ["y"], ["p"], _0=axis, _1=1)
    path = model.save(tmp_path)
    if axis == 0:
        assert load_head(path).weight.tobytes() == WEIGHT.tobytes()
        finding = find_head(path)
        assert finding.inputs is not None
        assert finding.inputs.domain == Box(-1.0, 1.0)
    else:
        with pytest.raises(LoadError, match="not the axis of its 6 classes"):
            find_head(path)


def test_an_axis_that_can_not_be_counted_from_the_end_is_not_followed(tmp_path: Path) -> None:
    model = Model()
    model.layer("Input", "in", [], ["x"])
    model.layer("InnerProduct", "fc", ["x"], ["y"], tagged(WEIGHT), _0=CLASSES, _1=0, _2=WEIGHT.size)
    model.layer("Softmax", "softmax", ["y"], ["p"], _0=0, _1=1)
    with pytest.raises(LoadError, match="the trace ends at ncnn:Softmax"):
        find_head(model.save(tmp_path))


@pytest.mark.parametrize(
    ("kind", "more", "domain"),
    [
        ("LSTM", {"_3": FEATURES}, Box(-1.0, 1.0)),
        ("LSTM", {"_3": 7}, Everywhere()),
        ("GRU", {}, Box(-1.0, 1.0)),
        ("RNN", {}, Box(-1.0, 1.0)),
    ],
)
def test_what_recurrent_layers_read_and_how_far_their_states_reach(
    tmp_path: Path, kind: str, more: dict[str, int], domain: Any
) -> None:
    model = Model()
    model.layer("Input", "in", [], ["x"])
    gates, biases = {"LSTM": (4, 4), "GRU": (3, 4), "RNN": (1, 1)}[kind]
    hidden = more.get("_3", FEATURES)
    arrays = [np.ones(3 * hidden * gates), np.ones(hidden * biases), np.ones(FEATURES * hidden * gates)]
    arrays += [np.ones(hidden * FEATURES)] if hidden != FEATURES else []
    model.layer(
        kind, "states", ["x"], ["h"], *(tagged(each.astype(np.float32)) for each in arrays),
        **{"_0": FEATURES, "_1": 3 * hidden * gates, "_2": 0, **more},
    )  # fmt: skip
    model.layer(
        "InnerProduct", "fc", ["h"], ["y"], tagged(WEIGHT), BIAS.tobytes(), _0=CLASSES, _1=1, _2=WEIGHT.size
    )
    path = model.save(tmp_path)
    assert load_head(path).weight.tobytes() == WEIGHT.tobytes()
    finding = find_head(path)
    assert finding.inputs is not None
    assert finding.inputs.domain == domain


def test_weights_of_8_bits_are_refused(tmp_path: Path) -> None:
    path = classifier("int8").save(tmp_path)
    with pytest.raises(LoadError, match="stored as int8"):
        load_head(path)


def test_a_file_that_the_layers_do_not_read_whole_is_refused(tmp_path: Path) -> None:
    model = classifier()
    model.data += bytes(4)
    with pytest.raises(LoadError, match=r"its layers read [\d,]+ bytes of model.bin, which has"):
        find_head(model.save(tmp_path))


def test_a_layer_of_unknown_weights_is_refused_by_what_is_left(tmp_path: Path) -> None:
    model = Model()
    body(model)
    model.layer("Mystery", "m", ["mean"], ["z"], bytes(16))
    model.layer("InnerProduct", "fc", ["z"], ["y"], tagged(WEIGHT), _0=CLASSES, _1=0, _2=WEIGHT.size)
    with pytest.raises(LoadError, match=r"can't be read with model.bin"):
        find_head(model.save(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Softmax softmax", "Softmax fc", "two layers are called 'fc'"),
        ("1 1 logits p", "1 1 logits logits", "two blobs are called 'logits'"),
        ("0=6 1=1", "0=6 0=7 1=1", "layer 'fc' has the parameter 0 twice"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = classifier().save(tmp_path)
    text = path.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new), "utf8")
    with pytest.raises(AmbiguousError, match=message):
        find_head(path)


def test_weights_that_are_not_beside_it_are_named(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(LoadError, match=r"has its weights in model.bin, which is not beside it"):
        find_head(path)
