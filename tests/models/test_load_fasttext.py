"""Heads of fastText models: every number as fastText stores it, every lie in a file refused."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fasttext_writer import (
    CBOW,
    HIERARCHICAL,
    LABELS,
    NEGATIVE_SAMPLING,
    ONE_VS_ALL,
    SKIPGRAM,
    WORDS,
    Dense,
    Model,
    Quantised,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from argmaxable.core.errors import InputError, LoadError
from argmaxable.models import load_head
from argmaxable.models.fasttext.reader import find
from argmaxable.models.registry import ReadOptions, find_format

RNG = np.random.default_rng(0)


def dense(rows: int, columns: int = 3) -> Dense:
    return Dense(RNG.normal(size=(rows, columns)).astype(np.float32))


def quantised(rows: int, columns: int, width: int, *, norms: bool = False) -> Quantised:
    widths = [min(width, columns - first) for first in range(0, columns, width)]
    return Quantised(
        RNG.integers(0, 256, (rows, len(widths)), np.uint8),
        [RNG.normal(size=(256, each)).astype(np.float32) for each in widths],
        RNG.integers(0, 256, rows, np.uint8) if norms else None,
        RNG.normal(size=256).astype(np.float32),
    )


MODEL = Model(output=dense(4), input=dense(10))
SMALLER = Model(quantised(4, 4, 2, norms=True), quantised(6, 4, 3), dim=4, pruned=((1, 2),))


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("suffix", [".bin", ".ftz"])
def test_the_output_matrix_comes_back_bit_for_bit_with_its_labels(
    tmp_path: Path, suffix: str, version: int
) -> None:
    head = load_head(replace(MODEL, version=version).save(tmp_path / f"model{suffix}"))
    assert isinstance(MODEL.output, Dense)
    assert head.weight.tobytes() == MODEL.output.values.tobytes()
    assert head.weight.dtype == np.float32
    assert head.bias is None
    assert head.labels == LABELS


def test_a_file_without_its_suffix_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    assert find_format(MODEL.save(tmp_path / "model")).name == "fasttext"


@pytest.mark.parametrize("pruned", [(), ((5, 0), (9, 1))])
def test_the_index_of_a_pruned_dictionary_is_skipped(
    tmp_path: Path, pruned: tuple[tuple[int, int], ...]
) -> None:
    model = replace(MODEL, pruned=pruned, input=quantised(6, 3, 2))
    assert isinstance(model.output, Dense)
    assert load_head(model.save(tmp_path / "model.ftz")).weight.tolist() == model.output.values.tolist()


@pytest.mark.parametrize(("columns", "width"), [(6, 2), (7, 2), (5, 3), (4, 1), (3, 3), (1, 1)])
@pytest.mark.parametrize("norms", [False, True])
def test_a_quantised_output_is_the_exact_product_of_norms_and_centroids(
    tmp_path: Path, columns: int, width: int, norms: bool
) -> None:
    output = quantised(4, columns, width, norms=norms)
    model = Model(output, quantised(10, columns, width, norms=norms), dim=columns)
    head = load_head(model.save(tmp_path / "model.ftz"))
    assert head.weight.tolist() == [output.row(number) for number in range(4)]
    assert head.weight.dtype == (np.float64 if norms else np.float32)


def test_weights_are_said_to_be_centroids(tmp_path: Path) -> None:
    model = replace(MODEL, output=quantised(4, 3, 2, norms=True), input=quantised(9, 3, 2))
    finding = find(model.save(tmp_path / "model.ftz"), ReadOptions())
    assert finding.weight.dtype == "product-quantised, 2 features a byte, norms apart"
    assert finding.notes == (
        "the weights are the centroids fastText predicts with, not those before quantisation",
    )


def test_the_argmax_is_the_label_fasttext_predicts(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path / "model.bin")
    assert isinstance(MODEL.output, Dense)
    assert isinstance(MODEL.input, Dense)
    head = load_head(path)
    for words in ([0], [1, 2], [0, 1, 3]):
        features = MODEL.input.values[words].mean(axis=0)
        logits = MODEL.output.values @ features
        softmax = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert head.label(int(np.argmax(head.weight @ features))) == LABELS[int(np.argmax(softmax))]


def test_features_are_described_as_the_mean_of_input_vectors(tmp_path: Path) -> None:
    model = replace(MODEL, ngrams=(2, 5), word_ngrams=3)
    inputs = find(model.save(tmp_path / "model.bin"), ReadOptions()).inputs
    assert inputs is not None
    assert inputs.description == (
        "the mean of the vectors of a text's words, their n-grams of 2 to 5 characters, n-grams of up to 3 "
        "words: rows of the input matrix (10 × 3, float32)"
    )
    assert inputs.domain is None


@pytest.mark.parametrize(("loss", "name"), [(ONE_VS_ALL, "one-vs-all"), (NEGATIVE_SAMPLING, "negative")])
def test_losses_with_a_sigmoid_for_each_label_are_read_with_a_note(
    tmp_path: Path, loss: int, name: str
) -> None:
    finding = find(replace(MODEL, loss=loss).save(tmp_path / "model.bin"), ReadOptions())
    assert isinstance(MODEL.output, Dense)
    assert finding.head("m").weight.tolist() == MODEL.output.values.tolist()
    (note,) = finding.notes
    assert note.startswith(name)
    assert "a sigmoid of its logit" in note


def test_softmax_needs_no_note(tmp_path: Path) -> None:
    assert find(MODEL.save(tmp_path / "model.bin"), ReadOptions()).notes == ()


@pytest.mark.parametrize("tensor", [None, "output"])
def test_hierarchical_softmax_is_always_refused(tmp_path: Path, tensor: str | None) -> None:
    path = replace(MODEL, loss=HIERARCHICAL).save(tmp_path / "model.bin")
    with pytest.raises(LoadError, match=r"hierarchical softmax.*binary tree.*-loss softmax"):
        load_head(path, tensor=tensor)


@pytest.mark.parametrize("kind", [CBOW, SKIPGRAM])
def test_word_vectors_are_refused_unless_named_and_then_labelled_with_words(
    tmp_path: Path, kind: int
) -> None:
    path = replace(MODEL, model=kind, loss=NEGATIVE_SAMPLING, labels=()).save(tmp_path / "model.bin")
    with pytest.raises(LoadError, match=r"word vectors.*--tensor output"):
        load_head(path)
    assert load_head(path, tensor="output").labels == WORDS


def test_other_tensors_and_biases_do_not_exist(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path / "model.bin")
    with pytest.raises(LoadError, match=r"'input' not found.*--tensor output"):
        load_head(path, tensor="input")
    with pytest.raises(LoadError, match=r"'b' not found.*has none"):
        load_head(path, bias_tensor="b")


def test_transpose_flips_the_matrix_and_drops_the_labels(tmp_path: Path) -> None:
    head = load_head(MODEL.save(tmp_path / "model.bin"), transpose=True)
    assert isinstance(MODEL.output, Dense)
    assert head.weight.tolist() == MODEL.output.values.T.tolist()
    assert head.labels is None


def test_a_label_that_is_not_utf8_is_shown_with_escapes(tmp_path: Path) -> None:
    data = MODEL.data().replace("__label__ру".encode(), b"__label__\xff\xfe\xfd\xfc")
    (tmp_path / "model.bin").write_bytes(data)
    labels = load_head(tmp_path / "model.bin").labels
    assert labels is not None
    assert labels[2] == r"__label__\xff\xfe\xfd\xfc"


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        replace(MODEL, output=quantised(4, 3, 2, norms=True), input=quantised(6, 3, 2), pruned=((1, 2),)),
    ],
    ids=["dense", "quantised"],
)
def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, model: Model) -> None:
    data = model.data()
    path = tmp_path / "model.ftz"
    for length in range(0, len(data), 1 + len(data) // 500):
        path.write_bytes(data[:length])
        with pytest.raises(LoadError):
            find(path, ReadOptions())


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ({"version": 13}, "version 13; known are 11 and 12"),
        ({"loss": 9}, "unknown loss 9"),
        ({"dim": 4}, "input matrix has 3 columns for 4 features"),
        ({"output": dense(4, 5)}, "output matrix has 5 columns for 3 features"),
        ({"output": dense(5)}, "5 rows for 4 names"),
        ({"output": dense(0), "labels": ()}, "declared as 0 × 3"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    tmp_path: Path, what: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(replace(MODEL, **what).save(tmp_path / "model.bin"))


def patched(data: bytes, layout: str, old: tuple[int, ...], new: tuple[int, ...]) -> bytes:
    before, after = struct.pack(f"<{layout}", *old), struct.pack(f"<{layout}", *new)
    assert data.count(before) == 1
    return data.replace(before, after)


@pytest.mark.parametrize(
    ("layout", "old", "new", "complaint"),
    [
        ("qq", (4, 3), (2**62, 2**62), "are left in the file"),
        ("qq", (4, 3), (-4, -3), "declared as -4 × -3"),
        ("qq", (4, 3), (400, 3), "takes 4800 bytes"),
        ("3iqq", (8, 4, 4, 1234, -1), (9, 4, 4, 1234, -1), "declares 9 entries"),
        ("3iqq", (8, 4, 4, 1234, -1), (8, -4, 12, 1234, -1), "-4 words"),
        ("3iqq", (8, 4, 4, 1234, -1), (2**31 - 1, 2**31 - 2, 1, 1234, -1), "fastText's limit"),
        ("3iqq", (8, 4, 4, 1234, -1), (8, 3, 5, 1234, -1), "entry 3 of the dictionary is of the wrong kind"),
        ("3iqq", (8, 4, 4, 1234, -1), (8, 4, 4, 1234, 2**60), "pruned n-grams takes"),
        ("bqq", (0, 10, 3), (2, 10, 3), "flag of the input matrix is 2"),
    ],
)
def test_absurd_numbers_are_refused_before_anything_is_read(
    tmp_path: Path, layout: str, old: tuple[int, ...], new: tuple[int, ...], complaint: str
) -> None:
    (tmp_path / "model.bin").write_bytes(patched(MODEL.data(), layout, old, new))
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ((4, 2, 2, 2), (4, 2, 0, 2), "quantiser has 2 parts of 0 features"),
        ((4, 2, 2, 2), (4, 3, 2, 2), "quantiser has 3 parts"),
        ((4, 2, 2, 2), (4, 2, 3, 3), "the last of 3, for 4 columns"),
        ((4, 2, 2, 2), (2**30, 2, 2**29, 2**29), "for 4 columns"),
    ],
)
def test_a_quantiser_that_does_not_fit_its_matrix_is_refused(
    tmp_path: Path, old: tuple[int, ...], new: tuple[int, ...], complaint: str
) -> None:
    model = Model(quantised(4, 4, 2), quantised(4, 4, 4), dim=4)
    (tmp_path / "model.ftz").write_bytes(patched(model.data(), "4i", old, new))
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "model.ftz")


def test_too_few_codes_are_refused(tmp_path: Path) -> None:
    model = Model(quantised(4, 4, 2), quantised(6, 4, 2), dim=4)
    data = patched(model.data(), "qqi", (4, 4, 8), (5, 4, 8))
    (tmp_path / "model.ftz").write_bytes(data)
    with pytest.raises(LoadError, match=r"has 8 codes, expected 5 × 2"):
        load_head(tmp_path / "model.ftz")


def test_a_matrix_that_would_expand_a_thousandfold_is_refused_unread(tmp_path: Path) -> None:
    rows, columns = 20_000, 1000
    bomb = Quantised(np.zeros((rows, 1), np.uint8), [np.zeros((256, columns), np.float32)])
    model = Model(bomb, bomb, labels=("x",) * rows, dim=columns)
    with pytest.raises(LoadError, match=r"from 20000 to 160000000 bytes.*was not read"):
        load_head(model.save(tmp_path / "model.ftz"))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [(b"", "is empty"), (b"a", "signature takes"), (b"12 300\nthe 0.1 0.2", "is not a fastText model")],
)
def test_garbage_is_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "model.ftz").write_bytes(data)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "model.ftz")


SEEDS = (MODEL.data(), SMALLER.data())


@settings(max_examples=120)
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_files_give_a_head_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(seed)
    # Most numbers that matter are in the first 400 bytes; centroids and weights fill the rest.
    position = st.one_of(st.integers(0, 400), st.integers(0, len(seed) - 1))
    for _ in range(data.draw(st.integers(1, 4))):
        start = min(data.draw(position), len(seed) - 1)
        patch = data.draw(st.binary(min_size=1, max_size=8))
        damaged[start : start + len(patch)] = patch
    path = tmp_path_factory.getbasetemp() / "damaged.ftz"
    path.write_bytes(damaged)
    with suppress(InputError):
        assert find(path, ReadOptions()).head("damaged").classes > 0
