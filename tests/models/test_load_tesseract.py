"""Heads of Tesseract's language files: the numbers that Tesseract 5 computes with, every lie refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fuzz_files import disturbed
from tesseract_writer import (
    INPUT,
    LSTM,
    MAXPOOL,
    RECODER,
    UNICHARSET,
    Model,
    assemble,
    characters,
    codes,
    layer,
    lstm,
    matrix,
    within,
)

from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.errors import AmbiguousError, InputError, LoadError
from argmaxable.models import find_head, load_head

RNG = np.random.default_rng(0)
STEPS = RNG.integers(-127, 128, (5, 4), np.int8)
SCALES = RNG.uniform(0.01, 0.3, 8)  # more than rows, as Tesseract writes them
FLOATS = RNG.normal(size=(5, 4))
NAMES = ("NULL", "Joined", "|Broken|0|1", "a", "休", "林", "b")
CODES = ((0,), (4,), (4,), (1,), (2, 3), (2, 2), (1,))


def softmax(weights: bytes, *, outputs: int = 5, kind: str = "Softmax") -> bytes:
    return layer(kind, weights, inputs=3, outputs=outputs)


MODEL = Model(
    softmax(matrix(STEPS, SCALES)),
    characters=characters(*NAMES),
    codes=codes(*CODES, (4,)),
    null=4,
)


def test_integers_are_exact_products_with_the_scale_that_tesseract_rounds(tmp_path: Path) -> None:
    head = load_head(MODEL.save(tmp_path))
    assert head.weight.dtype == np.float64
    assert head.bias is not None
    for row in range(5):
        factor = 127 * Fraction(float(np.float32(SCALES[row] / 127)))
        assert [Fraction(value) for value in head.weight[row].tolist()] == [
            factor * int(q) for q in STEPS[row, :3]
        ]
        assert Fraction(float(head.bias[row])) == factor * int(STEPS[row, 3])


def test_float64_is_rounded_to_float32_as_tesseract_5_does(tmp_path: Path) -> None:
    finding = find_head(replace(MODEL, softmax=softmax(matrix(FLOATS))).save(tmp_path))
    head = finding.head("m")
    assert head.bias is not None
    assert head.weight.tolist() == FLOATS.astype(np.float32)[:, :3].tolist()
    assert head.bias.tolist() == FLOATS.astype(np.float32)[:, 3].tolist()
    assert "float32" in finding.notes[0]


def test_outputs_are_characters_or_parts_of_them_or_none(tmp_path: Path) -> None:
    finding = find_head(MODEL.save(tmp_path))
    assert finding.labels is not None
    assert finding.labels.names == (
        " ",
        "b",  # of two characters with one code Tesseract writes the last
        "code 2: part of 休 and 1 more",
        "code 3: part of 休",
        "<null>",
    )
    assert finding.special == {4}
    assert finding.activation == "softmax"


def test_without_a_recoder_outputs_are_characters(tmp_path: Path) -> None:
    model = replace(MODEL, characters=characters("NULL", "a", "b"), flags=0, codes=codes((0,)))
    labels = find_head(model.save(tmp_path)).labels
    assert labels is not None
    assert labels.names == (" ", "a", "b", "<unused 3>", "<null>")


REVERSED = within("RTLReversed", lstm())
RELU = layer("Relu", matrix(FLOATS))


@pytest.mark.parametrize(
    ("before", "bounded"),
    [
        ((INPUT, lstm()), True),
        ((INPUT, MAXPOOL, lstm(is_2d=True)), True),
        ((INPUT, within("ParBidiLSTM", lstm(), REVERSED)), True),
        ((INPUT, within("Series", RELU, lstm("SummLSTM"))), True),
        ((INPUT, layer("Tanh", matrix(FLOATS))), True),
        ((INPUT, lstm(), RELU), False),
        ((INPUT, within("Parallel", lstm(), RELU)), False),
        ((INPUT, within("Series")), False),
        ((), False),
    ],
)
@pytest.mark.parametrize("is_int", [False, True])
def test_a_box_is_proven_by_what_comes_before_or_by_int8(
    tmp_path: Path, before: tuple[bytes, ...], bounded: bool, is_int: bool
) -> None:
    weights = matrix(STEPS, SCALES) if is_int else matrix(FLOATS)
    inputs = find_head(replace(MODEL, before=before, softmax=softmax(weights)).save(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == (Box(-1, 1) if bounded or is_int else Everywhere())


def test_the_softmax_may_be_in_a_series_of_its_own(tmp_path: Path) -> None:
    model = replace(MODEL, softmax=within("Series", lstm(), softmax(matrix(FLOATS))))
    finding = find_head(model.save(tmp_path))
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(-1, 1)


def test_characters_inside_the_network_are_read_as_those_beside_it(tmp_path: Path) -> None:
    beside = load_head(MODEL.save(tmp_path))
    inside = load_head(replace(MODEL, is_inside=True).save(tmp_path))
    assert inside.labels == beside.labels
    assert np.array_equal(inside.weight, beside.weight)


def test_one_component_of_the_two_is_ignored_as_tesseract_does(tmp_path: Path) -> None:
    unused = {UNICHARSET: characters("x", "y")}
    head = load_head(replace(MODEL, is_inside=True, others=unused).save(tmp_path))
    assert head.labels == load_head(MODEL.save(tmp_path)).labels


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (replace(MODEL, softmax=layer("Tanh", matrix(STEPS, SCALES), outputs=5)), "ends in Tanh"),
        (replace(MODEL, softmax=layer("LSTMSoftmax", b"")), "'LSTMSoftmax', which is unknown"),
        (replace(MODEL, softmax=softmax(matrix(STEPS, SCALES), outputs=6)), "has 5 rows"),
        (replace(MODEL, softmax=softmax(matrix(STEPS, SCALES[:4]))), "4 scales for 5 rows"),
        (replace(MODEL, softmax=softmax(matrix(STEPS, -SCALES))), "negative"),
        (replace(MODEL, softmax=softmax(matrix(STEPS, SCALES * np.inf))), "not a number"),
        (replace(MODEL, softmax=softmax(matrix(STEPS[:, :1], SCALES))), "has 5 rows"),
        (replace(MODEL, softmax=softmax(matrix(STEPS, SCALES, mode=0))), "before Tesseract 4.0"),
        (replace(MODEL, softmax=layer("Softmax", b"", training=1)), "checkpoint"),
        (replace(MODEL, softmax=b"\x05"), "before 4.0"),
        (replace(MODEL, codes=codes(*CODES, (5,))), "don't fit"),
        (replace(MODEL, codes=codes(*CODES[:4])), "don't fit"),
        (replace(MODEL, null=9), "don't fit"),
        (replace(MODEL, codes=codes(*CODES) + b"x"), "1 bytes after the end"),
        (replace(MODEL, codes=codes(range(10))), "10 parts"),
        (replace(MODEL, characters=b"9\na 0\n"), "is empty"),
        (replace(MODEL, characters=b"1\n\n"), "is empty"),
        (replace(MODEL, characters=b"1\n" + b"a" * 255 + b"\nb"), "over 254 bytes"),
        (replace(MODEL, others={RECODER: b""}), "the character set declares"),
        (replace(MODEL, is_inside=True, codes=codes(*CODES) + b"x"), "1 bytes after the end"),
        (replace(MODEL, is_inside=True, characters=b"9\na 0\n"), "of the character set"),
        (replace(MODEL, others={LSTM: b""}), "no LSTM network"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, model: Model, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        load_head(model.save(tmp_path))


@pytest.mark.parametrize(
    "data",
    [
        replace(MODEL, characters=characters(*NAMES[:6], "a")).data(),
        assemble({LSTM: b"abc", UNICHARSET: b"x", RECODER: b"y"}, shift=1),
    ],
)
def test_two_readings_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "xyz.traineddata").write_bytes(data)
    with pytest.raises(AmbiguousError):
        load_head(tmp_path / "xyz.traineddata")


@pytest.mark.parametrize(
    "data",
    [b"PK\3\4 an archive", struct.pack(">I", 24), b"", struct.pack("<I", 24), struct.pack("<Iq", 1, -1)],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "xyz.traineddata").write_bytes(data)
    with pytest.raises(LoadError):
        load_head(tmp_path / "xyz.traineddata")


def test_nothing_can_be_chosen(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path)
    assert find_head(path, tensor="Softmax").classes == 5
    with pytest.raises(LoadError, match="one head"):
        find_head(path, tensor="LSTM")


def test_layers_are_not_nested_without_end(tmp_path: Path) -> None:
    deep = lstm()
    for _ in range(40):
        deep = within("Series", deep)
    with pytest.raises(LoadError, match="nested"):
        load_head(replace(MODEL, before=(deep,)).save(tmp_path))


def test_changed_files_raise_nothing_but_our_errors(tmp_path: Path) -> None:
    whole, path = MODEL.data(), tmp_path / "xyz.traineddata"
    for number in range(200):
        path.write_bytes(disturbed(random.Random(f"tesseract {number}"), whole))
        try:
            head = load_head(path)
        except InputError:
            continue
        assert head.weight.size < 1000
