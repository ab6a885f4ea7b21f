"""Heads in Keras files that imitate, with h5py, what Keras 1, 2 and 3 write."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras_writer import Arrays, archive, dense, functional, layer, listed, numbered, sequential, write
from norms import rounded
from numpy.typing import NDArray

from argmaxable.core.balls import LayerNorm
from argmaxable.core.boxes import Box
from argmaxable.core.domain import Domain
from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models import load_head
from argmaxable.models.finding import Finding
from argmaxable.models.keras import hdf5, hdf5_reader
from argmaxable.models.keras.config import feeding_layers, head_of, output_range, parse
from argmaxable.models.keras.file import KerasFile, opened
from argmaxable.models.keras.hdf5 import Outline
from argmaxable.models.keras.reader import find, find_in
from argmaxable.models.registry import ReadOptions

RNG = np.random.default_rng(0)
KERNEL = RNG.normal(size=(4, 5)).astype(np.float32)
BIAS = RNG.normal(size=5).astype(np.float32)
HIDDEN = RNG.normal(size=(3, 4)).astype(np.float32)
GAIN, SHIFT = RNG.normal(size=(2, 4)).astype(np.float32)
INF = np.inf

DENSE: dict[str, Arrays] = {
    "hidden": {"hidden/kernel:0": HIDDEN, "hidden/bias:0": np.zeros(4, np.float32)},
    "dropout": {},
    "output": {"output/kernel:0": KERNEL, "output/bias:0": BIAS},
}
NUMBERED: dict[str, tuple[str, Sequence[NDArray[Any]]]] = {
    "layers/dense": ("hidden", [HIDDEN, np.zeros(4, np.float32)]),
    "layers/dropout": ("dropout", []),
    "layers/dense_1": ("output", [KERNEL, BIAS]),
}


MODEL = sequential(dense("hidden", 4, "relu"), layer("Dropout", "dropout"), dense("output", 5, "softmax"))


@pytest.fixture
def own_process() -> None:
    """The file is read in a process of its own, as it always is outside of these tests."""


@pytest.fixture(autouse=True)
def read_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound files are read in this process: starting another takes longer than all the rest of a test."""
    if "own_process" not in request.fixturenames:
        monkeypatch.setattr(hdf5, "ask", lambda program, question, library: hdf5_reader.answer(question))


def found(path: Path, **options: Any) -> Finding:
    return find(path, ReadOptions(**options))


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def is_the_head(path: Path, **options: Any) -> bool:
    head = load_head(path, **options)
    return same_bits(head.weight, KERNEL.T.copy()) and same_bits(head.bias, BIAS)


# ---------------------------------------------------------------------- every layout

LAYOUTS = {
    "weights.h5": listed(DENSE),
    "text.h5": listed(DENSE, names="text"),
    "split.hdf5": listed(DENSE, names="split"),
    "model.h5": listed(DENSE, MODEL),
    "model3.h5": listed(DENSE, MODEL, names="text"),
    "keras3.weights.h5": numbered(NUMBERED),
    "model.keras": archive(numbered(NUMBERED), MODEL),
    "packed.keras": archive(numbered(NUMBERED), MODEL, zipfile.ZIP_DEFLATED),
    "unnamed.keras": archive(numbered({path: ("", arrays) for path, (_, arrays) in NUMBERED.items()}), MODEL),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.usefixtures("own_process")
def test_the_head_comes_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    assert is_the_head(write(tmp_path / name, LAYOUTS[name]))


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_linear_layers_are_alternatives_and_can_be_named(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, LAYOUTS[name])
    (other,) = found(path).alternatives
    assert other.shape == (3, 4)
    head = load_head(path, tensor=other.name)
    assert same_bits(head.weight, HIDDEN.T.copy())
    assert head.bias is not None
    assert not head.bias.any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ml_dtypes.bfloat16])
