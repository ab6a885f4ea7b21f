"""Heads in .safetensors files: every array bit for bit and left in the file, every damaged file refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from drawn import ENCODABLE
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.registry import ReadOptions, find_format
from argmaxable.models.safetensors.tensors import tensors_of

WEIGHT = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
BIAS = np.random.default_rng(1).normal(size=5).astype(np.float32)
HEADER = {
    "lm_head.weight": {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]},
    "lm_head.bias": {"dtype": "F32", "shape": [5], "data_offsets": [60, 80]},
}
DATA = WEIGHT.tobytes() + BIAS.tobytes()


def file_with(header: object, data: bytes = DATA) -> bytes:
    """A file as the format prescribes it; a header that is not text is written as JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(**changes: object) -> dict[str, object]:
    """A header whose only tensor differs from a right one."""
    return {"lm_head.weight": {**HEADER["lm_head.weight"], **changes}}


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def bases(array: NDArray[Any]) -> Iterator[object]:
    base: Any = array
    while base is not None:
        yield base
        base = getattr(base, "base", None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "head.safetensors"


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weight_and_bias_come_back_bit_for_bit(path: Path, dtype: Any) -> None:
    weight, bias = WEIGHT.astype(dtype), BIAS.astype(dtype)
    save_file({"lm_head.weight": weight, "lm_head.bias": bias}, path)
    head = load_head(path)
    assert same_bits(head.weight, weight)
    assert same_bits(head.bias, bias)


def test_bfloat16_comes_back_bit_for_bit(path: Path) -> None:
    bits = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    finite = np.where(bits & 0x7F80 != 0x7F80, bits, 0).astype(np.uint16)
    save_torch_file({"lm_head.weight": torch.from_numpy(finite).view(torch.bfloat16)}, path)
    assert same_bits(load_head(path).weight, finite.view(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("stored", "known"),
    [(torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn), (torch.float8_e5m2, ml_dtypes.float8_e5m2)],
)
def test_every_eight_bit_float_becomes_the_same_number(path: Path, stored: torch.dtype, known: Any) -> None:
    bits = np.arange(256, dtype=np.uint8)
    bits = np.where(np.isfinite(bits.view(known).astype(np.float32)), bits, 0).astype(np.uint8)
    save_torch_file({"lm_head.weight": torch.from_numpy(bits.reshape(16, 16)).view(stored)}, path)
    head = load_head(path)
    assert head.weight.dtype == np.float16
    assert np.array_equal(head.weight.astype(np.float64).ravel(), bits.view(known).astype(np.float64))


def test_weights_stay_in_the_file(path: Path) -> None:
    save_torch_file({"lm_head.weight": torch.from_numpy(WEIGHT).bfloat16()}, path)
    assert any(isinstance(base, np.memmap) for base in bases(load_head(path).weight))


def test_tensors_need_not_be_aligned(path: Path) -> None:
    header = {
        "flag": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]},
        "lm_head.weight": {"dtype": "F32", "shape": [5, 3], "data_offsets": [3, 63]},
    }
    path.write_bytes(file_with(header, b"\1\0\1" + WEIGHT.tobytes()))
    assert same_bits(load_head(path).weight, WEIGHT)


def test_metadata_is_no_tensor(path: Path) -> None:
    save_file({"lm_head.weight": WEIGHT}, path, metadata={"format": "pt"})
    assert set(tensors_of(path).tensors) == {"lm_head.weight"}


def test_empty_and_scalar_tensors_are_read(path: Path) -> None:
    save_file({"empty": np.zeros((0, 3), np.float32), "scalar": np.array(2.5)}, path)
    source = tensors_of(path)
    assert source.read("empty").shape == (0, 3)
    assert source.read("scalar") == 2.5


# ---------------------------------------------------------------------- which tensor


def test_the_usual_name_is_found_with_its_bias(path: Path) -> None:
    save_file({"body.weight": WEIGHT.T, "score.weight": WEIGHT, "score.bias": BIAS}, path)
    head = load_head(path)
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_the_only_matrix_is_the_head_whatever_its_name(path: Path) -> None:
    save_file({"weight": WEIGHT, "bias": BIAS}, path)
    head = load_head(path)
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_a_vector_that_is_not_as_long_as_the_classes_is_no_bias(path: Path) -> None:
    save_file({"lm_head.weight": WEIGHT, "lm_head.bias": BIAS[:3]}, path)
    assert load_head(path).bias is None


