"""Heads in OpenVINO's networks, which `openvino_writer` makes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzz_files import disturbed
from norms import rounded
from openvino_writer import CLASSES, FEATURES, Model, classifier, weights, with_head

from argmaxable import AmbiguousError, Box, HeadError, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

ROW = (-1, FEATURES)


def with_features(layers: Callable[[Model, str], str], shape: tuple[int, ...] = ROW) -> Model:
    """A classifier whose features are what these layers make of the input."""
    model, (weight, bias) = Model(), weights()
    features = layers(model, model.input("x", shape))
    return with_head(model, features, model.constant("w", weight), model.constant("b", bias.reshape(1, -1)))


def after_logits(layers: Callable[[Model, str], None]) -> Model:
    """A linear layer, and what follows it."""
    model, (weight, bias) = Model(), weights()
    x = model.input("x", (-1, 3, FEATURES))
    xw = model.layer("MatMul", "xw", [x, model.constant("w", weight)], (-1, 3, CLASSES), transpose_b="true")
    z = model.layer("Add", "z", [xw, model.constant("b", bias.reshape(1, 1, -1))], (-1, 3, CLASSES))
    layers(model, z)
    return model


# ---------------------------------------------------------------------- which layer


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_the_layer_before_the_softmax_is_read_exactly(tmp_path: Path, dtype: Any) -> None:
    path = classifier(dtype).save(tmp_path)
    finding, head, (weight, bias) = find_head(path), load_head(path), weights(dtype)
    assert (finding.format, finding.classes, finding.features) == ("openvino", CLASSES, FEATURES)
    assert str(finding.weight) == f"w (6 × 4, {np.dtype(dtype).name})"
    assert head.weight.dtype == dtype
    assert np.array_equal(head.weight, weight)
    assert np.array_equal(head.biases(), bias)


def test_a_weight_stored_by_feature_is_turned(tmp_path: Path) -> None:
    model, (weight, bias) = Model(), weights()
    stored = model.constant("w", np.ascontiguousarray(weight.T))
    x = model.input("x", ROW)
    with_head(model, x, stored, model.constant("b", bias.reshape(1, -1)), transpose_b="false")
    assert np.array_equal(load_head(model.save(tmp_path)).weight, weight)


def test_compressed_weights_are_their_float16_numbers(tmp_path: Path) -> None:
    model, (weight, bias) = Model(), weights(np.float16)
    stored = [model.constant("w", weight), model.constant("b", bias.reshape(1, -1))]
    w, b = (
        model.layer("Convert", f"{name}32", [name], model.shapes[name], destination_type="f32")
        for name in stored
    )
    with_head(model, model.input("x", ROW), w, b)
    head = load_head(model.save(tmp_path))
    assert np.array_equal(head.weight, weight)
    assert np.array_equal(head.biases(), bias)


@pytest.mark.parametrize("has_zero_points", [True, False])
def test_whole_numbers_become_weights_by_their_scales(tmp_path: Path, has_zero_points: bool) -> None:
    rng = np.random.default_rng(0)
    steps = rng.integers(0, 256, (CLASSES, FEATURES)).astype(np.uint8)
    zero = rng.integers(0, 256, (CLASSES, 1)).astype(np.uint8)
    scale = rng.uniform(0.01, 0.1, (CLASSES, 1)).astype(np.float16)
    model, bias = Model(), weights()[1]
    shape = (CLASSES, FEATURES)
    name = model.layer("Convert", "q16", [model.constant("q", steps)], shape, destination_type="f16")
    if has_zero_points:
        point = model.layer(
            "Convert", "z16", [model.constant("zp", zero)], (CLASSES, 1), destination_type="f16"
        )
        name = model.layer("Subtract", "minus", [name, point], shape)
    name = model.layer("Multiply", "times", [name, model.constant("s", scale)], shape)
    name = model.layer("Convert", "w", [name], shape, destination_type="f32")
    with_head(model, model.input("x", ROW), name, model.constant("b", bias.reshape(1, -1)))
    shift = zero.astype(float) if has_zero_points else 0.0
    expected = (steps.astype(float) - shift) * scale.astype(float)
    assert np.array_equal(load_head(model.save(tmp_path)).weight.astype(float), expected)


def test_a_convolution_at_each_position_is_a_head(tmp_path: Path) -> None:
    model, (weight, bias) = Model(), weights()
    x = model.input("x", (-1, FEATURES, 1, 9))
    w = model.constant("w", weight.reshape(CLASSES, FEATURES, 1, 1))
    xw = model.layer("Convolution", "xw", [x, w], (-1, CLASSES, 1, 9), pads_begin="0, 0", pads_end="0, 0")
    z = model.layer("Add", "z", [xw, model.constant("b", bias.reshape(1, -1, 1, 1))], (-1, CLASSES, 1, 9))
    model.layer("Result", "result", [model.layer("SoftMax", "y", [z], (-1, CLASSES, 1, 9), axis=1)], ())
    head = load_head(model.save(tmp_path))
    assert np.array_equal(head.weight, weight)
    assert np.array_equal(head.biases(), bias)


def squeezed(model: Model, z: str) -> None:
    flat = model.layer("Reshape", "flat", [z, model.integers("to", -1, CLASSES)], (-1, CLASSES))
    model.layer("Result", "result", [model.layer("SoftMax", "y", [flat], (-1, CLASSES), axis=1)], ())


def turned(model: Model, z: str) -> None:
    order = model.integers("order", 0, 2, 1)
    t = model.layer("Transpose", "t", [z, order], (-1, CLASSES, 3))
    u = model.layer("Unsqueeze", "u", [t, model.integers("at", 3)], (-1, CLASSES, 3, 1))
    s = model.layer("Squeeze", "s", [u, model.integers("off", -1)], (-1, CLASSES, 3))
    model.layer("Result", "result", [model.layer("SoftMax", "y", [s], (-1, CLASSES, 3), axis=1)], ())


@pytest.mark.parametrize("layers", [squeezed, turned])
def test_layout_between_the_layer_and_the_softmax_is_followed(
    tmp_path: Path, layers: Callable[[Model, str], None]
) -> None:
    assert np.array_equal(load_head(after_logits(layers).save(tmp_path)).weight, weights()[0])


def over_positions(model: Model, z: str) -> None:
    model.layer("Result", "result", [model.layer("SoftMax", "y", [z], (-1, 3, CLASSES), axis=1)], ())


def cut_up(model: Model, z: str) -> None:
    shape = (-1, 9, CLASSES // 3)
    model.layer("Result", "r", [model.layer("Reshape", "c", [z, model.integers("to", *shape)], shape)], ())


def shifted_by_position(model: Model, z: str) -> None:
    offsets = model.constant("offsets", np.arange(3 * CLASSES, dtype=np.float32).reshape(1, 3, CLASSES))
    model.layer("Result", "result", [model.layer("Add", "y", [z, offsets], (-1, 3, CLASSES))], ())


def some_other_function(model: Model, z: str) -> None:
    model.layer("Result", "result", [model.layer("Sin", "y", [z], (-1, 3, CLASSES))], ())


def some_of_them(model: Model, z: str) -> None:
    places = [model.integers("which", 0, 1, 2), model.integers("axis", -1)]
    model.layer("Result", "result", [model.layer("Gather", "y", [z, *places], (-1, 3, 3))], ())


def repeated(model: Model, z: str) -> None:
    times = model.integers("times", 1, 1, 2)
    model.layer("Result", "result", [model.layer("Tile", "y", [z, times], (-1, 3, 2 * CLASSES))], ())


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        (over_positions, "Softmax over axis -2 counted from the end"),
        (cut_up, r"is reshaped to \[-1, 9, 2\]"),
        (shifted_by_position, r"of shape \[1, 3, 6\], which does not lie along their axis"),
        (some_other_function, "the trace ends at openvino:Sin"),
        (some_of_them, "the trace ends at Gather"),
        (repeated, "the trace ends at Tile"),
    ],
)
def test_what_may_reorder_classes_is_refused(
    tmp_path: Path, layers: Callable[[Model, str], None], reason: str
) -> None:
    path = after_logits(layers).save(tmp_path)
    with pytest.raises(LoadError, match=f"{reason}.*tensor="):
        find_head(path)
    assert np.array_equal(load_head(path, tensor="w", bias_tensor="b").weight, weights()[0])


def test_a_weight_in_front_is_not_taken_for_one_behind(tmp_path: Path) -> None:
    model, (weight, _) = Model(), weights()
    x = model.input("x", (FEATURES, 6))
    y = model.layer("MatMul", "y", [model.constant("w", weight), x], (CLASSES, 6))
    model.layer("Result", "result", [y], ())
    with pytest.raises(LoadError, match="the trace ends at openvino:MatMul"):
        find_head(model.save(tmp_path))


# ---------------------------------------------------------------------- labels


def test_labels_come_from_the_metadata(tmp_path: Path) -> None:
    model = classifier()
    model.metadata["character"] = "a\nb\nc\nd"
    assert load_head(model.save(tmp_path)).labels == ("<blank>", "a", "b", "c", "d", " ")


# ---------------------------------------------------------------------- domains


def layer_of(kind: str, **data: Any) -> Callable[[Model, str], str]:
    return lambda model, x: model.layer(kind, "h", [x], ROW, **data)


def hard_sigmoid(model: Model, x: str) -> str:
    slopes = [model.constant(n, np.array(v, np.float32)) for n, v in (("alpha", 0.2), ("beta", 0.5))]
    return model.layer("HardSigmoid", "h", [x, *slopes], ROW)


def swish(beta: float) -> Callable[[Model, str], str]:
    return lambda model, x: model.layer("Swish", "h", [x, model.constant("c", np.float32([beta]))], ROW)


def broadcast(model: Model, x: str) -> str:
    relu = model.layer("ReLU", "relu", [x], ROW)
    return model.layer("Broadcast", "h", [relu, model.integers("to", 1, FEATURES)], ROW, mode="numpy")


BOUNDED: dict[str, tuple[Callable[[Model, str], str], Any]] = {
    "ReLU": (layer_of("ReLU"), Box(0, np.inf)),
    "Tanh": (layer_of("Tanh"), Box(-1, 1)),
    "Clamp": (layer_of("Clamp", min="0", max="6"), Box(0, 6)),
    "HardSigmoid": (hard_sigmoid, Box(0, 1)),
    "Swish": (swish(1.0), Box(-0.27847, np.inf)),
    "Swish with another beta": (swish(0.5), Everywhere()),
    "Broadcast to the same shape": (broadcast, Box(0, np.inf)),
    "an operation not known": (layer_of("Sin"), Everywhere()),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_what_is_in_front_of_the_head_bounds_its_features(tmp_path: Path, case: str) -> None:
    layers, domain = BOUNDED[case]
    finding = find_head(with_features(layers).save(tmp_path))
    assert finding.inputs is not None
    found = finding.inputs.domain
    assert found == domain or str(found) == str(domain)


def norm(model: Model, x: str, *, axis: int = -1, **data: Any) -> str:
    gain, shift = np.float32([[1, 2, 3, 4]]), np.float32([[0.5, 0, 0, -1]])
    z = model.layer("MVN", "mvn", [x, model.integers("axes", axis)], ROW, eps="1e-5", **data)
    scaled = model.layer("Multiply", "scaled", [z, model.constant("gain", gain)], ROW)
    return model.layer("Add", "h", [scaled, model.constant("shift", shift)], ROW)


def test_a_norm_with_gain_and_shift_is_a_layer_norm(tmp_path: Path) -> None:
    def layers(model: Model, x: str) -> str:
        return norm(model, x, normalize_variance="true", eps_mode="inside_sqrt")

    finding = find_head(with_features(layers).save(tmp_path))
    assert finding.inputs is not None
    assert finding.inputs.domain == rounded(LayerNorm, np.arange(1.0, 5.0), [0.5, 0, 0, -1])


@pytest.mark.parametrize(("axis", "variance"), [(0, "true"), (-1, "false")])
def test_other_normalisations_bound_nothing(tmp_path: Path, axis: int, variance: str) -> None:
    def layers(model: Model, x: str) -> str:
        return norm(model, x, axis=axis, normalize_variance=variance)

    finding = find_head(with_features(layers).save(tmp_path))
    assert finding.inputs is not None
    assert finding.inputs.domain == Everywhere()


# ---------------------------------------------------------------------- files that are wrong


def edited(path: Path, old: str, new: str) -> Path:
    text = path.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf8")
    return path


TWICE = {
    "edges": ("</edges>", '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>'),
    "attributes": ("<input>", '<data axis="0"/><input>'),
    "lists of layers": ("<edges>", "<layers></layers><edges>"),
    "ids of layers": ('<layer id="1"', '<layer id="0"'),
    "ids of ports": ('<port id="1"', '<port id="0"/><port id="0"'),
    "metadata": ("<framework>", "<framework><character value='a'/><character value='b'/>"),
}


@pytest.mark.parametrize("case", TWICE)
def test_what_is_there_twice_is_refused(tmp_path: Path, case: str) -> None:
    path = edited(classifier().save(tmp_path), *TWICE[case])
    with pytest.raises(AmbiguousError, match="can be read in two ways"):
        find_head(path)


WRONG = {
    "no XML": ("<net", "<<net", "is not XML"),
    "another root": ("<net ", "<html ", "is not XML|expected a 'net'"),
    "another version": ('version="11"', 'version="9"', "of version '9'"),
    "a document type": ("<net", '<!DOCTYPE net [<!ENTITY a "b">]><net', "document type"),
    "a constant beyond the end": ('offset="0"', 'offset="999"', "beyond the end of the .bin"),
    "a constant of another size": ('size="96"', 'size="92"', "do not fit float32"),
    "a constant of another shape": ("6, 4", "4, 6", "another shape at its output"),
    "an unknown type": ('"f32" shape="6, 4"', '"f31" shape="6, 4"', "element type that is not known"),
    "no whole number": ('offset="0"', 'offset="0x0"', "no list of whole numbers 'offset'"),
    "an edge from nowhere": ('from-layer="0"', 'from-layer="77"', "nothing leads to port"),
    "layers out of order": ('from-layer="0"', 'from-layer="5"', "nothing leads|comes before a layer"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_damaged_network_is_refused_in_words(tmp_path: Path, case: str) -> None:
    old, new, message = WRONG[case]
    path = edited(classifier().save(tmp_path), old, new)
    with pytest.raises(LoadError, match=message):
        find_head(path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.xml"
    path.write_text("<net version='11'>" + "<a>" * 100_000, "utf8")
    with pytest.raises(LoadError, match="nested more than 100 deep"):
        find_head(path)


def test_missing_weights_are_asked_for(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(LoadError, match=r"model\.bin, which is not beside it"):
        find_head(path)


def test_files_changed_at_random_raise_our_errors_only(tmp_path: Path) -> None:
    rng = random.Random(0)
    text, data = classifier().text().encode(), classifier().data
    path = tmp_path / "model.xml"
    for _ in range(120):
        path.write_bytes(disturbed(rng, text))
        path.with_suffix(".bin").write_bytes(disturbed(rng, data) if rng.random() < 0.3 else data)
        try:
            load_head(path)
        except (LoadError, HeadError):
            continue