def test_every_float_keeps_its_dtype(tmp_path: Path, dtype: Any) -> None:
    arrays = {"output/kernel:0": KERNEL.astype(dtype), "output/bias:0": BIAS.astype(dtype)}
    head = load_head(write(tmp_path / "m.h5", listed({"output": arrays})))
    native = np.dtype(np.float32 if dtype == ">f4" else dtype)
    assert same_bits(head.weight, KERNEL.astype(native).T.copy())
    assert same_bits(head.bias, BIAS.astype(native))


def test_the_first_versions_names_are_known(tmp_path: Path) -> None:
    layers = {"dense_1": {"dense_1_W": KERNEL, "dense_1_b": BIAS}}
    assert is_the_head(write(tmp_path / "m.h5", listed(layers)))


@pytest.mark.usefixtures("own_process")
def test_compressed_datasets_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", data=KERNEL, compression="gzip", chunks=(2, 2), shuffle=True)
        group.create_dataset("1", data=BIAS)
    assert is_the_head(tmp_path / "m.h5")


def test_the_tenth_layer_comes_after_the_ninth(tmp_path: Path) -> None:
    square = np.eye(4, dtype=np.float32)
    layers = {f"layers/dense_{number}": ("", [square, SHIFT]) for number in range(1, 10)}
    path = write(tmp_path / "m.weights.h5", numbered({**layers, "layers/dense_10": ("", [KERNEL, BIAS])}))
    assert is_the_head(path)


def test_a_convolution_of_one_pixel_is_a_linear_layer(tmp_path: Path) -> None:
    model = sequential(layer("Conv2D", "c", filters=5), layer("Reshape", "r", target_shape=[5]))
    layers = {"c": {"c/kernel:0": KERNEL.reshape(1, 1, 4, 5), "c/bias:0": BIAS}}
    assert is_the_head(write(tmp_path / "m.h5", listed(layers, model)))


def test_a_layer_without_bias_has_none(tmp_path: Path) -> None:
    assert load_head(write(tmp_path / "m.h5", listed({"o": {"o/kernel:0": KERNEL}}))).bias is None


def test_words_numbered_from_one_leave_the_first_class_unused(tmp_path: Path) -> None:
    (tmp_path / "my_vocab.json").write_text(
        json.dumps({letter: k for k, letter in enumerate("abcdefghij", 1)})
    )
    layers = {"o": {"o/kernel:0": np.ones((2, 11), np.float32)}}
    assert load_head(write(tmp_path / "m.h5", listed(layers))).labels == ("<unused 0>", *"abcdefghij")


# ---------------------------------------------------------------------- which layer, with a configuration


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("outputs", [["output", 0, 0], [["output", 0, 0]]])
def test_the_configuration_decides_not_the_order_of_the_file(
    tmp_path: Path, version: int, outputs: list[Any]
) -> None:
    layers = {
        "output": (dense("output", 5, "softmax"), ["hidden"]),
        "hidden": (dense("hidden", 4, "tanh"), ["input"]),
        "input": (layer("InputLayer", "input"), []),
    }
    backwards = dict(reversed(DENSE.items()))
    path = write(tmp_path / "m.h5", listed(backwards, functional(layers, outputs, version=version)))
    assert is_the_head(path)
    inputs = found(path).inputs
    assert inputs is not None
    assert inputs.domain == Box(-1, 1)


@pytest.mark.parametrize(
    "after",
    [
        [layer("Activation", "a", activation="softmax")],
        [layer("Softmax", "s")],
        [layer("Reshape", "r", target_shape=[1, 5]), layer("Activation", "a", activation="sigmoid")],
        [layer("Reshape", "r", target_shape=[-1]), layer("Dropout", "d")],
        [layer("Activation", "a", activation={"class_name": "function", "config": "log_softmax"})],
    ],
)
def test_layers_that_keep_the_order_are_passed(tmp_path: Path, after: list[Any]) -> None:
    model = sequential(dense("hidden", 4), dense("output"), *after)
    assert is_the_head(write(tmp_path / "m.h5", listed(DENSE, model)))


