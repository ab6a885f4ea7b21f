"""Texts become token ids, and their parts stay apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from experiments.harness.corpus import Corpus, corpus


def written(folder: Path, **parts: str) -> Path:
    for name, text in parts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def spoken(found: Corpus, part: str) -> str:
    return " ".join(found.words[token] for token in getattr(found, part))


def articles(first: int, last: int) -> str:
    return "".join(f" = Title{n} = \n \n = = Section = = \n the word{n} \n" for n in range(first, last))


def test_shipped_parts_are_taken_as_they_are(tmp_path: Path) -> None:
    found = corpus(written(tmp_path, train="a b \n a \n", valid="b \n", test="a\n"), vocabulary=10)
    assert spoken(found, "train") == "a b <eos> a <eos>"
    assert (spoken(found, "valid"), spoken(found, "test")) == ("b <eos>", "a <eos>")


@pytest.mark.parametrize("pattern", ["ptb.{}.txt", "wiki.{}.tokens"])
def test_parts_may_be_called_as_they_ship(tmp_path: Path, pattern: str) -> None:
    for part, text in {"train": "a b \n a \n", "valid": "b \n", "test": "a\n"}.items():
        (tmp_path / pattern.format(part)).write_text(text)
    found = corpus(tmp_path, vocabulary=10)
    assert [spoken(found, part) for part in ("train", "valid", "test")] == [
        "a b <eos> a <eos>", "b <eos>", "a <eos>"
    ]  # fmt: skip


@pytest.mark.parametrize("column", ["text", "sentence"])
def test_datasets_of_the_hub_are_read_row_by_row(tmp_path: Path, column: str) -> None:
    for name, rows in {
        "train-00000-of-00002": ["", " = A title = \n"],
        "train-00001-of-00002": ["a b"],
        "validation-00000-of-00001": ["b \n"],
        "test-00000-of-00001": ["a"],
    }.items():
        parquet.write_table(pyarrow.table({column: rows}), tmp_path / f"{name}.parquet")
    found = corpus(tmp_path, vocabulary=10)
    assert spoken(found, "train") == "<eos> = A title = <eos> a b <eos>"
    assert (spoken(found, "valid"), spoken(found, "test")) == ("b <eos>", "a <eos>")


def test_a_dataset_without_text_names_its_columns(tmp_path: Path) -> None:
    for part in ("validation", "test"):
        parquet.write_table(pyarrow.table({"image": [1], "label": [2]}), tmp_path / f"{part}-0.parquet")
    with pytest.raises(
        ValueError, match="has the columns image, label: lines of text are looked for in text"
    ):
        corpus(tmp_path, vocabulary=10)


def test_words_beyond_the_vocabulary_become_unknown(tmp_path: Path) -> None:
    found = corpus(written(tmp_path, train="a a a b b c\n", valid="b c d\n", test="c\n"), vocabulary=3)
    assert found.words == ("a", "<unk>", "b")
    assert spoken(found, "valid") == "b <unk> <unk> <unk>"


def test_counts_are_those_of_the_training_text_and_fall(tmp_path: Path) -> None:
    found = corpus(written(tmp_path, train="a b b b c c\n", valid="a a a a a\n", test="a\n"), vocabulary=9)
    assert found.words == ("b", "c", "<eos>", "a", "<unk>")
    assert found.counts.tolist() == [3, 2, 1, 1, 0]


def test_without_a_training_part_every_article_goes_to_one_part(tmp_path: Path) -> None:
    found = corpus(written(tmp_path, valid=articles(0, 12), test=articles(12, 20)), vocabulary=100)
    parts = [set(spoken(found, part).split()) for part in ("train", "valid", "test")]
    titles = [{word for word in part if word.startswith("Title")} for part in parts]
    assert len(titles[0]) == 16  # the words of the other four are unknown: they are not in the training text
    assert found.train.size == 16 * 14
    assert found.valid.size == found.test.size == 2 * 14
    assert not titles[1]
    assert not titles[2]


def test_a_text_without_articles_is_cut_into_blocks_of_lines(tmp_path: Path) -> None:
    lines = "".join(f"word{n}\n" for n in range(20))
    found = corpus(written(tmp_path, valid=lines, test=lines), vocabulary=100)
    assert found.train.size == 2 * 32
    assert found.valid.size == found.test.size == 2 * 4
    # The last four lines are also the last of the first file, which lie in a block for training.
    assert spoken(found, "test") == "word16 <eos> word17 <eos> word18 <eos> word19 <eos>"


def test_the_toy_text_is_the_same_every_time() -> None:
    first, second = (corpus(None, vocabulary=50) for _ in range(2))
    assert first.words == second.words
    assert np.array_equal(first.train, second.train)
    assert np.array_equal(first.test, second.test)


def test_the_toy_text_has_frequent_and_rare_words_and_remembers() -> None:
    found = corpus(None, vocabulary=300)
    assert found.counts[0] > 50 * found.counts[-1]
    pairs = np.zeros((300, 300))
    np.add.at(pairs, (found.train[:-1], found.train[1:]), 1)
    after_two = pairs[[1, 3]] / pairs[[1, 3]].sum(axis=1, keepdims=True)
    assert np.abs(after_two[0] - after_two[1]).sum() > 0.2


def test_every_token_has_a_name() -> None:
    found = corpus(None, vocabulary=20)
    assert len(found.words) == found.counts.size == 20
    assert found.counts.sum() == found.train.size
    assert max(found.train.max(), found.valid.max(), found.test.max()) < 20


def test_a_directory_without_a_text_says_what_belongs_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No valid part in .*: a text has valid\.txt"):
        corpus(tmp_path, vocabulary=10)


def test_a_vocabulary_of_one_word_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        corpus(None, vocabulary=1)
