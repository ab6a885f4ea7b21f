"""Labels have categories and, by a proxy, frequencies."""

from __future__ import annotations

import pytest

from experiments.heads.vocabulary import (
    BIG_5,
    GB_2312,
    JIS_X_0208,
    Frequency,
    Standard,
    category,
    character_counts,
    ranked,
)


@pytest.mark.parametrize(
    ("label", "standard", "expected"),
    [
        ("的", GB_2312, "Han, common"),
        ("刈", GB_2312, "Han, less common"),
        ("響", GB_2312, "Han, beyond the standard"),
        ("響", BIG_5, "Han, common"),
        ("亞", JIS_X_0208, "Han, less common"),
        ("日", JIS_X_0208, "Han, common"),
        ("的刈", GB_2312, "Han, less common"),
    ],
)
def test_a_han_character_has_the_level_its_standard_gives_it(
    label: str, standard: Standard, expected: str
) -> None:
    assert category(label, standard) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("<blank>", "special"),
        (" the", "Latin"),
        ("ジ", "kana"),
        ("β", "other letters"),
        ("42", "digits"),
        ("🚕", "symbols"),
        (" ", "symbols"),
    ],
)
def test_other_labels_are_told_apart_by_what_they_are(label: str, expected: str) -> None:
    assert category(label) == expected


def test_a_character_counts_as_often_as_its_words() -> None:
    assert character_counts(["人 5 n", "人人 2 n", "大人 1 n"]) == {"人": 10, "大": 1}


def test_only_han_characters_get_counts_and_unlisted_ones_count_nothing() -> None:
    found = ranked(["<blank>", "人", "a", "大", "刈"], Frequency.CHARACTERS, {"人": 7, "大": 3})
    assert found.classes.tolist() == [1, 3, 4]
    assert found.frequency.tolist() == [7, 3, 0]


def test_earlier_merges_are_more_frequent_and_bytes_have_no_rank() -> None:
    found = ranked(["<|endoftext|>", "a", "<0xC3>", " t", "he", "é"], Frequency.MERGES, {})
    assert found.classes.tolist() == [3, 4, 5]
    assert found.frequency[0] > found.frequency[1] > found.frequency[2]


def test_a_merge_of_bytes_that_are_no_character_yet_is_a_merge() -> None:
    found = ranked(["<0xE2>", "<0x80>", " t", "<0xE2><0x80>"], Frequency.MERGES, {})
    assert found.classes.tolist() == [2, 3]


def test_special_tokens_before_the_bytes_are_no_merges_whatever_they_look_like() -> None:
    found = ranked(["<|endoftext|>", "<filename>", "a", "t", "at"], Frequency.MERGES, {})
    assert found.classes.tolist() == [4]


def test_without_single_bytes_every_token_counts_as_a_merge() -> None:
    assert ranked(["at", "the"], Frequency.MERGES, {}).counted().classes.tolist() == [0, 1]


def test_counted_classes_come_from_frequent_to_rare_without_those_never_seen() -> None:
    found = ranked(["人", "刈", "大"], Frequency.CHARACTERS, {"人": 3, "大": 7}).counted()
    assert found.classes.tolist() == [2, 0]
    assert found.frequency.tolist() == [7, 3]