def test_a_layer_applied_at_each_time_is_found_inside_its_wrapper(tmp_path: Path) -> None:
    model = sequential(
        dense("hidden", 4), layer("TimeDistributed", "times", layer=dense("inner", 5, "softmax"))
    )
    keras2 = {"times": {"times/kernel:0": KERNEL, "times/bias:0": BIAS}}
    keras3 = {"times": {"s/times/inner/kernel": KERNEL, "s/times/inner/bias": BIAS}}
    stored = {"layers/dense": ("", [HIDDEN]), "layers/time_distributed/layer": ("", [KERNEL, BIAS])}
    assert is_the_head(write(tmp_path / "2.h5", listed(keras2, model)))
    assert is_the_head(write(tmp_path / "3.h5", listed(keras3, model)))
    assert is_the_head(write(tmp_path / "3.keras", archive(numbered(stored), model)))


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        (
            [layer("Reshape", "r", target_shape=[4, 36])],
            r"reshaped to \[4, 36\].*not the classes of one argmax",
        ),
        ([layer("Flatten", "f")], r"comes from 'f' \(Flatten\)"),
        ([layer("Activation", "a", activation="relu")], "relu of 'a' may change the order"),
        ([layer("Activation", "a", activation="my_function")], "my_function of 'a' may change the order"),
        ([layer("BatchNormalization", "n")], r"comes from 'n' \(BatchNormalization\)"),
    ],
)
def test_a_layer_that_does_not_decide_the_argmax_is_refused_until_named(
    tmp_path: Path, last: list[Any], complaint: str
) -> None:
    path = write(tmp_path / "m.h5", listed(DENSE, sequential(dense("hidden", 4), dense("output"), *last)))
    with pytest.raises(LoadError, match=rf"{complaint}.*output/output/kernel:0 \(4 × 5, float32\)"):
        load_head(path)
    assert is_the_head(path, tensor="model_weights/output/output/kernel:0")


@pytest.mark.parametrize("version", [2, 3])
def test_two_outputs_are_refused(tmp_path: Path, version: int) -> None:
    layers = {"hidden": (dense("hidden", 4), ["x"]), "output": (dense("output"), ["hidden"])}
    model = functional(layers, [["hidden", 0, 0], ["output", 0, 0]], version=version)
    with pytest.raises(LoadError, match=r"2 outputs \(hidden, output\)"):
        load_head(write(tmp_path / "m.h5", listed(DENSE, model)))


def test_a_configured_layer_without_weights_in_the_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="'absent', for which the file has 0 kernels"):
        load_head(write(tmp_path / "m.h5", listed(DENSE, sequential(dense("absent")))))


def test_a_configuration_without_layers_leaves_it_to_the_order_of_the_file(tmp_path: Path) -> None:
    assert is_the_head(write(tmp_path / "m.h5", listed(DENSE, {"class_name": "MyModel", "config": {"x": 1}})))


@pytest.mark.parametrize(
    ("units", "activation", "words"),
    [(5, "sigmoid", "each class by itself"), (1, "sigmoid", "one class only")],
)
def test_answers_that_are_no_argmax_are_noted(
    tmp_path: Path, units: int, activation: str, words: str
) -> None:
    layers = {"o": {"o/kernel:0": KERNEL[:, :units]}}
    finding = found(write(tmp_path / "m.h5", listed(layers, sequential(dense("o", units, activation)))))
    assert len(finding.notes) == 1
    assert words in finding.notes[0]


# ---------------------------------------------------------------------- which layer, without one


