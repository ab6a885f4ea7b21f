"""Heads in Core ML's neural networks (.mlmodel), the kind before programs, which `coreml_writer` makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from coreml_writer import (
    CLASSES,
    FEATURES,
    NeuralNetwork,
    activation,
    delimited,
    dense_network,
    floats,
    number,
    weights,
)

from argmaxable import AmbiguousError, Box, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = weights()
NAMES = list("abcdef")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_head_of_a_classifier(tmp_path: Path, dtype: str) -> None:
    path = dense_network(dtype, labels=NAMES, scores="p").save(tmp_path)
    finding = find_head(path)
    assert (finding.format, finding.weight.name, finding.activation) == ("coreml", "z.weight", "softmax")
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)
    head = load_head(path)
    assert head.weight.tobytes() == WEIGHT.astype(dtype).tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.astype(dtype).tobytes()
    assert head.labels == tuple(NAMES)


def test_classes_are_third_from_the_end_where_there_are_five_axes(tmp_path: Path) -> None:
    assert find_head(dense_network().save(tmp_path)).activation == "softmax"


@pytest.mark.parametrize(("given", "axis", "is_read"), [((1, FEATURES), -1, True), ((1, FEATURES), 0, False)])
def test_an_exact_shape_says_which_axis_a_softmax_is_over(
    tmp_path: Path, given: Sequence[int], axis: int, is_read: bool
) -> None:
    network = NeuralNetwork(is_exact=True)
    network.product("x", "z", WEIGHT, BIAS)
    network.add("softmaxND", "z", "p", number(1, axis))
    path = network.save(tmp_path, given)
    if is_read:
        assert load_head(path).weight.tobytes() == WEIGHT.tobytes()
        return
    with pytest.raises(LoadError, match="Softmax over axis -2"):
        load_head(path)


def test_a_convolution_and_a_flattening_before_the_softmax_of_a_classifier(tmp_path: Path) -> None:
    network = NeuralNetwork(labels=NAMES, scores="p")
    network.convolution("x", "z", WEIGHT)
    network.add("flatten", "z", "flat")
    network.add("softmax", "flat", "p")
    finding = find_head(network.save(tmp_path, (FEATURES, 1, 1)))
    assert finding.weight.shape == (CLASSES, FEATURES, 1, 1)
    assert finding.bias is None


def test_positions_that_are_flattened_with_the_classes_are_refused(tmp_path: Path) -> None:
    network = NeuralNetwork(labels=[*NAMES, *NAMES], scores="p")
    network.convolution("x", "z", WEIGHT)
    network.add("flatten", "z", "flat")
    network.add("softmax", "flat", "p")
    with pytest.raises(LoadError, match=r"z\.weight"):
        find_head(network.save(tmp_path, (FEATURES, 2, 1)))


@pytest.mark.parametrize(
    "fields",
    [
        number(60, 1),
        number(10, 2),
        delimited(50, delimited(1, delimited(10, number(1, 1)))),
    ],
)
def test_convolutions_that_are_no_linear_layer_are_refused(tmp_path: Path, fields: bytes) -> None:
    network = NeuralNetwork(output="z")
    network.convolution("x", "z", WEIGHT, fields)
    with pytest.raises(LoadError, match="the trace ends at coreml:convolution"):
        find_head(network.save(tmp_path, (FEATURES, 1, 1)))


def test_quantised_weights_are_refused(tmp_path: Path) -> None:
    network = NeuralNetwork(output="z")
    fields = number(1, FEATURES) + number(2, CLASSES) + delimited(20, delimited(30, bytes(24)))
    network.add("innerProduct", "x", "z", fields)
    with pytest.raises(LoadError, match="quantised weights"):
        find_head(network.save(tmp_path))


def test_weights_in_two_forms_are_ambiguous(tmp_path: Path) -> None:
    network = NeuralNetwork(output="z")
    both = floats(WEIGHT) + floats(WEIGHT.astype(np.float16))
    network.add("innerProduct", "x", "z", number(1, FEATURES) + number(2, CLASSES) + delimited(20, both))
    with pytest.raises(AmbiguousError, match="two forms"):
        find_head(network.save(tmp_path))


def test_a_weight_of_another_size_is_refused(tmp_path: Path) -> None:
    network = NeuralNetwork(output="z")
    fields = number(1, FEATURES) + number(2, CLASSES + 1) + delimited(20, floats(WEIGHT))
    network.add("innerProduct", "x", "z", fields)
    with pytest.raises(LoadError, match="24 numbers for its weight, expected 28"):
        find_head(network.save(tmp_path))


def test_a_layer_may_write_to_the_name_it_reads(tmp_path: Path) -> None:
    network = NeuralNetwork(output="z")
    network.add("activation", "x", "x2", activation("relu"))
    network.add("activation", "x2", "x2b", activation("linear"))
    network.layers[-1] = network.layers[-1].replace(delimited(3, "x2b"), delimited(3, "x2"))
    network.product("x2", "z", WEIGHT, BIAS)
    finding = find_head(network.save(tmp_path))
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, Everywhere)


def test_a_bias_layer_is_the_bias(tmp_path: Path) -> None:
    network = NeuralNetwork(output="p")
    network.convolution("x", "z", WEIGHT)
    network.add("bias", "z", "p", number(1, CLASSES) + delimited(2, floats(BIAS)))
    head = load_head(network.save(tmp_path, (FEATURES, 1, 1)))
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()


# ---------------------------------------------------------------------- Kraken


def recogniser(**metadata: str) -> NeuralNetwork:
    """An LSTM, dropout and a linear layer, as Kraken stores them."""
    network = NeuralNetwork(output="output", metadata={"vgsl": "[1,48,0,1 Lbx2 Do O1c6]", **metadata})
    acts = b"".join(delimited(10, activation(each)) for each in ("sigmoid", "tanh", "tanh"))
    acts += b"".join(delimited(11, activation(each)) for each in ("sigmoid", "tanh", "tanh"))
    network.add("biDirectionalLSTM", "x", "L_1", acts)
    network.add("custom", "L_1", "Do_2", delimited(10, "dropout"))
    network.product("Do_2", "O_3_lin", WEIGHT, BIAS)
    return network


def test_a_recogniser_of_krakens(tmp_path: Path) -> None:
    codec = json.dumps({character: [place] for place, character in enumerate("vwxyz", 1)})
    finding = find_head(recogniser(codec=codec).save(tmp_path))
    assert finding.labels is not None
    assert finding.labels.names == ("<blank>", *"vwxyz")
    assert finding.labels.special == {0}
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(-1.0, 1.0)


@pytest.mark.parametrize("codec", ["", "[1]", '{"a": [1, 2]}', '{"a": [1], "b": [1]}', '{"a": [1]}'])
def test_a_codec_that_does_not_fit_gives_no_labels(tmp_path: Path, codec: str) -> None:
    finding = find_head(recogniser(codec=codec).save(tmp_path))
    assert finding.labels is None
    assert any("no labels" in note for note in finding.notes)


def test_a_codec_with_a_character_twice_is_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousError, match="occurs twice"):
        find_head(recogniser(codec='{"a": [1], "a": [2]}').save(tmp_path))


def test_an_input_that_is_always_1_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="always 1"):
        find_head(recogniser(vgsl="[1,48,0,1 Lbx2 Do O{O_3}1ca6]").save(tmp_path))


def test_a_custom_layer_of_somebody_else_proves_nothing(tmp_path: Path) -> None:
    network = recogniser()
    network.metadata = {}
    finding = find_head(network.save(tmp_path))
    assert finding.inputs is not None
    assert finding.inputs.domain is None or isinstance(finding.inputs.domain, Everywhere)
