"""Vectors of search indices and recommenders as heads. The files are written here byte by byte, as faiss
1.15, hnswlib 0.8 and gensim 4.4 write them; the same layouts were read from files of those libraries."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

import argmaxable as am
from argmaxable.models.item_vectors import L2_BIAS, bias_error, l2_bias

ROWS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
WORDS = ("a", "b", "été", "d", "e")


def flat(kind: bytes = b"IxFI", metric: int = 0) -> bytes:
    header = kind + struct.pack("<iqqqBi", 3, 5, 1 << 20, 1 << 20, 1, metric)
    return header + struct.pack("<Q", ROWS.size) + ROWS.tobytes()


def with_ids(kind: bytes = b"IxMp") -> bytes:
    header = kind + struct.pack("<iqqqBi", 3, 5, 1 << 20, 1 << 20, 1, 0)
    return header + flat() + struct.pack("<Q5q", 5, 10, 20, 30, 40, 50)


def hnsw(deleted: int | None = None) -> bytes:
    links, size = 36, 12
    stride = links + size + 8
    data = struct.pack("<6QiI3QdQ", 0, 8, 5, stride, links + size, links, 0, 0, 4, 8, 4, 0.72, 10)
    for number, row in enumerate(ROWS):
        mark = bytearray(links)
        mark[2] = number == deleted
        data += bytes(mark) + row.tobytes() + struct.pack("<Q", 7 + number)
    return data + bytes(4 * 5)


def binary_words() -> bytes:
    return b"5 3\n" + b"".join(
        word.encode() + b" " + row.tobytes() for word, row in zip(WORDS, ROWS, strict=True)
    )


def text_words() -> bytes:
    lines = [f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip(WORDS, ROWS, strict=True)]
    return b"5 3\n" + "".join(lines).encode()


def saved(tmp_path: Path, name: str, data: bytes) -> str:
    (tmp_path / name).write_bytes(data)
    return str(tmp_path / name)


FILES: dict[str, tuple[bytes, dict[str, str]]] = {
    "flat.faiss": (flat(), {}),
    "ids.faiss": (with_ids(), {}),
    "no suffix": (flat(b"IxFl"), {}),
    "index.hnsw": (hnsw(), {"tensor": "ip"}),
    "words.w2v": (binary_words(), {}),
    "words.vec": (text_words(), {}),
}


@pytest.mark.parametrize("name", FILES)
def test_the_vectors_are_read_bit_by_bit(tmp_path: Path, name: str) -> None:
    data, options = FILES[name]
    head = am.load_head(saved(tmp_path, name, data), **options)  # type: ignore[arg-type]
    assert head.weight.dtype == np.float32
    assert np.array_equal(head.weight, ROWS)
    assert not head.has_bias


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_short_or_longer_is_refused(tmp_path: Path, name: str) -> None:
    data, options = FILES[name]
    suffix = "x.faiss" if name == "no suffix" else name
    for length in range(0, len(data) - 20 * name.endswith("hnsw")):
        # Text may end in fewer digits of the last number, or without a line break.
        if length >= len(data) - 20 and name == "words.vec":
            continue
        with pytest.raises(am.LoadError):
            am.load_head(saved(tmp_path, suffix, data[:length]), **options)  # type: ignore[arg-type]
    if not name.endswith("hnsw"):
        with pytest.raises(am.LoadError):
            am.load_head(saved(tmp_path, suffix, data + b"more"), **options)  # type: ignore[arg-type]


def test_labels_are_the_ids_and_words(tmp_path: Path) -> None:
    assert am.load_head(saved(tmp_path, "ids.faiss", with_ids())).label(1) == "20"
    assert am.load_head(saved(tmp_path, "index.hnsw", hnsw()), tensor="ip").label(1) == "8"
    for data in (binary_words(), text_words()):
        assert am.load_head(saved(tmp_path, "words.vec", data)).label(2) == "été"


def test_word_vectors_in_a_bin_file_are_told_by_their_first_line(tmp_path: Path) -> None:
    data = (
        b"2 12\na " + np.arange(12, dtype=np.float32).tobytes() + b"\nb " + np.ones(12, np.float32).tobytes()
    )
    head = am.load_head(saved(tmp_path, "GoogleNews.bin", data))
    assert (head.classes, head.features, head.label(1)) == (2, 12, "b")


def test_deleted_elements_are_left_out(tmp_path: Path) -> None:
    head = am.load_head(saved(tmp_path, "index.hnsw", hnsw(deleted=1)), tensor="ip")
    assert np.array_equal(head.weight, np.delete(ROWS, 1, axis=0))
    assert head.label(1) == "9"


def test_euclidean_search_gets_the_bias_that_makes_the_nearest_item_the_argmax(tmp_path: Path) -> None:
    for name, data, options in (
        ("l2.faiss", flat(b"IxF2", 1), {}),
        ("l2.hnsw", hnsw(), {"tensor": "l2"}),
    ):
        finding = am.find_head(saved(tmp_path, name, data), **options)  # type: ignore[arg-type]
        assert finding.bias is not None
        assert finding.bias.name == L2_BIAS
        head = finding.head(name)
        queries = np.random.default_rng(1).standard_normal((50, 3))
        nearest = ((queries[:, None] - ROWS) ** 2).sum(axis=2).argmin(axis=1)
        scores = queries @ head.rows(slice(None)).T + head.biases()
        assert (scores.argmax(axis=1) == nearest).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_error_of_that_bias_is_bounded(scale: float, dtype: type) -> None:
    rows = (np.random.default_rng(2).standard_normal((20, 9)) * scale).astype(dtype)
    bias = l2_bias(rows)
    for row, value in zip(rows, bias, strict=True):
        exact = -sum((Fraction(float(entry)) ** 2 for entry in row), Fraction(0)) / 2
        assert abs(exact - Fraction(float(value))) <= Fraction(bias_error(bias, 9))


@pytest.mark.parametrize(
    ("name", "data", "options", "message"),
    [
        ("x.faiss", flat(b"IHNf"), {}, "only flat ones"),
        ("x.faiss", flat(b"IxFl", 2), {}, "metric 2"),
        ("x.faiss", flat(b"IxFI", 1), {}, "says metric 1"),
        ("x.faiss", with_ids().replace(b"IxFI\x03", b"IxFI\x01"), {}, "expected 5|another shape"),
        ("x.faiss", flat(), {"tensor": "vectors"}, "leave out tensor"),
        ("x.faiss", flat(), {"bias_tensor": "b"}, "no bias"),
        ("x.hnsw", hnsw(), {}, "ip, l2, cosine"),
        ("x.hnsw", hnsw(), {"tensor": "manhattan"}, "manhattan"),
        ("x.hnsw", b"\xff" * 400, {"tensor": "ip"}, "not an index of hnswlib"),
        ("x.vec", b"999999999 300\nthe 1.0\n", {}, "declares 999999999"),
        ("x.vec", b"the 1.0 2.0\n", {}, "first line"),
        ("x.vec", b"2 1\na 1.0\na b\n", {}, "word 1"),
        ("x.kv", b"\x80\x04\x95\x8c\x1agensim.models.keyedvectors", {}, "save_word2vec_format"),
        ("x.pickle", b"\x80\x04\x95\x8c\x07lightfm", {}, "item_embeddings"),
        ("x.joblib", b"\x80\x04\x95\x8c\x1esklearn.linear_model", {}, "Head.from_sklearn"),
        ("no suffix", b"\x80\x05whatever", {}, "can run code"),
    ],
)
def test_what_can_not_be_a_head_is_refused_with_advice(
    tmp_path: Path, name: str, data: bytes, options: dict[str, str], message: str
) -> None:
    with pytest.raises(am.LoadError, match=message):
        am.find_head(saved(tmp_path, name, data), **options)  # type: ignore[arg-type]


def test_a_pickle_of_gensims_names_the_vectors_beside_it(tmp_path: Path) -> None:
    path = saved(tmp_path, "x.kv", b"\x80\x04gensim")
    np.save(f"{path}.vectors.npy", ROWS)
    with pytest.raises(am.LoadError, match=r"pass x\.kv\.vectors\.npy"):
        am.find_head(path)


def test_recommenders_archives_give_their_items(tmp_path: Path) -> None:
    np.savez(tmp_path / "als.npz", user_factors=ROWS[:2], item_factors=ROWS, factors=3, dtype="float32")
    np.savez(tmp_path / "lightfm.npz", item_embeddings=ROWS, item_biases=ROWS[:, 0], user_embeddings=ROWS)
    assert np.array_equal(am.load_head(tmp_path / "als.npz").weight, ROWS)
    assert am.load_head(tmp_path / "lightfm.npz").has_bias


Table = dict[str, object]


@pytest.mark.parametrize(
    "vectors",
    [
        pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3),
        pa.array([row.tolist() for row in ROWS], pa.list_(pa.float32())),
    ],
    ids=["fixed", "lists"],
)
def test_a_column_of_vectors_is_read_with_its_labels(tmp_path: Path, vectors: pa.Array) -> None:
    pq.write_table(pa.table({"id": [7, 8, 9, 11, 12], "vector": vectors}), tmp_path / "items.parquet")
    head = am.load_head(tmp_path / "items.parquet")
    assert np.array_equal(head.weight, ROWS)
    assert head.label(3) == "11"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda: {"a": [[1.0], [2.0]], "b": [[1.0], [2.0]]}, "a, b"),
        (lambda: {"a": ["x"]}, "none"),
        (lambda: {"a": [[1.0, 2.0], [1.0]]}, "different lengths"),
        (lambda: {"a": [[1.0], [None]]}, "missing values"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, table: Callable[[], Table], message: str) -> None:
    pq.write_table(pa.table(table()), tmp_path / "items.parquet")
    with pytest.raises(am.LoadError, match=message):
        am.load_head(tmp_path / "items.parquet")


def test_missing_values_are_not_called_damage(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [[1.0], None]}), tmp_path / "items.parquet")
    with pytest.raises(am.LoadError, match=r"column 'a' has missing values\. Drop those rows") as caught:
        am.load_head(tmp_path / "items.parquet")
    assert "damaged" not in str(caught.value)


def test_word_vectors_of_few_features_may_have_any_suffix(tmp_path: Path) -> None:
    head = am.load_head(saved(tmp_path, "words.txt", b"2 3\nthe 1.25 0.5 -2.0\na 0.0 1.0 2.0\n"))
    assert head.weight.tolist() == [[1.25, 0.5, -2.0], [0.0, 1.0, 2.0]]


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(am.LoadError, match="no readable Parquet file"):
        am.load_head(saved(tmp_path, "x.parquet", b"PAR1 and so on PAR1"))


def test_an_index_of_hnswlib_may_be_called_bin(tmp_path: Path) -> None:
    head = am.load_head(saved(tmp_path, "index.bin", hnsw()), tensor="ip")
    assert np.array_equal(head.weight, ROWS)


def test_model2vec_has_a_class_for_each_token(tmp_path: Path) -> None:
    # As model2vec 0.10 saves a model.
    (tmp_path / "config.json").write_text('{"model_type": "model2vec", "normalize": false}')
    save_file({"embeddings": ROWS}, tmp_path / "model.safetensors")
    finding = am.find_head(str(tmp_path))
    assert finding.weight.name == "embeddings"
    assert np.array_equal(am.load_head(str(tmp_path)).weight, ROWS)