def test_other_layers_in_front_do_not_matter(tmp_path: Path) -> None:
    layers: dict[str, Arrays] = {
        "embedding": {"embedding/embeddings:0": np.ones((5, 3), np.float32)},
        "rnn": {"rnn/kernel:0": KERNEL, "rnn/recurrent_kernel:0": KERNEL, "rnn/bias:0": BIAS},
        "attention": {"attention/attention_W:0": np.ones((4, 1), np.float32)},
        "output": DENSE["output"],
    }
    path = write(tmp_path / "m.h5", listed(layers))
    assert is_the_head(path)
    assert found(path).alternatives == ()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (listed({**DENSE, "norm": {"norm/gamma:0": SHIFT}}), "the last layer with weights is 'norm'"),
        (
            listed({"a": {"a/kernel:0": KERNEL[:, :2]}, "b": {"b/kernel:0": KERNEL}}),
            "two layers on the same features",
        ),
        (numbered({"layers/dense": ("", [KERNEL]), "layers/my_dense": ("", [HIDDEN])}), "not tell the order"),
        (listed({"norm": {"norm/gamma:0": SHIFT}}), "no layer with only a kernel and a bias"),
        (numbered({"layers/embedding": ("", [KERNEL])}), "no layer with only a kernel and a bias"),
        (
            numbered({"layers/lstm/cell": ("", [KERNEL, KERNEL, BIAS])}),
            "no layer with only a kernel and a bias",
        ),
    ],
    ids=["norm-last", "two-heads", "two-classes", "no-kernel", "embedding", "recurrent"],
)
def test_an_unclear_choice_is_left_to_the_user(tmp_path: Path, data: bytes, complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(write(tmp_path / "m.h5", data))


def test_convolutions_come_before_dense_layers_where_no_order_is_told(tmp_path: Path) -> None:
    pixel = RNG.normal(size=(1, 1, 3, 4)).astype(np.float32)
    layers = {"layers/conv2d": ("", [pixel]), "layers/dense": ("", [KERNEL, BIAS])}
    assert is_the_head(write(tmp_path / "m.weights.h5", numbered(layers)))


# ---------------------------------------------------------------------- names given by the user


def test_transpose_takes_the_dataset_as_classes_by_features(tmp_path: Path) -> None:
    layers = {"e": {"e/embeddings:0": KERNEL.T.copy()}, "output": DENSE["output"]}
    path = write(tmp_path / "m.h5", listed(layers))
    head = load_head(path, tensor="e/e/embeddings:0", bias_tensor="output/output/bias:0", transpose=True)
    assert same_bits(head.weight, KERNEL.T.copy())
    assert same_bits(head.bias, BIAS)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tensor": "absent"}, r"'absent' leads to nothing.*output/output/kernel:0 \(4 × 5, float32\)"),
        ({"tensor": "output"}, "'output' is not a dataset"),
        ({"tensor": "output/output/bias:0"}, "is not a matrix"),
        ({"bias_tensor": "absent"}, "'absent' leads to nothing"),
        ({"bias_tensor": "hidden/hidden/bias:0"}, r"bias has shape \(4,\)"),
    ],
)
def test_a_wrong_name_is_reported(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(write(tmp_path / "m.h5", listed(DENSE)), **options)


# ---------------------------------------------------------------------- what feeds the head


def domain_of(folder: Path, *before: dict[str, Any]) -> Domain | None:
    finding = found(write(folder / "m.h5", listed(DENSE, sequential(*before, dense("output")))))
    assert finding.inputs is not None
    return finding.inputs.domain


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("linear", None),
        (None, None),
        ("relu", Box(0, INF)),
        ("relu6", Box(0, 6)),
        ("sigmoid", Box(0, 1)),
        ("hard_sigmoid", Box(0, 1)),
        ("tanh", Box(-1, 1)),
        ("softmax", Box(0, 1)),
        ("swish", Box(-0.27847, INF)),
        ("silu", Box(-0.27847, INF)),
        ("gelu", Box(-0.1701, INF)),
        ("elu", Box(-1, INF)),
        ({"class_name": "function", "config": "relu"}, Box(0, INF)),
        ({"class_name": "LeakyReLU", "config": {"alpha": 0.1}}, None),
        ("my_function", None),
    ],
)
def test_the_activation_in_front_gives_the_box(tmp_path: Path, activation: Any, expected: Box | None) -> None:
    assert domain_of(tmp_path, dense("hidden", 4, activation)) == expected
    assert domain_of(tmp_path, layer("Activation", "a", activation=activation)) == expected


