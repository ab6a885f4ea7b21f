"""Heads in TensorFlow Lite files, which `tflite_writer` makes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tflite_writer import (
    ADD,
    AVERAGE_POOL_2D,
    DEQUANTIZE,
    EXPAND_DIMS,
    FUSED_RELU,
    FUSED_RELU6,
    FUSED_RELU_N1_TO_1,
    FUSED_SIGN,
    FUSED_TANH,
    GELU,
    HARD_SWISH,
    INT4,
    LOG_SOFTMAX,
    LOGISTIC,
    MAX_POOL_2D,
    MEAN,
    MUL,
    NONE,
    QUANTIZE,
    RELU,
    RELU6,
    RESHAPE,
    SOFTMAX,
    SQUEEZE,
    STRING,
    TANH,
    TRANSPOSE,
    TYPES,
    Op,
    T,
    constant,
    convolution,
    fully_connected,
    model_bytes,
    softmax,
    table,
    write,
)

from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.finding import Finding
from argmaxable.models.registry import ReadOptions
from argmaxable.models.tflite.reader import find

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(5, 4)).astype(np.float32)
BIAS = RNG.normal(size=5).astype(np.float32)
INTEGERS = RNG.integers(0, 256, (5, 4)).astype(np.uint8)
COUNTS = RNG.integers(-1000, 1000, 5).astype(np.int32)

INF = np.inf


X, Z, P = T("x", (1, 4)), T("z", (1, 5)), T("p", (1, 5))
W, B = constant("W", WEIGHT), constant("b", BIAS)
QUANTISED = {
    "x": T("x", (1, 4), TYPES["u1"], scale=(0.25,), zero=(3,)),
    "W": constant("W", INTEGERS, scale=(0.1,), zero=(94,)),
    "b": constant("b", COUNTS, scale=(0.025,), zero=(0,)),
    "z": T("z", (1, 5), TYPES["u1"], scale=(0.5,), zero=(7,)),
}


def plain_file(folder: Path) -> Path:
    operators = [fully_connected("x", "W", "b"), softmax("z")]
    return write(folder / "model.tflite", [X, W, B, Z, P], operators, ["p"])


def found(path: Path, **options: Any) -> Finding:
    return find(path, ReadOptions(**options))


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def fractions(array: NDArray[Any] | None) -> list[Fraction]:
    assert array is not None
    return [Fraction(float(value)) for value in array.reshape(-1)]


# ---------------------------------------------------------------------- weights and biases


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_come_back_bit_for_bit(tmp_path: Path, dtype: Any) -> None:
    tensors = [X, constant("W", WEIGHT.astype(dtype)), constant("b", BIAS.astype(dtype)), Z]
    head = load_head(write(tmp_path / "m.tflite", tensors, [fully_connected("x", "W", "b")]))
    assert same_bits(head.weight, WEIGHT.astype(dtype))
    assert same_bits(head.bias, BIAS.astype(dtype))


@pytest.mark.parametrize("inputs", [("x", "W", ""), ("x", "W")])
def test_a_layer_without_bias_has_none(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    path = write(tmp_path / "m.tflite", [X, W, Z], [fully_connected(*inputs)])
    assert load_head(path).bias is None


def test_a_convolution_of_one_pixel_is_a_linear_layer(tmp_path: Path) -> None:
    tensors = [T("x", (1, 1, 1, 4)), constant("W", WEIGHT.reshape(5, 1, 1, 4)), B, T("z", (1, 1, 1, 5))]
    head = load_head(write(tmp_path / "m.tflite", tensors, [convolution("x", "W", "b", out="z")]))
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_float16_weights_behind_a_dequantize_keep_their_dtype(tmp_path: Path) -> None:
    half = constant("half", WEIGHT.astype(np.float16))
    operators = [Op(DEQUANTIZE, ("half",), ("W",)), fully_connected("x", "W", "b")]
    path = write(tmp_path / "m.tflite", [X, half, T("W", (5, 4)), B, Z], operators)
    assert same_bits(load_head(path).weight, WEIGHT.astype(np.float16))


def test_integers_with_one_scale_are_dequantised_exactly(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", list(QUANTISED.values()), [fully_connected("x", "W", "b")])
    scale = Fraction(float(np.float32(0.1)))
    weight = load_head(path).weight
    assert weight.dtype == np.float64
    assert fractions(weight) == [(int(q) - 94) * scale for q in INTEGERS.reshape(-1)]


def test_integers_with_a_scale_for_each_class_are_dequantised_exactly(tmp_path: Path) -> None:
    scales = (0.1, 0.2, 0.3, 0.4, 0.7)
    weight = constant("W", INTEGERS.view(np.int8), scale=scales, zero=(0,) * 5)
    path = write(tmp_path / "m.tflite", [X, weight, Z], [fully_connected("x", "W")])
    exact = [Fraction(float(np.float32(scale))) for scale in scales]
    expected = [int(q) * exact[place // 4] for place, q in enumerate(INTEGERS.view(np.int8).reshape(-1))]
    assert fractions(load_head(path).weight) == expected


def test_float32_is_used_where_it_is_exact(tmp_path: Path) -> None:
    weight = constant("W", INTEGERS, scale=(0.5,), zero=(3,))
    path = write(tmp_path / "m.tflite", [QUANTISED["x"], weight, Z], [fully_connected("x", "W")])
    assert same_bits(load_head(path).weight, (INTEGERS.astype(np.float32) - 3) / 2)


def test_four_bit_integers_are_unpacked_low_half_first(tmp_path: Path) -> None:
    numbers = RNG.integers(-8, 8, (5, 3))
    halves = np.append(numbers.reshape(-1) & 15, 0).astype(np.uint8)
    packed = (halves[::2] | halves[1::2] << 4).tobytes()
    weight = T("W", (5, 3), INT4, packed, scale=(0.5,))
    path = write(tmp_path / "m.tflite", [T("x", (1, 3)), weight, Z], [fully_connected("x", "W")])
    assert load_head(path).weight.tolist() == (numbers / 2).tolist()


def test_an_integer_bias_counts_products_of_the_two_scales(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", list(QUANTISED.values()), [fully_connected("x", "W", "b")])
    product = Fraction(1, 4) * Fraction(float(np.float32(0.1)))  # not the float32 stored with the bias
    assert fractions(load_head(path).bias) == [int(count) * product for count in COUNTS]


def test_an_integer_bias_has_its_own_product_for_each_class(tmp_path: Path) -> None:
    scales = (0.5, 0.25, 2.0, 4.0, 8.0)
    weight = constant("W", INTEGERS.view(np.int8), scale=scales, zero=(0,) * 5)
    tensors = [QUANTISED["x"], weight, QUANTISED["b"], Z]
    head = load_head(write(tmp_path / "m.tflite", tensors, [fully_connected("x", "W", "b")]))
    assert same_bits(head.bias, (COUNTS * np.array(scales) / 4).astype(np.float32))


@pytest.mark.parametrize("inputs", [("y", "b"), ("b", "y")])
def test_a_constant_added_after_a_reshape_is_the_bias(tmp_path: Path, inputs: tuple[str, str]) -> None:
    operators = [
        fully_connected("x", "W", out="y0"),
        Op(RESHAPE, ("y0",), ("y",)),
        Op(ADD, inputs, ("z",), (("Int8", NONE),)),
        softmax("z"),
    ]
    tensors = [X, W, B, T("y0", (1, 5)), T("y", (1, 1, 5)), T("z", (1, 1, 5)), T("p", (1, 1, 5))]
    path = write(tmp_path / "m.tflite", tensors, operators, ["p"])
    assert same_bits(load_head(path).bias, BIAS)
    assert same_bits(load_head(path, tensor="W").bias, BIAS)


def test_weights_behind_the_flatbuffer_are_found(tmp_path: Path) -> None:
    data = bytearray(model_bytes([X, replace(W, data=b"weights!"), Z], [fully_connected("x", "W")], ["z"]))
    # The buffer's only field, data, becomes its fields offset and size, as in files beyond 2 GB.
    builder = flatbuffers.Builder(0)
    start = len(data) + 100
    builder.Finish(table(builder, [None, ("Uint64", start), ("Uint64", WEIGHT.nbytes)]))
    moved = bytes(builder.Output())
    place = len(data)
    root = int.from_bytes(moved[:4], "little")
    entry = find_buffer_entry(bytes(data), b"weights!")
    data[entry : entry + 4] = (place + root - entry).to_bytes(4, "little")
    data += moved
    data += bytes(start - len(data)) + WEIGHT.tobytes()
    (tmp_path / "m.tflite").write_bytes(data)
    assert same_bits(load_head(tmp_path / "m.tflite").weight, WEIGHT)
    (tmp_path / "m.tflite").write_bytes(data[:-1])
    with pytest.raises(LoadError, match="should end at byte"):
        load_head(tmp_path / "m.tflite")


def find_buffer_entry(data: bytes, content: bytes) -> int:
    """Where the vector of buffers refers to the one with this content."""
    content_place = data.index(content) - 4  # the vector with its length
    for entry in range(0, len(data) - 4, 4):
        buffer = entry + int.from_bytes(data[entry : entry + 4], "little")
        if buffer + 8 <= len(data) and buffer > entry:
            field = buffer + 4
            if field + int.from_bytes(data[field : field + 4], "little") == content_place:
                return entry
    raise AssertionError("no such buffer")


# ---------------------------------------------------------------------- which layer


@pytest.mark.parametrize(
    "code", [SOFTMAX, LOG_SOFTMAX, LOGISTIC, RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, DEQUANTIZE, QUANTIZE]
)
def test_steps_that_keep_the_order_are_passed(tmp_path: Path, code: int) -> None:
    options = (("Float32", 1.0),) if code == SOFTMAX else ()
    operators = [fully_connected("x", "W", "b"), Op(code, ("z",), ("p",), options)]
    finding = found(write(tmp_path / "m.tflite", [X, W, B, Z, P], operators, ["p"]))
    assert same_bits(finding.read()[0], WEIGHT)
    assert finding.why == "the FULLY_CONNECTED that leads to the output"
    assert bool(finding.notes) == (code == LOGISTIC)


DEEP = [
    T("x", (1, 3)), constant("V", np.ones((4, 3), np.float32)), T("h", (1, 4)), W, B, Z, T("z2", (1, 5)), P,
    T("grouped", (1, 1, 5, 1)),
]  # fmt: skip
HIDDEN = fully_connected("x", "V", out="h", fused=FUSED_RELU)
LAST = fully_connected("h", "W", "b")


@pytest.mark.parametrize(
    ("operators", "output", "complaint"),
    [
        ([HIDDEN, LAST, Op(TANH, ("z",), ("p",)), Op(MUL, ("p", "p"), ("z2",))], "z2", "ends at MUL"),
        ([HIDDEN, fully_connected("h", "W", "b", fused=FUSED_RELU)], "z", "relu follows the last layer"),
        ([HIDDEN, fully_connected("h", "W", "b", fused=FUSED_SIGN)], "z", "sign_bit follows"),
        ([HIDDEN, LAST, Op(RESHAPE, ("z",), ("grouped",))], "grouped", "not the classes of one argmax"),
        ([HIDDEN, LAST, Op(ADD, ("z", "b"), ("z2",), (("Int8", NONE),))], "z2", "more than one bias"),
        ([HIDDEN, LAST, softmax("z"), Op(ADD, ("p", "b"), ("z2",))], "z2", "ends at SOFTMAX"),
        ([HIDDEN, LAST, softmax("z", beta=-1.0)], "p", "factor that is not above 0"),
        ([HIDDEN], "x", "ends at nothing"),
    ],
    ids=["product", "relu", "sign", "groups", "two-biases", "late-bias", "beta", "input"],
)
def test_a_layer_that_does_not_decide_the_argmax_is_refused_until_named(
    tmp_path: Path, operators: list[Op], output: str, complaint: str
) -> None:
    path = write(tmp_path / "m.tflite", DEEP, operators, [output])
    with pytest.raises(LoadError, match=complaint):
        load_head(path)
    assert same_bits(load_head(path, tensor="W").weight, WEIGHT)


def test_two_outputs_are_refused_with_the_layers_to_choose_from(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", DEEP, [HIDDEN, LAST], ["z", "h"])
    with pytest.raises(LoadError, match=r"2 outputs.*W \(5 × 4, float32\), V \(4 × 3, float32\)"):
        load_head(path)


def test_other_layers_are_alternatives_and_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", DEEP, [HIDDEN, LAST])
    assert [each.name for each in found(path).alternatives] == ["V"]
    assert load_head(path, tensor="V").classes == 4


def test_a_matrix_no_layer_uses_can_be_named_with_any_bias(tmp_path: Path) -> None:
    table_ = constant("embedding", WEIGHT + 1)
    path = write(tmp_path / "m.tflite", [*DEEP, table_], [HIDDEN, LAST])
    head = load_head(path, tensor="embedding", bias_tensor="b")
    assert same_bits(head.weight, WEIGHT + 1)
    assert same_bits(head.bias, BIAS)


def test_transpose_flips_the_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", [X, W, Z], [fully_connected("x", "W")])
    assert same_bits(load_head(path, transpose=True).weight, WEIGHT.T.copy())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tensor": "absent"}, r"'absent' not found.*W \(5 × 4, float32\)"),
        ({"tensor": "b"}, r"b \(5, float32\) is not a constant matrix"),
        ({"tensor": "h"}, r"h \(1 × 4, float32\) is not a constant matrix"),
        ({"bias_tensor": "absent"}, "no constant tensor 'absent'"),
        ({"bias_tensor": "h"}, "no constant tensor 'h'"),
        ({"bias_tensor": "V"}, r"bias has shape \(4, 3\)"),
    ],
)
def test_a_wrong_name_is_reported(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    path = write(tmp_path / "m.tflite", DEEP, [HIDDEN, LAST])
    with pytest.raises(LoadError, match=complaint):
        load_head(path, **options)


@pytest.mark.parametrize(
    ("tensors", "operator", "complaint"),
    [
        ([X, W, Z], fully_connected("x", "W", shuffled=1), "no linear layer with constant weights"),
        ([X, T("W", (5, 4)), Z], fully_connected("x", "W"), "no linear layer with constant weights"),
        ([X, W, T("b", (5,)), Z], fully_connected("x", "W", "b"), "no linear layer with constant weights"),
        (
            [T("x", (1, 1, 1, 8)), constant("W", WEIGHT.reshape(5, 1, 1, 4)), T("z", (1, 1, 1, 5))],
            convolution("x", "W", out="z"),
            "no linear layer with constant weights",
        ),
        (
            [T("x", (1, 3, 3, 2)), constant("W", WEIGHT.reshape(5, 2, 1, 2)), T("z", (1, 2, 3, 5))],
            convolution("x", "W", out="z"),
            "no linear layer with constant weights",
        ),
        ([X, constant("W", INTEGERS), Z], fully_connected("x", "W"), "nor integers with a scale"),
        ([X, T("W", (5, 4), STRING, b"12345"), Z], fully_connected("x", "W"), "neither floats nor"),
        ([X, replace(W, is_sparse=True), Z], fully_connected("x", "W"), "sparse"),
        (
            [QUANTISED["x"], replace(QUANTISED["W"], details=2), Z],
            fully_connected("x", "W"),
            "kind that can't be read",
        ),
        ([X, W, QUANTISED["b"], Z], fully_connected("x", "W", "b"), "the layer's input has no scale"),
        (
            [QUANTISED["x"], replace(QUANTISED["W"], scale=(1.0, 2.0)), Z],
            fully_connected("x", "W"),
            "has 2 scales",
        ),
        ([X, replace(W, shape=(5, 5)), Z], fully_connected("x", "W"), "has 80 bytes"),
    ],
    ids=["shuffled", "computed-weight", "computed-bias", "grouped", "wide-filter", "no-scale", "string",
         "sparse", "blockwise", "no-input-scale", "two-scales", "too-short"],
)  # fmt: skip
def test_layers_that_can_not_be_read_are_refused(
    tmp_path: Path, tensors: list[T], operator: Op, complaint: str
) -> None:
    path = write(tmp_path / "m.tflite", tensors, [operator])
    with pytest.raises(LoadError, match=complaint):
        load_head(path)


# ---------------------------------------------------------------------- what feeds the head


def box_of(folder: Path, tensors: Sequence[T], operators: Sequence[Op]) -> Box | None:
    """The box proposed for a head that takes the tensor x from these operators; None for everywhere."""
    whole = [*tensors, W, T("z", (1, 5))]
    inputs = found(write(folder / "m.tflite", whole, [*operators, fully_connected("x", "W")])).inputs
    assert inputs is not None
    assert inputs.description
    assert isinstance(inputs.domain, Box | Everywhere)
    return inputs.domain if isinstance(inputs.domain, Box) else None


A, V = T("a", (1, 3)), constant("V", np.ones((4, 3), np.float32))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (fully_connected("a", "V", out="x"), None),
        (fully_connected("a", "V", out="x", fused=FUSED_RELU), Box(0, INF)),
        (fully_connected("a", "V", out="x", fused=FUSED_RELU6), Box(0, 6)),
        (fully_connected("a", "V", out="x", fused=FUSED_RELU_N1_TO_1), Box(-1, 1)),
        (fully_connected("a", "V", out="x", fused=FUSED_TANH), Box(-1, 1)),
        (convolution("a", "V", out="x", fused=FUSED_RELU6), Box(0, 6)),
        (Op(ADD, ("a", "a"), ("x",), (("Int8", FUSED_RELU),)), Box(0, INF)),
        (Op(RELU, ("a",), ("x",)), Box(0, INF)),
        (Op(RELU6, ("a",), ("x",)), Box(0, 6)),
        (Op(LOGISTIC, ("a",), ("x",)), Box(0, 1)),
        (Op(TANH, ("a",), ("x",)), Box(-1, 1)),
        (Op(HARD_SWISH, ("a",), ("x",)), Box(-0.375, INF)),
        (Op(GELU, ("a",), ("x",)), Box(-0.1701, INF)),
        (Op(MUL, ("a", "a"), ("x",), (("Int8", NONE),)), None),
    ],
)
def test_the_operator_in_front_gives_the_box(tmp_path: Path, operator: Op, expected: Box | None) -> None:
    assert box_of(tmp_path, [A, V, X], [operator]) == expected


@pytest.mark.parametrize("order", [("a", "s"), ("s", "a")])
def test_a_product_with_its_own_sigmoid_is_a_swish(tmp_path: Path, order: tuple[str, str]) -> None:
    operators = [Op(LOGISTIC, ("a",), ("s",)), Op(MUL, order, ("x",), (("Int8", NONE),))]
    assert box_of(tmp_path, [A, T("s", (1, 4)), X], operators) == Box(-0.27847, INF)


@pytest.mark.parametrize("code", [AVERAGE_POOL_2D, MAX_POOL_2D, MEAN, RESHAPE, SQUEEZE, TRANSPOSE])
def test_pooling_and_layout_are_looked_through(tmp_path: Path, code: int) -> None:
    operators = [Op(RELU6, ("a",), ("h",)), Op(code, ("h",), ("x",))]
    assert box_of(tmp_path, [A, T("h", (1, 4)), X], operators) == Box(0, 6)


def test_features_that_are_the_input_of_the_model_are_called_so(tmp_path: Path) -> None:
    inputs = found(write(tmp_path / "m.tflite", [X, W, Z], [fully_connected("x", "W")])).inputs
    assert inputs is not None
    assert inputs.description == "the input of the model (float32)"
    assert inputs.domain == Everywhere()


def quantised_x(dtype: str, scale: float, zero: int) -> T:
    return T("x", (1, 4), TYPES[dtype], scale=(scale,), zero=(zero,))


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (quantised_x("u1", 0.5, 3), Box(-1.5, 126)),
        (quantised_x("i1", 0.25, -128), Box(0, 63.75)),
        (quantised_x("i2", 2.0, 0), Box(-65536, 65534)),
        (replace(quantised_x("u1", 0.5, 3), scale=(0.0,)), None),
        (replace(quantised_x("u1", 0.5, 3), scale=(INF,)), None),
        (quantised_x("i4", 0.5, 3), None),
    ],
)
def test_quantised_features_stay_in_the_range_of_their_integers(
    tmp_path: Path, tensor: T, expected: Box | None
) -> None:
    assert box_of(tmp_path, [tensor], []) == expected


def test_integers_limited_to_relu6_are_rounded_outwards(tmp_path: Path) -> None:
    operators = [convolution("a", "V", out="x", fused=FUSED_RELU6)]
    # 6 is 20.7 steps of 0.29; the box takes 21 of the float32 nearest to 0.29.
    expected = Box(0, 21 * float(np.float32(0.29)))
    assert box_of(tmp_path, [A, V, quantised_x("u1", 0.29, 10)], operators) == expected


def test_approximated_functions_of_integers_give_the_range_of_the_integers(tmp_path: Path) -> None:
    operators = [Op(HARD_SWISH, ("a",), ("x",))]
    assert box_of(tmp_path, [A, quantised_x("u1", 0.5, 8)], operators) == Box(-4, 123.5)


@pytest.mark.parametrize(("scale", "expected"), [(0.5, Box(0, 6)), (0.25, Box(-2, 61.75))])
def test_pooling_of_integers_is_looked_through_while_their_scale_stays(
    tmp_path: Path, scale: float, expected: Box
) -> None:
    hidden = replace(quantised_x("u1", 0.5, 8), name="h")
    operators = [convolution("a", "V", out="h", fused=FUSED_RELU6), Op(MEAN, ("h",), ("x",))]
    assert box_of(tmp_path, [A, V, hidden, quantised_x("u1", scale, 8)], operators) == expected


def test_dequantised_features_have_the_range_of_the_integers_before(tmp_path: Path) -> None:
    hidden = replace(quantised_x("i1", 0.5, 0), name="h")
    assert box_of(tmp_path, [hidden, X], [Op(DEQUANTIZE, ("h",), ("x",))]) == Box(-64, 63.5)


def test_quantisation_is_noted(tmp_path: Path) -> None:
    finding = found(write(tmp_path / "m.tflite", list(QUANTISED.values()), [fully_connected("x", "W", "b")]))
    assert len(finding.notes) == 3
    assert "stored as uint8 and dequantised exactly" in finding.notes[0]


# ---------------------------------------------------------------------- labels


def with_archive(data: bytes, members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_labels_packed_into_the_file_are_used(tmp_path: Path) -> None:
    path = plain_file(tmp_path)
    labels = {"few.txt": b"a\nb", "labels.txt": "a\nb\r\nc\nΩ\n \n".encode()}
    path.write_bytes(with_archive(path.read_bytes(), labels))
    finding = found(path)
    assert finding.labels is not None
    assert finding.labels.names == ("a", "b", "c", "Ω", " ")
    assert finding.labels.source == "labels.txt inside the model"
    assert same_bits(finding.head("head").bias, BIAS)


def test_labels_beside_the_file_are_used(tmp_path: Path) -> None:
    path = plain_file(tmp_path)
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\ne\n")
    assert load_head(path).labels == ("a", "b", "c", "d", "e")


@pytest.mark.parametrize("content", [b"a\nb", b"\xff\n\n\n\n"])
def test_packed_labels_that_do_not_fit_are_left_out(tmp_path: Path, content: bytes) -> None:
    path = plain_file(tmp_path)
    path.write_bytes(with_archive(path.read_bytes(), {"labels.txt": content}))
    assert load_head(path).labels is None


def test_a_damaged_archive_of_labels_does_no_harm(tmp_path: Path) -> None:
    path = plain_file(tmp_path)
    size = path.stat().st_size
    data = bytearray(with_archive(path.read_bytes(), {"labels.txt": b"a\nb\nc\nd\ne"}))
    data[size : size + 4] = b"oops"
    path.write_bytes(data)
    assert load_head(path).labels is None


# ---------------------------------------------------------------------- damaged files


def rich_file() -> bytes:
    hidden = replace(quantised_x("u1", 0.5, 8), name="h")
    tensors = [T("a", (1, 3)), V, hidden, *QUANTISED.values(), P]
    operators = [
        convolution("a", "V", out="h", fused=FUSED_RELU6),
        Op(MEAN, ("h",), ("x",)),
        fully_connected("x", "W", "b"),
        softmax("z"),
    ]
    return model_bytes(tensors, operators, ["p"])


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    whole = plain_file(tmp_path).read_bytes()
    # The buffers are written first, so they are at the very end.
    for size in range(0, len(whole) - 40, 9):
        (tmp_path / "model.tflite").write_bytes(whole[:size])
        with pytest.raises(LoadError):
            load_head(tmp_path / "model.tflite")


@settings(max_examples=200)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=4)), max_size=6),
    whole=st.sampled_from([rich_file(), model_bytes(DEEP, [HIDDEN, LAST], ["z"])]),
)
def test_damage_of_any_kind_ends_in_a_head_or_a_load_error(
    tmp_path: Path, changes: list[tuple[int, bytes]], whole: bytes
) -> None:
    data = bytearray(whole)
    for place, new in changes:
        start = place % len(data)
        data[start : start + len(new)] = new
    (tmp_path / "m.tflite").write_bytes(data)
    try:
        load_head(tmp_path / "m.tflite")
    except LoadError as error:
        assert str(error)  # noqa: PT017 - any LoadError is right


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b"\x08\0\0\0TFL2" + bytes(8), "not TFL3"),
        (b"\xff\xff\xff\xffTFL3" + bytes(8), "an offset leads to byte"),
        (b"\x08\0\0\0TFL3\xff\xff\xff\x7f", "an offset leads to byte"),
    ],
)
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "m.tflite").write_bytes(data)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "m.tflite")


def test_a_graph_that_runs_in_circles_is_refused(tmp_path: Path) -> None:
    operators = [Op(RESHAPE, ("p",), ("z",)), Op(RESHAPE, ("z",), ("p",)), fully_connected("x", "W", out="y")]
    path = write(tmp_path / "m.tflite", [X, W, B, Z, P, T("y", (1, 5))], operators, ["p"])
    with pytest.raises(LoadError, match="no linear layer leads straight to the output"):
        load_head(path)


def test_features_that_run_in_circles_have_no_box(tmp_path: Path) -> None:
    operators = [Op(RESHAPE, ("x",), ("h",)), Op(RESHAPE, ("h",), ("x",))]
    assert box_of(tmp_path, [X, T("h", (1, 4))], operators) is None


def test_one_operator_declared_again_and_again_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(model_bytes([X, W, Z], [fully_connected("x", "W")] * 2**19, ["z"]))
    with pytest.raises(LoadError, match="it declares 524288 operators"):
        load_head(tmp_path / "m.tflite")


def test_two_operators_with_one_output_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", [X, W, Z], [fully_connected("x", "W")] * 4)
    with pytest.raises(LoadError, match="more tensors than there are"):
        load_head(path)


@pytest.mark.parametrize("shape", [(-1, 4), (2**31 - 1, 2**31 - 1), (1,) * 9, (0, 4)])
def test_absurd_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = write(tmp_path / "m.tflite", [X, replace(W, shape=shape), Z], [fully_connected("x", "W")])
    with pytest.raises(LoadError):
        load_head(path)