def test_two_usual_names_are_left_to_the_user(path: Path) -> None:
    save_file({"lm_head.weight": WEIGHT, "score.weight": WEIGHT}, path)
    with pytest.raises(LoadError, match=r"several tensors.*lm_head\.weight, score\.weight.*--tensor"):
        load_head(path)


def test_a_file_without_a_head_lists_its_matrices(path: Path) -> None:
    save_file({"encoder.weight": WEIGHT, "encoder2.weight": WEIGHT[:2], "bias": BIAS}, path)
    expected = r"no output layer.*3 tensors.*encoder\.weight \(5 × 3, float32\), encoder2\.weight.*--tensor"
    with pytest.raises(LoadError, match=expected):
        load_head(path)


def test_embeddings_are_offered_where_there_is_no_head(path: Path) -> None:
    save_file({"model.embed_tokens.weight": WEIGHT, "model.layers.0.mlp.weight": WEIGHT.T}, path)
    with pytest.raises(LoadError, match=r"input embeddings.*tensor='model\.embed_tokens\.weight'"):
        load_head(path)


def test_tensor_and_bias_tensor_choose_others(path: Path) -> None:
    save_file({"lm_head.weight": WEIGHT + 1, "other.weight": WEIGHT, "shift": BIAS}, path)
    head = load_head(path, tensor="other.weight", bias_tensor="shift")
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_transpose_reads_features_by_classes(path: Path) -> None:
    save_file({"lm_head.weight": np.ascontiguousarray(WEIGHT.T), "lm_head.bias": BIAS}, path)
    head = load_head(path, transpose=True)
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tensor": "absent"}, r"'absent' not found.*2 tensors.*lm_head\.weight.*--tensor"),
        ({"bias_tensor": "absent"}, r"'absent' not found.*--bias-tensor"),
        ({"tensor": "lm_head.bias"}, r"must be a matrix.*lm_head\.bias \(5, float32\)"),
    ],
)
def test_a_wrong_choice_is_reported(path: Path, options: dict[str, str], complaint: str) -> None:
    path.write_bytes(file_with(HEADER))
    with pytest.raises(LoadError, match=complaint):
        load_head(path, **options)  # type: ignore[arg-type]


def test_integers_are_refused_as_quantised(path: Path) -> None:
    save_file({"lm_head.weight": np.ones((5, 3), np.int8)}, path)
    with pytest.raises(LoadError, match=r"lm_head\.weight \(5 × 3, int8\) is quantised"):
        load_head(path)


def test_a_weight_with_scales_that_floats_should_not_have_is_refused(path: Path) -> None:
    weight = torch.from_numpy(WEIGHT).to(torch.float16)
    save_torch_file({"lm_head.weight": weight, "lm_head.weight_scale": torch.ones(5)}, path)
    with pytest.raises(LoadError, match=r"comes with lm_head\.weight_scale is quantised"):
        load_head(path)


def test_a_dtype_that_is_not_known_does_not_disturb_the_others(path: Path) -> None:
    header = {**HEADER, "other": {"dtype": "F4", "shape": [2], "data_offsets": [80, 81]}}
    path.write_bytes(file_with(header, DATA + b"\0"))
    assert same_bits(load_head(path).weight, WEIGHT)
    with pytest.raises(LoadError, match="does not hold floats"):
        tensors_of(path).read("other")