RELU = dense("hidden", 4, "relu")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([RELU, layer("GlobalAveragePooling2D", "p"), layer("Dropout", "d")], Box(0, INF)),
        ([RELU, layer("MaxPooling1D", "p"), layer("Flatten", "f")], Box(0, INF)),
        ([RELU, layer("BatchNormalization", "n")], None),
        ([layer("ReLU", "r", max_value=6.0)], Box(0, 6)),
        ([layer("ReLU", "r", max_value=None)], Box(0, INF)),
        ([layer("ReLU", "r", negative_slope=0.1)], None),
        ([layer("ReLU", "r", threshold=-1.0)], None),
        ([layer("Embedding", "e"), layer("LSTM", "l", activation="tanh")], Box(-1, 1)),
        ([layer("Embedding", "e"), layer("LSTM", "l", activation="relu")], None),
        (
            [layer("Embedding", "e"), layer("GRU", "g", activation="tanh", recurrent_activation="linear")],
            None,
        ),
        ([layer("Embedding", "e"), layer("CuDNNLSTM", "l")], Box(-1, 1)),
        (
            [
                layer("Embedding", "e"),
                layer("Bidirectional", "b", merge_mode="concat", layer=layer("LSTM", "l", activation="tanh")),
            ],
            Box(-1, 1),
        ),
        (
            [
                layer("Embedding", "e"),
                layer("Bidirectional", "b", merge_mode="sum", layer=layer("LSTM", "l", activation="tanh")),
            ],
            None,
        ),
        ([layer("TimeDistributed", "t", layer=RELU)], Box(0, INF)),
        ([{"class_name": "Sequential", "config": {"name": "base", "layers": [RELU]}}], Box(0, INF)),
        ([{"class_name": "Sequential", "config": {"name": "base", "layers": [{}]}}], None),
    ],
)
def test_pooling_recurrence_and_models_inside_are_understood(
    tmp_path: Path, before: list[Any], expected: Box | None
) -> None:
    assert domain_of(tmp_path, *before) == expected


@pytest.mark.parametrize("version", [2, 3])
def test_joined_features_have_the_box_around_both(tmp_path: Path, version: int) -> None:
    layers = {
        "x": (layer("InputLayer", "x"), []),
        "a": (dense("a", 2, "tanh"), ["x"]),
        "b": (dense("b", 2, "relu6"), ["x"]),
        "join": (layer("Concatenate", "join"), ["a", "b"]),
        "output": (dense("output"), ["join"]),
    }
    model = functional(layers, [["output", 0, 0]], version=version)
    inputs = found(write(tmp_path / "m.h5", listed(DENSE, model))).inputs
    assert inputs is not None
    assert inputs.domain == Box(-1, 6)


NORM = {"norm": {"norm/gamma:0": GAIN, "norm/beta:0": SHIFT}}


