"""Heads in Core ML's packages, which `coreml_writer` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coreml_writer import CLASSES, FEATURES, Package, classifier, weights

from argmaxable import AmbiguousError, Box, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = weights()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_head_of_a_package_and_of_the_model_in_it(tmp_path: Path, dtype: str) -> None:
    package = classifier(dtype).save(tmp_path)
    finding = find_head(package)
    assert (finding.format, finding.weight.name, finding.activation) == ("coreml", "w", "softmax")
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)
    for path in (package, package / "Data" / "com.apple.CoreML" / "model.mlmodel"):
        head = load_head(path)
        assert head.weight.tobytes() == WEIGHT.astype(dtype).tobytes()
        assert head.bias is not None
        assert head.bias.tobytes() == BIAS.astype(dtype).tobytes()


@pytest.mark.parametrize(("dtype", "domain"), [("float32", Box), ("float16", Everywhere)])
def test_ranges_that_float16_may_leave_are_not_claimed(tmp_path: Path, dtype: str, domain: type[Any]) -> None:
    finding = find_head(classifier(dtype, "gelu").save(tmp_path))
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, domain)


@pytest.mark.parametrize(("dtype", "domain"), [("float32", Box), ("float16", Everywhere)])
def test_a_gate_that_is_written_out(tmp_path: Path, dtype: str, domain: type[Any]) -> None:
    package = Package(outputs=["z"], dtype=dtype)
    package.constant("w", WEIGHT.astype(dtype))
    package.add("sigmoid", "gate", (-1, FEATURES), {"x": "x"})
    package.add("mul", "silu", (-1, FEATURES), {"x": "x", "y": "gate"})
    package.add("linear", "z", (-1, CLASSES), {"x": "silu", "weight": "w"})
    finding = find_head(package.save(tmp_path))
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, domain)


@pytest.mark.parametrize(("dtype", "domain"), [("float32", LayerNorm), ("float16", Everywhere)])
def test_a_layer_norm(tmp_path: Path, dtype: str, domain: type[Any]) -> None:
    package = Package(outputs=["z"], dtype=dtype)
    package.constant("w", WEIGHT.astype(dtype))
    package.constant("gain", np.linspace(1, 2, FEATURES).astype(dtype))
    package.constant("shift", np.zeros(FEATURES, dtype))
    norm = {"x": "x", "axes": [[-1]], "gamma": "gain", "beta": "shift", "epsilon": [1e-5]}
    package.add("layer_norm", "n", (-1, FEATURES), norm)
    package.add("linear", "z", (-1, CLASSES), {"x": "n", "weight": "w"})
    finding = find_head(package.save(tmp_path))
    assert finding.bias is None
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, domain)


@pytest.mark.parametrize("axis", [1, 2])
def test_a_convolution_of_one_position_and_the_axis_of_its_softmax(tmp_path: Path, axis: int) -> None:
    package = Package(outputs=["p"])
    package.constant("w", WEIGHT.reshape(CLASSES, FEATURES, 1, 1))
    package.constant("b", BIAS)
    conv = {"x": "x", "weight": "w", "bias": "b", "pad_type": ["valid"], "groups": [1]}
    package.add("conv", "z", (1, CLASSES, 8, 8), conv)
    package.add("softmax", "p", (1, CLASSES, 8, 8), {"x": "z", "axis": [axis]})
    path = package.save(tmp_path, (1, FEATURES, 8, 8))
    if axis == 1:
        assert load_head(path).weight.reshape(CLASSES, FEATURES).tobytes() == WEIGHT.tobytes()
    else:
        with pytest.raises(LoadError, match="not the axis of its 6 classes"):
            find_head(path)


def test_the_classes_that_a_program_answers_with(tmp_path: Path) -> None:
    package = classifier()
    package.add("classify", "label", (), {"probabilities": "p", "classes": [list("abcdef")]}, "text")
    package.operations[-1] += b"\x1a\x13\x0a\x05probs\x12\x0a\x0a\x08\x08\x0b\x1a\x04\x0a\x02\x08\x06"
    package.outputs = ["label", "probs"]
    head = load_head(package.save(tmp_path))
    assert [head.label(each) for each in range(CLASSES)] == list("abcdef")


def test_weights_that_were_compressed_are_refused(tmp_path: Path) -> None:
    package = Package(outputs=["z"])
    package.constant("steps", np.zeros((CLASSES, FEATURES), np.uint8).astype(np.float32))
    package.add("constexpr_affine_dequantize", "w", (CLASSES, FEATURES), {"quantized_data": "steps"})
    package.add("linear", "z", (-1, CLASSES), {"x": "x", "weight": "w"})
    with pytest.raises(LoadError, match="no linear layer"):
        find_head(package.save(tmp_path))


def test_other_kinds_of_models_are_named(tmp_path: Path) -> None:
    package = classifier()
    package.kind = 402
    with pytest.raises(LoadError, match=r"it is made of trees, neither a program nor a neural network"):
        find_head(package.save(tmp_path))


def test_an_entry_without_its_mark_is_refused(tmp_path: Path) -> None:
    package = Package(outputs=["z"])
    package.constant("w", WEIGHT, mark=7)
    package.add("linear", "z", (-1, CLASSES), {"x": "x", "weight": "w"})
    with pytest.raises(LoadError, match="the constant 'w' is stored as float32, expected"):
        load_head(package.save(tmp_path))


def test_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = classifier().save(tmp_path)
    (path / "Data" / "com.apple.CoreML" / "weights" / "weight.bin").unlink()
    with pytest.raises(LoadError, match=r"has its weights in weight.bin, which is not there"):
        load_head(path)


def test_two_values_of_one_name_are_refused(tmp_path: Path) -> None:
    package = classifier()
    package.constant("w", WEIGHT + 1)
    with pytest.raises(AmbiguousError, match="two values are called 'w'"):
        find_head(package.save(tmp_path))


def test_an_input_that_is_a_name_and_a_value_is_refused(tmp_path: Path) -> None:
    package = classifier()
    package.add("relu", "again", (-1, FEATURES), {"x": ("h", BIAS)})
    with pytest.raises(AmbiguousError, match="a name and a value at once"):
        find_head(package.save(tmp_path))
