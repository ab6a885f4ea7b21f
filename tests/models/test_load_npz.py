"""Heads in .npz and .npy files: every array bit for bit, every damaged file refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head

WEIGHT = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
BIAS = np.random.default_rng(1).normal(size=5).astype(np.float32)
LABELS = ("a", "Ω", "", " ", "two words")


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def npy_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


class Bomb:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_weight_and_bias_come_back_bit_for_bit(tmp_path: Path, dtype: Any, save: Any) -> None:
    weight, bias = WEIGHT.astype(dtype), BIAS.astype(dtype)
    save(tmp_path / "head.npz", W=weight, b=bias)
    head = load_head(tmp_path / "head.npz")
    assert same_bits(head.weight, weight)
    assert same_bits(head.bias, bias)


def test_the_names_weight_and_bias_do_as_well(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", weight=WEIGHT, bias=BIAS, labels=np.array(list("abcde")))
    head = load_head(tmp_path / "head.npz")
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)
    assert head.labels == tuple("abcde")


@pytest.mark.parametrize(
    "stored",
    [np.asfortranarray(WEIGHT), WEIGHT.astype(">f4"), np.ones((10, 3), np.float32)[::2] * WEIGHT],
    ids=["column-major", "big-endian", "strided"],
)
def test_any_memory_layout_gives_the_same_weight(tmp_path: Path, stored: NDArray[Any]) -> None:
    np.savez(tmp_path / "head.npz", W=stored)
    assert same_bits(load_head(tmp_path / "head.npz").weight, WEIGHT)


def test_a_weight_alone_has_neither_bias_nor_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    head = load_head(tmp_path / "head.npz")
    assert head.bias is None
    assert head.labels is None


@pytest.mark.parametrize("empty", [np.zeros(0), np.zeros((0, 5))])
def test_an_empty_bias_is_no_bias(tmp_path: Path, empty: NDArray[Any]) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT, b=empty)
    assert load_head(tmp_path / "head.npz").bias is None


@pytest.mark.parametrize("labels", [np.array(LABELS), np.array([label.encode() for label in LABELS])])
def test_labels_may_be_text_or_utf8_bytes(tmp_path: Path, labels: NDArray[Any]) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT, labels=labels)
    assert load_head(tmp_path / "head.npz").labels == LABELS


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (np.arange(5), "expected one string per class"),
        (np.array([LABELS]), "expected one string per class"),
        (np.array([b"\xff"] * 5), "not UTF-8"),
        (np.array(["a", "b"]), "2 labels for 5 classes"),
        (np.full(5, 0x110000, np.uint32).view("=U1"), "numbers beyond Unicode"),
        (np.full(5, 0x110000, np.uint32).astype(">u4").view(">U1"), "numbers beyond Unicode"),
    ],
    ids=["numbers", "matrix", "latin-1", "too-few", "no-character", "no-character-big-endian"],
)
def test_labels_that_are_not_one_string_per_class_are_refused(
    tmp_path: Path, labels: NDArray[Any], complaint: str
) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT, labels=labels)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "head.npz")


def test_tensor_and_bias_tensor_choose_other_arrays(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"fc.weight": WEIGHT, "fc.bias": BIAS, "W": WEIGHT + 1, "b": BIAS + 1}
    np.savez(tmp_path / "head.npz", **arrays)
    head = load_head(tmp_path / "head.npz", tensor="fc.weight", bias_tensor="fc.bias")
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


def test_transpose_reads_features_by_classes(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT.T, b=BIAS)
    assert same_bits(load_head(tmp_path / "head.npz", transpose=True).weight, WEIGHT)


def test_a_missing_weight_names_the_arrays_and_the_likely_heads(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "kernel": WEIGHT,
        "half": WEIGHT.astype(ml_dtypes.bfloat16),
        "bias": BIAS,
        "steps": np.arange(4),
    }
    np.savez(tmp_path / "head.npz", **arrays)
    expected = r"'W' not found.*bias \(5 float32\), steps \(4 int64\).*like heads: kernel, half\..*--tensor"
    with pytest.raises(LoadError, match=expected):
        load_head(tmp_path / "head.npz")


def test_a_wrong_tensor_name_is_reported(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    with pytest.raises(LoadError, match=r"'V' not found.*tensor= \(--tensor\)"):
        load_head(tmp_path / "head.npz", tensor="V")


def test_a_wrong_bias_name_is_reported(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT, b=BIAS)
    with pytest.raises(LoadError, match=r"'c' not found.*bias_tensor= \(--bias-tensor\)"):
        load_head(tmp_path / "head.npz", bias_tensor="c")


def test_an_archive_without_arrays_is_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "head.npz", "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(LoadError, match="Arrays in the archive: none"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize("name", ["W", "b", "labels"])
def test_a_pickled_array_is_refused_and_never_executed(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "executed"
    arrays = {"W": WEIGHT, name: np.array([Bomb(trace)] * 5, dtype=object)}
    np.savez(tmp_path / "head.npz", allow_pickle=True, **arrays)
    with pytest.raises(LoadError, match=f"'{name}' holds pickled Python objects.*not read"):
        load_head(tmp_path / "head.npz")
    assert not trace.exists()


def test_a_pickled_npy_is_refused_and_never_executed(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    np.save(tmp_path / "head.npy", np.array([[Bomb(trace)]], dtype=object), allow_pickle=True)
    with pytest.raises(LoadError, match="pickled Python objects"):
        load_head(tmp_path / "head.npy")
    assert not trace.exists()


def test_a_bare_pickle_is_refused_and_never_executed(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    np.array([Bomb(trace)], dtype=object).dump(tmp_path / "head.npz")
    with pytest.raises(LoadError, match=r"not a readable \.npz archive"):
        load_head(tmp_path / "head.npz")
    assert not trace.exists()


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_, ml_dtypes.float8_e4m3fn])
def test_a_dtype_that_is_no_head_is_refused(tmp_path: Path, dtype: Any) -> None:
    np.savez(tmp_path / "head.npz", W=np.ones((2, 2)).astype(dtype))
    with pytest.raises(LoadError, match="weight has dtype"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_cut_short_anywhere_is_refused(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "whole.npz", W=WEIGHT, b=BIAS)
    data = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(data), 7):
        (tmp_path / "cut.npz").write_bytes(data[:length])
        with pytest.raises(LoadError, match=r"cut short or damaged|is empty"):
            load_head(tmp_path / "cut.npz")


def test_a_flipped_bit_in_the_weights_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    data = (tmp_path / "head.npz").read_bytes()
    position = data.index(WEIGHT.tobytes())
    (tmp_path / "head.npz").write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
    with pytest.raises(LoadError, match="CRC"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"x" * 20,
        b"{'descr': ",
        b"  [",
        b"{1: 2}",
        b"[" * 900,
        b"{'descr': '<f4', 'shape': (1,)}",
        b"\xff",
    ],
)
def test_a_member_without_a_valid_header_is_refused(tmp_path: Path, header: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "head.npz", "w") as archive:
        archive.writestr("W.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(LoadError, match=r"'W' has no valid \.npy header"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize("shape", [b"(5, 2)", b"(9, 9)", b"(1000000000, 1000000000)"])
def test_a_declared_size_that_is_not_there_is_refused_before_reading(tmp_path: Path, shape: bytes) -> None:
    data = npy_bytes(WEIGHT)
    forged = data.replace(b"(5, 3), }" + b" " * (len(shape) - 6), shape + b", }")
    assert len(forged) == len(data)
    (tmp_path / "head.npy").write_bytes(forged)
    with zipfile.ZipFile(tmp_path / "head.npz", "w") as archive:
        archive.writestr("W.npy", forged)
    for suffix in (".npy", ".npz"):
        with pytest.raises(LoadError, match=r"declares .* bytes but 60 are there"):
            load_head(tmp_path / f"head{suffix}")


def test_negative_dimensions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "head.npy").write_bytes(npy_bytes(WEIGHT).replace(b"(5, 3), }  ", b"(-5, -3), }"))
    with pytest.raises(LoadError, match="can't be read as"):
        load_head(tmp_path / "head.npy")


def test_a_zip_bomb_is_refused_unread(tmp_path: Path) -> None:
    rows = 70 * 2**20 // 64
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 16), }}\n".encode()
    path = tmp_path / "head.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("W.npy", "w") as member:
        member.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        for _ in range(70):
            member.write(bytes(2**20))
    with pytest.raises(LoadError, match="looks like a zip bomb and was not read"):
        load_head(tmp_path / "head.npz")


def test_a_compression_numpy_does_not_use_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "head.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("W.npy", npy_bytes(WEIGHT))
    with pytest.raises(LoadError, match="'W' is compressed in a way numpy does not use"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize("garbage", [b"garbage", b"PK\x03\x04" + b"\x00" * 50])
def test_garbage_is_refused(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "head.npz").write_bytes(garbage)
    with pytest.raises(LoadError, match=r"not a readable \.npz archive"):
        load_head(tmp_path / "head.npz")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_bare_matrix_is_a_head_without_bias(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "head.npy", WEIGHT.astype(dtype))
    head = load_head(tmp_path / "head.npy")
    assert same_bits(head.weight, WEIGHT.astype(dtype))
    assert head.bias is None


def test_a_bare_matrix_can_be_transposed(tmp_path: Path) -> None:
    np.save(tmp_path / "head.npy", WEIGHT.T)
    assert same_bits(load_head(tmp_path / "head.npy", transpose=True).weight, WEIGHT)


@pytest.mark.parametrize("option", ["tensor", "bias_tensor"])
def test_a_bare_matrix_has_no_names_to_choose_from(tmp_path: Path, option: str) -> None:
    np.save(tmp_path / "head.npy", WEIGHT)
    with pytest.raises(LoadError, match="one array without a name"):
        load_head(tmp_path / "head.npy", **{option: "W"})  # type: ignore[arg-type]  # one of two names


def test_a_bare_matrix_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    data = npy_bytes(WEIGHT)
    for length in range(0, len(data), 5):
        (tmp_path / "head.npy").write_bytes(data[:length])
        with pytest.raises(LoadError):
            load_head(tmp_path / "head.npy")