@pytest.mark.parametrize(
    ("settings_", "arrays", "expected"),
    [
        ({}, NORM["norm"], rounded(LayerNorm, GAIN, SHIFT)),
        ({"axis": [-1]}, NORM["norm"], rounded(LayerNorm, GAIN, SHIFT)),
        ({"center": False}, {"norm/gamma:0": GAIN}, rounded(LayerNorm, GAIN)),
        ({"scale": False}, {"norm/beta:0": SHIFT}, rounded(LayerNorm, 1.0, SHIFT)),
        ({"axis": 1}, NORM["norm"], None),
        ({"rms_scaling": True}, NORM["norm"], None),
        ({}, {"norm/gamma:0": GAIN}, None),
        ({}, {"norm/gamma:0": GAIN[:3], "norm/beta:0": SHIFT}, None),
        ({}, {"norm/gamma:0": GAIN, "norm/beta:0": SHIFT * np.float32(INF)}, None),
    ],
)
def test_a_layer_normalisation_in_front_gives_its_solid(
    tmp_path: Path, settings_: dict[str, Any], arrays: Arrays, expected: LayerNorm | None
) -> None:
    model = sequential(
        layer("LayerNormalization", "norm", **settings_), layer("Dropout", "d"), dense("output")
    )
    inputs = found(write(tmp_path / "m.h5", listed({"norm": arrays, **DENSE}, model))).inputs
    assert inputs is not None
    assert inputs.domain == expected


@pytest.mark.parametrize(
    "policy",
    [
        "float16",
        "bfloat16",
        "mixed_bfloat16",
        {"class_name": "DTypePolicy", "config": {"name": "mixed_float16"}},
    ],
)
def test_half_precision_leaves_signs_and_nothing_else(tmp_path: Path, policy: Any) -> None:
    feeds = {
        "LayerNormalization": (layer("LayerNormalization", "norm", dtype=policy), None),
        "gelu": (layer("Activation", "norm", activation="gelu", dtype=policy), None),
        "relu": (layer("Activation", "norm", activation="relu", dtype=policy), Box(0, INF)),
    }
    for feed, expected in feeds.values():
        model = sequential(feed, layer("Dropout", "d"), dense("output"))
        inputs = found(write(tmp_path / "m.h5", listed({**NORM, **DENSE}, model))).inputs
        assert inputs is not None
        assert inputs.domain == expected
        assert inputs.description.endswith("in half precision")


def test_a_layer_normalisation_is_found_by_number_too(tmp_path: Path) -> None:
    layers = {"layers/layer_normalization": ("norm", [GAIN, SHIFT]), **NUMBERED}
    model = sequential(layer("LayerNormalization", "norm"), dense("output"))
    inputs = found(write(tmp_path / "m.keras", archive(numbered(layers), model))).inputs
    assert inputs is not None
    assert inputs.domain == rounded(LayerNorm, GAIN, SHIFT)


def test_layers_in_another_order_than_the_configuration_are_ambiguous(tmp_path: Path) -> None:
    first, second = (np.full((4, 4), value, np.float32) for value in (1, 2))
    layers = {"b": {"b/kernel:0": second}, "a": {"a/kernel:0": first}}
    config = sequential(dense("a", 4), dense("b", 4))
    path = write(tmp_path / "model.h5", listed(layers, config))
    with pytest.raises(AmbiguousError, match="another order than the configuration"):
        load_head(path)


def test_a_layer_used_twice_has_no_box_for_its_users(tmp_path: Path) -> None:
    hidden = {**dense("hidden", 4, "relu"), "name": "hidden"}
    hidden["inbound_nodes"] = [[["x", 0, 0, {}]], [["y", 0, 0, {}]]]
    output = {**dense("output"), "name": "output"}
    output["inbound_nodes"] = [[["x", 0, 0, {}]], [["hidden", 1, 0, {}]]]
    model = {
        "class_name": "Model",
        "config": {"layers": [hidden, output], "output_layers": [["output", 0, 0]]},
    }
    inputs = found(write(tmp_path / "m.h5", listed(DENSE, model))).inputs
    assert inputs is not None
    assert inputs.domain is None
    assert "unknown" in inputs.description