# ---------------------------------------------------------------------- damaged and hostile files


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"\x02\0\0\0", "cut short or damaged"),
        (b"\xff" * 100, "cut short or damaged"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer"),
        (file_with(b"\xff\xfe{}"), "not valid JSON"),
        (file_with(b"{ "), "not valid JSON"),
        (file_with(b"[" * 100_000), "not valid JSON"),
        (file_with(b'{"a": ' + b"9" * 5000 + b"}"), "not valid JSON"),
        (file_with(b'{"a": 1, "a": 2}'), "the key 'a' occurs twice"),
        (file_with(b'{"\\ud800": 1}'), "surrogates not allowed"),
        (file_with([1]), "JSON list, expected an object"),
        (file_with({"lm_head.weight": 3}), "expected dtype, shape and data_offsets"),
        (file_with(entry(dtype=None)), "expected dtype, shape"),
        (file_with(entry(shape=None)), "expected dtype, shape"),
        (file_with(entry(shape=[5, -3])), "expected dtype, shape"),
        (file_with(entry(shape=[5, True])), "expected dtype, shape"),
        (file_with(entry(shape=[5.0, 3])), "expected dtype, shape"),
        (file_with(entry(shape=[1] * 33)), "expected dtype, shape"),
        (file_with(entry(shape=[2**64, 0])), "expected dtype, shape"),
        (file_with(entry(data_offsets=[0])), "expected dtype, shape"),
        (file_with(entry(data_offsets=[-60, 0])), "expected dtype, shape"),
        (file_with(entry(data_offsets=[60, 0])), "cut short or damaged"),
        (file_with(entry(data_offsets=[24, 84])), "bytes 24 to 84 after its header, but only 80"),
        (file_with(entry(data_offsets=[0, 2**62])), "cut short or damaged"),
        (file_with(entry(shape=[2**40, 2**40])), "does not take the 60 bytes"),
        (file_with(entry(dtype="F64")), "5 × 3 F64, which does not take the 60 bytes"),
        (
            file_with({**HEADER, "c": {"dtype": "U8", "shape": [9], "data_offsets": [55, 64]}}),
            "overlapping bytes",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_safetensors_is_refused(path: Path, content: bytes, complaint: str) -> None:
    path.write_bytes(content)
    with pytest.raises(LoadError, match=complaint):
        load_head(path)


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    data = file_with(HEADER)
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        with pytest.raises(LoadError):
            load_head(path)


def test_an_oversized_header_is_refused_unread(path: Path) -> None:
    with path.open("wb") as file:
        file.write((2**35).to_bytes(8, "little"))
        os.truncate(file.fileno(), 2**36)  # sparse: takes no space
    with pytest.raises(LoadError, match=r"header of 34359738368 bytes"):
        load_head(path)


def test_a_file_cut_short_after_it_was_found_is_refused(path: Path) -> None:
    path.write_bytes(file_with(HEADER))
    finding = find_format(path).find(path, ReadOptions())
    path.write_bytes(file_with(HEADER)[:-40])
    with pytest.raises(LoadError, match="changed while it was read"):
        finding.head("head")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_reported_with_the_file(path: Path, value: float) -> None:
    save_file({"lm_head.weight": np.full((2, 2), value)}, path)
    with pytest.raises(LoadError, match=r"head\.safetensors: weight of class 0, feature 0"):
        load_head(path)


SCALARS = st.none() | st.booleans() | st.integers(-9, 2**65) | st.floats() | st.text(ENCODABLE, max_size=8)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "BF16", "U8", "F4", ""]) | SCALARS,
        "shape": st.lists(st.integers(0, 6) | SCALARS, max_size=4) | SCALARS,
        "data_offsets": st.lists(st.integers(0, 90) | SCALARS, max_size=3) | SCALARS,
    },
)
HEADERS = st.dictionaries(st.sampled_from(["lm_head.weight", "lm_head.bias", "x"]), ENTRIES | SCALARS)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed") / "head.safetensors"


def load_or_refuse(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        load_head(path)
    except LoadError:
        return


@settings(max_examples=150, derandomize=True, database=None)
@given(header=HEADERS)
def test_no_header_ends_in_anything_but_a_head_or_a_load_error(
    fuzzed: Path, header: dict[str, object]
) -> None:
    load_or_refuse(fuzzed, file_with(header))


@settings(max_examples=150, derandomize=True, database=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 250), st.integers(0, 255)), max_size=6), cut=st.integers(0, 260)
)
def test_no_damage_ends_in_anything_but_a_head_or_a_load_error(
    fuzzed: Path, changes: list[tuple[int, int]], cut: int
) -> None:
    content = bytearray(file_with(HEADER))
    for position, value in changes:
        content[position % len(content)] = value
    load_or_refuse(fuzzed, bytes(content[:cut]))
