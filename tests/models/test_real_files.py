"""Graphs, formats and labels of other people's packages that were once read wrongly, or refused without
the reason.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import gguf_writer
import keras_writer
import numpy as np
import onnx
import onnxruntime
import pytest
from keras_writer import dense, functional, layer
from norms import rounded
from onnx import TensorProto, helper
from onnx_writer import FEATURES, build, node, save
from safetensors.numpy import save_file

from argmaxable import Box, LayerNorm, LoadError, find_head, load_head
from argmaxable.models.norm_solid import norm_solid, room_for_rounding

RNG = np.random.default_rng(3)
STEPS = RNG.integers(0, 256, size=(6, FEATURES)).astype(np.uint8)
SCALES = RNG.uniform(0.01, 0.1, size=6).astype(np.float32)
ZERO = np.array(128, np.uint8)
GAIN = RNG.normal(size=FEATURES).astype(np.float32)


# ---------------------------------------------------------------------- tied, quantised decoders


def tied(scale: np.ndarray[Any, Any], zero: np.ndarray[Any, Any], **axis: int) -> onnx.ModelProto:
    """A decoder as transformers.js has it: each branch transposes the quantised embedding for its logits."""

    def branch(name: str) -> onnx.GraphProto:
        nodes = [
            node("LayerNormalization", "x gain", f"h_{name}"),
            node("Transpose", "E", f"t_{name}", perm=[1, 0]),
            node("DequantizeLinear", f"t_{name} s z", f"w_{name}", **axis),
            node("MatMul", f"h_{name} w_{name}", f"y_{name}"),
        ]
        outputs = [helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, None)]
        return helper.make_graph(nodes, name, [], outputs)

    choice = helper.make_node("If", ["first"], ["y"], then_branch=branch("then"), else_branch=branch("else"))
    return build([choice], {"first": np.array(True), "E": STEPS, "s": scale, "z": zero, "gain": GAIN})


@pytest.mark.parametrize(
    ("scale", "zero", "axis"),
    [
        (SCALES[0], ZERO, {}),
        (SCALES, np.full(6, 128, np.uint8), {"axis": 1}),
        (SCALES, np.full(6, 7, np.uint8), {}),
    ],
    ids=["one scale", "one for each class", "by default too"],
)
def test_a_tied_quantised_decoder_is_found_in_both_branches(
    tmp_path: Path, scale: Any, zero: Any, axis: dict[str, int]
) -> None:
    model = tied(np.asarray(scale), zero, **axis)
    path = save(tmp_path, model)
    finding = find_head(path)
    assert (finding.classes, finding.features) == (6, FEATURES)
    assert finding.inputs is not None
    assert finding.inputs.domain == rounded(LayerNorm, GAIN)
    steps = STEPS.astype(np.float64) - zero.astype(np.float64).reshape(-1, 1)
    weight = load_head(path).weight
    assert weight.tolist() == (steps * np.asarray(scale, np.float64).reshape(-1, 1)).tolist()
    x = RNG.normal(size=(1, FEATURES)).astype(np.float32)
    options = onnxruntime.SessionOptions()  # its fusions would also quantise what the head is given
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["y"], {"x": x})
    z = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * GAIN
    assert logits[0] == pytest.approx(weight @ z[0], rel=1e-4, abs=1e-4)


# ---------------------------------------------------------------------- the axis of the classes


def followed(*nodes: onnx.NodeProto, opset: int = 17, **constants: np.ndarray[Any, Any]) -> onnx.ModelProto:
    weight = RNG.normal(size=(FEATURES, 6)).astype(np.float32)
    model = build([node("MatMul", "x W", "z"), *nodes], {"W": weight, **constants}, rows=3)
    model.opset_import[0].version = opset
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 6]))
    return model


AXES = {
    "a softmax over positions": (followed(node("Softmax", "z", "y", axis=0)), "Softmax over axis -2"),
    "its logarithm": (followed(node("LogSoftmax", "z", "y", axis=-2)), "LogSoftmax over axis -2"),
    "an argmax over positions": (followed(node("ArgMax", "z", "y")), "ArgMax over axis -2"),
    "a transposition before": (
        followed(node("Transpose", "z", "t", perm=[1, 0]), node("Softmax", "t", "y", axis=-1)),
        "Softmax over axis -1",
    ),
    "a maximum over positions": (
        followed(
            *(node("ReduceMax", "z", "m", axes=[0]), node("Sub", "z m", "s"), node("Exp", "s", "y")),
        ),
        "Sub with 'm'",
    ),
}


@pytest.mark.parametrize(("model", "what"), AXES.values(), ids=AXES.keys())
def test_what_works_along_another_axis_than_the_classes_is_refused(
    tmp_path: Path, model: onnx.ModelProto, what: str
) -> None:
    path = save(tmp_path, model)
    why = "(not the axis of its 6 classes|may differ from class to class)"
    with pytest.raises(LoadError, match=rf"'W' is followed by {what}.*{why}"):
        load_head(path)
    assert load_head(path, tensor="W").classes == 6


@pytest.mark.parametrize(
    "model",
    [
        followed(node("Softmax", "z", "y")),
        followed(node("Softmax", "z", "y", axis=1)),
        followed(node("Softmax", "z", "y"), opset=11),
        followed(node("Softmax", "z", "y", axis=0), opset=11),  # then over everything, with one sum
        followed(node("ArgMax", "z", "y", axis=-1)),
        followed(node("Transpose", "z", "t", perm=[1, 0]), node("Softmax", "t", "y", axis=0)),
        followed(node("ReduceMax", "z", "m", axes=[1]), node("Sub", "z m", "y")),
    ],
)
def test_what_works_along_the_axis_of_the_classes_is_passed(tmp_path: Path, model: onnx.ModelProto) -> None:
    assert load_head(save(tmp_path, model)).classes == 6


def test_the_classes_of_a_convolution_are_its_channels(tmp_path: Path) -> None:
    weight = RNG.normal(size=(6, FEATURES, 1, 1)).astype(np.float32)
    for axis, is_classes in ((1, True), (-3, True), (3, False), (-1, False)):
        nodes = [
            *(node("Unsqueeze", "x k", "i"), node("Conv", "i W", "z"), node("Softmax", "z", "y", axis=axis)),
        ]
        model = build(nodes, {"W": weight, "k": np.array([2, 3])})
        if is_classes:
            assert load_head(save(tmp_path, model)).classes == 6
        else:
            with pytest.raises(LoadError, match="not the axis of its 6 classes"):
                load_head(save(tmp_path, model))


# ---------------------------------------------------------------------- norms in float32


@pytest.mark.parametrize("features", [512, 4096])
def test_the_solid_holds_what_float32_makes_of_a_norm(features: int) -> None:
    # Squares that are lost one by one when they are added to a large one: the worst order of all.
    u = np.full(features, 2.0**-12.5, np.float32) * np.float32(0.999)
    u[0] = 1.0
    total = np.float32(0.0)
    for square in u * u:
        total += square
    z = u / np.sqrt(total / np.float32(features))
    length = sum(Fraction(float(number)) ** 2 for number in z)
    assert length > features  # outside the solid of exact arithmetic
    assert length <= features * Fraction(room_for_rounding(features)) ** 2
    solid = norm_solid(LayerNorm, np.ones(features), 0.0, features)
    assert solid == rounded(LayerNorm, np.ones(features))


def test_the_room_is_more_than_the_bound_it_stands_for() -> None:
    for features in (1, 2, 100, 8192, 2**14, 2**16, 2**20, 2**22):
        bound = 1 / (1 - Fraction(features + 8, 2**25))
        assert Fraction(room_for_rounding(features)) >= bound


# ---------------------------------------------------------------------- other formats, named as such


def test_pieces_of_a_gguf_file_are_called_so(tmp_path: Path) -> None:
    weight = RNG.normal(size=(8, 32)).astype(np.float32)
    data = gguf_writer.write(tmp_path / "whole.gguf", {"output.weight": weight}).read_bytes()
    first, second = tmp_path / "model.gguf.part1of2", tmp_path / "model.gguf.part2of2"
    first.write_bytes(data[: len(data) - 300])
    second.write_bytes(data[len(data) - 300 :])
    with pytest.raises(LoadError, match=r"or the first piece of a file that was cut into several.*cat"):
        load_head(first)
    with pytest.raises(LoadError, match=r"a piece of a GGUF file that was cut into several: join them"):
        load_head(second)


ADAPTER = {"peft_type": "LORA", "modules_to_save": ["classifier"]}
HEAD = RNG.normal(size=(3, 8)).astype(np.float32)


@pytest.mark.parametrize("mark", ["", ".modules_to_save", ".modules_to_save.default"])
def test_a_head_that_an_adapter_stores_whole_is_found(tmp_path: Path, mark: str) -> None:
    added = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight"
    tensors = {f"base_model.model.classifier{mark}.weight": HEAD, added: np.zeros((4, 8), np.float32)}
    tensors[f"base_model.model.classifier{mark}.bias"] = np.ones(3, np.float32)
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps(ADAPTER))
    for model in (tmp_path, tmp_path / "adapter_model.safetensors"):
        head = load_head(model)
        assert head.weight.tolist() == HEAD.tolist()
        assert head.biases().tolist() == [1.0, 1.0, 1.0]
        assert any("PEFT adapter" in note for note in find_head(model).notes)


def test_an_adapter_that_only_adds_to_layers_is_refused(tmp_path: Path) -> None:
    save_file({"base_model.model.lm_head.lora_A.weight": HEAD}, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps({**ADAPTER, "modules_to_save": ["lm_head"]}))
    with pytest.raises(LoadError, match=r"is an adapter.*stores none of its modules.*merge_and_unload"):
        load_head(tmp_path)


# ---------------------------------------------------------------------- labels and recurrent layers


def test_a_dictionary_that_has_lost_its_space_gets_a_hint(tmp_path: Path) -> None:
    path = save(tmp_path, build([node("MatMul", "x W", "y")], {"W": np.ones((FEATURES, 6), np.float32)}))
    (tmp_path / "en_dict.txt").write_text("a\nb\nc")
    finding = find_head(path)
    assert finding.labels is None
    assert finding.notes[0].startswith(
        "en_dict.txt was not used for labels: it lists 3 characters, one too few"
    )
    (tmp_path / "en_dict.txt").write_text("a\nb\nc\n \n")
    labels = find_head(path).labels
    assert labels is not None
    assert labels.names == ("<blank>", "a", "b", "c", " ", " ")


def recurrent(kind: str, tensor: int, **settings: Any) -> bytes:
    """A decoder that begins with the states of an encoder, and whose output of this number feeds the head."""
    cell = {"activation": "tanh", "recurrent_activation": "sigmoid", **settings}
    layers = {
        "x": (layer("InputLayer", "x"), []),
        "states": (layer("LSTM", "states", **cell), ["x"]),
        "rnn": (layer(kind, "rnn", **cell), ["x", "states", "states"]),
        "d": (dense("d"), ["rnn"]),
    }
    config = functional(layers, [["d", 0, 0]], version=2)
    config["config"]["layers"][-1]["inbound_nodes"][0][0][2] = tensor
    weights = {"d": {"d/kernel:0": RNG.normal(size=(4, 5)).astype(np.float32)}}
    return keras_writer.listed(weights, config)


@pytest.mark.parametrize(
    ("kind", "tensor", "settings", "expected"),
    [
        ("LSTM", 0, {}, Box(-1, 1)),
        ("SimpleRNN", 0, {}, Box(-1, 1)),
        ("RNN", 0, {"cell": {"class_name": "LSTMCell", "config": {"activation": "tanh"}}}, Box(-1, 1)),
        ("RNN", 0, {"cell": {"class_name": "OwnCell", "config": {"activation": "tanh"}}}, None),
        ("GRU", 0, {}, None),  # it could begin anywhere
        ("LSTM", 2, {}, None),  # the state of its cell has no bound
    ],
)
def test_a_head_behind_a_recurrent_layer_with_given_states(
    tmp_path: Path, kind: str, tensor: int, settings: dict[str, Any], expected: Box | None
) -> None:
    path = keras_writer.write(tmp_path / "model.h5", recurrent(kind, tensor, **settings))
    inputs = find_head(path).inputs
    assert inputs is not None
    assert inputs.domain == expected