# ---------------------------------------------------------------------- damaged and hostile files


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.usefixtures("own_process")
def test_a_file_cut_short_is_refused(tmp_path: Path, name: str) -> None:
    whole = LAYOUTS[name]
    for size in range(0, len(whole) - 64, len(whole) // 3):  # each is read by a process of its own
        with pytest.raises(LoadError):
            load_head(write(tmp_path / name, whole[:size]))


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("m.h5", b"neither a model nor a pointer to one\n", "no HDF5 file as Keras writes them"),
        ("m.keras", b"neither a model nor a pointer to one\n", "no HDF5 file as Keras writes them"),
        ("m.h5", b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
        ("m.keras", b"PK\3\4" + bytes(100), r"not a readable \.keras archive"),
        ("m.keras", archive(b"", MODEL), "no HDF5 file as Keras writes them"),
        ("m.keras", archive(numbered(NUMBERED), "{"), "configuration is not valid JSON"),
        ("m.keras", archive(numbered(NUMBERED), "[" * 100_000), "configuration is not valid JSON"),
        ("m.keras", archive(numbered(NUMBERED), "[]"), "configuration can't be read"),
        ("m.keras", archive(numbered(NUMBERED), {"class_name": "Functional", "config": {"layers": [1]}}),
         "configuration can't be read"),
        ("m.h5", listed({"o": {"o/kernel:0": KERNEL.astype(np.int8)}}), "holds no floats"),
        ("m.h5", listed({"o": {"o/kernel:0": KERNEL * np.float32(np.nan)}}), "must be finite"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("own_process")
def test_files_that_are_no_model_are_refused(tmp_path: Path, name: str, data: bytes, complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(write(tmp_path / name, data))


@pytest.mark.usefixtures("own_process")
def test_an_archive_without_weights_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as file:
        file.writestr("config.json", "{}")
        file.writestr("model.weights.json", "{}")
    with pytest.raises(LoadError, match=r"archive without model\.weights\.h5.*model\.weights\.json"):
        load_head(tmp_path / "m.keras")


@pytest.mark.usefixtures("own_process")
def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "m.keras", archive(bytes(80 * 2**20), MODEL, zipfile.ZIP_DEFLATED))
    with pytest.raises(LoadError, match="zip bomb"):
        load_head(path)


def hostile(path: Path, put: Any) -> Path:
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        put(group)
    return path


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.usefixtures("own_process")
def test_a_dataset_that_is_mostly_not_there_is_refused(tmp_path: Path, compression: str | None) -> None:
    def put(group: Any) -> None:
        chunks = None if compression is None else (2**10, 2**10)
        data = group.create_dataset("0", (2**20, 2**20), np.float32, compression=compression, chunks=chunks)
        if compression is not None:
            data[:1024, :1024] = 0

    with pytest.raises(LoadError, match="would expand"):
        load_head(hostile(tmp_path / "m.h5", put))


@pytest.mark.usefixtures("own_process")
def test_data_in_other_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(KERNEL.tobytes())
    outside = [(str(tmp_path / "secret"), 0, KERNEL.nbytes)]
    path = hostile(
        tmp_path / "m.h5", lambda group: group.create_dataset("0", (4, 5), np.float32, external=outside)
    )
    with pytest.raises(LoadError, match="stored in another file"):
        load_head(path)


@pytest.mark.usefixtures("own_process")
def test_virtual_datasets_are_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = KERNEL
    layout = h5py.VirtualLayout((4, 5), np.float32)
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "x", (4, 5))
    path = hostile(tmp_path / "m.h5", lambda group: group.create_virtual_dataset("0", layout))
    with pytest.raises(LoadError, match="stored in another file"):
        load_head(path)


@pytest.mark.parametrize("link", [h5py.SoftLink("/x"), h5py.ExternalLink("other.h5", "/x")], ids=str)
@pytest.mark.usefixtures("own_process")
def test_links_are_not_followed(tmp_path: Path, link: Any) -> None:
    def put(group: Any) -> None:
        group.file["x"] = KERNEL
        group["0"] = link

    with pytest.raises(LoadError, match="leads to a link"):
        load_head(hostile(tmp_path / "m.h5", put))


@pytest.mark.usefixtures("own_process")
def test_a_group_that_contains_itself_is_refused(tmp_path: Path) -> None:
    def put(group: Any) -> None:
        group.parent["again"] = group.parent
        group.parent["and again"] = group.parent

    with pytest.raises(LoadError, match="too deep in one another"):
        load_head(hostile(tmp_path / "m.h5", put))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from(["", "hidden", "Dense", "relu", "Reshape"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "config"]), inner),
    max_leaves=5,
)


def replaced(value: Any, places: list[int], junk: list[Any]) -> Any:
    """The value with some of its parts, counted in reading order, replaced."""
    places[0] -= 1
    if places[0] == 0 and junk:
        if len(places) > 1:
            places.pop(0)
        return junk.pop()
    if isinstance(value, dict):
        return {key: replaced(each, places, junk) for key, each in value.items()}
    return [replaced(each, places, junk) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def dense_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outline]:
    path = write(tmp_path_factory.mktemp("dense") / "m.h5", listed(DENSE))
    with opened(path) as file:
        return path, file.outline


def test_a_wrapper_around_a_damaged_layer_is_refused(dense_file: tuple[Path, Outline]) -> None:
    path, outline = dense_file
    damaged = sequential(RELU, layer("TimeDistributed", "t", layer={"class_name": "Dense", "config": None}))
    with pytest.raises(LoadError, match="configuration can't be read"):
        find_in(KerasFile(outline, json.dumps(damaged).encode()), path, ReadOptions())


@settings(max_examples=150)
@given(
    model=st.sampled_from([
        MODEL,
        sequential(RELU, layer("TimeDistributed", "t", layer=dense("output")), layer("Softmax", "s")),
        functional({"a": (RELU, ["b"]), "b": (layer("Concatenate", "b"), ["a", "a"]),
                    "o": (dense("o"), ["b"])}, [["o", 0, 0]], version=3),
    ]),
    places=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    junk=st.lists(JUNK, min_size=1, max_size=3),
)  # fmt: skip
def test_a_configuration_with_wrong_parts_is_read_or_refused(
    dense_file: tuple[Path, Outline], model: Any, places: list[int], junk: list[Any]
) -> None:
    path, outline = dense_file
    config = json.dumps(replaced(model, list(places), list(junk)))
    try:
        find_in(KerasFile(outline, config.encode()), path, ReadOptions()).head("junk")
    except LoadError as error:
        assert str(error)  # noqa: PT017 - any LoadError is right


def test_a_very_long_chain_of_layers_has_no_box_but_a_head() -> None:
    chain = [layer("Flatten", f"f{number}") for number in range(5000)]
    network = parse(json.dumps(sequential(RELU, *chain, dense("output"))))
    assert network is not None
    head, _ = head_of(network)
    assert head.name == "output"
    assert len(feeding_layers(network, head)) == 5001
    assert output_range(network, "f4999") == (-INF, INF)


# ---------------------------------------------------------------------- the package


@pytest.mark.usefixtures("own_process")
def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.h5", listed(DENSE))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(LoadError, match=r"needs the package h5py: pip install 'argmaxable\[keras\]'"):
        load_head(path)


@pytest.mark.usefixtures("own_process")
def test_hdf5_is_recognised_by_its_first_bytes(tmp_path: Path) -> None:
    assert is_the_head(write(tmp_path / "weights.dat", listed(DENSE)))


def test_a_group_that_lists_the_weights_of_another_layer_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["layer_names"] = ["dense", "head"]
        for group, inner in (("dense", "head"), ("head", "dense")):
            file.create_group(group).attrs["weight_names"] = [f"{inner}/kernel:0"]
            file[f"{group}/{inner}/kernel:0"] = np.ones((3, 4), np.float32)
    with pytest.raises(AmbiguousError, match="'dense' lists weights of layer 'head'"):
        load_head(tmp_path / "m.h5")
