"""Choosing classes by their labels."""

from __future__ import annotations

import functools
import unicodedata

import pytest
from fontTools import unicodedata as scripts_txt

from argmaxable.core.errors import InputError
from argmaxable.core.select import (
    SCRIPTS,
    classes_in_script,
    classes_named,
    is_padding,
    is_special,
    padding_classes,
    scripts_of,
    special_classes,
)

# Scripts.txt, as fontTools ships it, has these under another name.
OTHER_NAMES = {"canadian-syllabics": "Canadian Aboriginal", "nko": "Nko"}


# Modifier letters of phonetic notation, and rare signs, whose names do not tell their script.
UNNAMED = set("ᴯᴻᵎ𐞀𐞁𐞂ͺ〻𖿣")


@functools.cache
def letters_by_script() -> dict[str, list[str]]:
    letters: dict[str, list[str]] = {}
    for char in map(chr, range(0x110000)):
        if unicodedata.category(char)[0] == "L":
            letters.setdefault(scripts_txt.script_name(scripts_txt.script(char)), []).append(char)
    return letters


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_every_letter_of_a_script_is_recognised(script: str) -> None:
    letters = letters_by_script()[OTHER_NAMES.get(script, script.title())]
    assert {char for char in letters if scripts_of(char) != {script}} <= UNNAMED


def test_a_letter_of_one_script_is_never_taken_for_anothers() -> None:
    for real, letters in letters_by_script().items():
        known = {name for name in SCRIPTS if OTHER_NAMES.get(name, name.title()) == real}
        for char in letters if real not in ("Common", "Inherited") else ():
            assert scripts_of(char) & SCRIPTS <= known, char


LABELS = [
    "the",
    " naïve",
    "don't",
    "Москва",
    "Αθήνα",
    "שלום",
    "سلام",
    "北京",
    "ひらがな",
    "ラーメン",
    "한국",
    "हिन्दी",
]
LABELS += [
    "ไทย",
    "Հայ",
    "ქართ",
    "a1",
    "12",
    "?!",
    "aя",
    "",
    "<s>",
    "[CLS]",
    "<0x41>",
    "<padding 3>",
    "ＡＢ",
    "ｱ",
    "日本の",
]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("latin", ["the", " naïve", "don't", "a1", "ＡＢ"]),
        ("Cyrillic", ["Москва"]),
        ("greek", ["Αθήνα"]),
        ("hebrew", ["שלום"]),
        ("arabic", ["سلام"]),
        ("han", ["北京"]),
        ("hiragana", ["ひらがな"]),
        ("katakana", ["ラーメン", "ｱ"]),
        ("hangul", ["한국"]),
        ("devanagari", ["हिन्दी"]),
        ("thai", ["ไทย"]),
        ("armenian", ["Հայ"]),
        ("georgian", ["ქართ"]),
        ("tamil", []),
    ],
)
def test_words_are_chosen_by_the_script_of_all_their_letters(script: str, expected: list[str]) -> None:
    assert [LABELS[number] for number in classes_in_script(LABELS, script)] == expected


def test_tokens_that_are_declared_special_are_no_words() -> None:
    assert classes_in_script(["de_DE", "the", "en"], "latin", {0, 2}) == [1]


def test_a_script_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'latn' is not known; expected one of arabic, .*, yi\."):
        classes_in_script(LABELS, "latn")


SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<PAD>", "<blank>", "<mask>", "[CLS]", "[MASK]", "[unused12]"]
SPECIAL += ["<|endoftext|>", "<|im_start|>", "<｜begin▁of▁sentence｜>", "<extra_id_0>", " <extra_id_0>"]
SPECIAL += ["eng_Latn", "zho_Hant", "kas_Arab"]
SPECIAL += ["<unused3>", "<start_of_turn>", "<fim_prefix>", ">>fra<<", "__en__", "[gMASK]", "madeupword0001"]


@pytest.mark.parametrize("label", SPECIAL)
def test_marks_of_the_model_are_special(label: str) -> None:
    assert is_special(label)


@pytest.mark.parametrize(
    "label",
    [
        "s",
        "<",
        "<0x0A>",
        "<div>",
        "<String>",
        "<h1>",
        "__init__",
        "foo_Test",
        "eng_latn",
        "[ab]",
        "[i]",
        "[a]",
        "|",
        "<|",
        " ",
        "",
        "word",
        "<padding 0>",
        "<unused 0>",
    ],
)
def test_text_bytes_and_padding_are_not_special(label: str) -> None:
    assert not is_special(label)


def test_rows_without_a_token_are_padding() -> None:
    assert is_padding("<padding 12>")
    assert is_padding("<unused 0>")
    assert not is_padding("<pad>")
    assert not is_padding("<unused0>")


def test_special_classes_and_padding_are_given_by_number() -> None:
    labels = ["<s>", "a", "<unk>", "b", "<padding 0>"]
    assert special_classes(labels) == [0, 2]
    assert special_classes(labels, frozenset({1})) == [0, 1, 2]
    assert padding_classes(labels) == [4]


TOKENS = ["the", " the", " cat", "\n", "twin", "twin", " "]


@pytest.mark.parametrize(
    ("tokens", "classes"),
    [
        (["the"], [0]),
        ([" the"], [1]),
        (["' the'"], [1]),
        (["cat"], [2]),
        (["\\u{a}"], [3]),
        (["twin"], [4, 5]),
        ([" cat", "the", "cat"], [0, 2]),
        (["' '"], [6]),
        ([], []),
    ],
    ids=str,
)
def test_tokens_are_found_as_stored_as_printed_or_without_their_space(
    tokens: list[str], classes: list[int]
) -> None:
    assert classes_named(TOKENS, tokens) == classes


def test_a_token_that_is_no_label_is_named() -> None:
    with pytest.raises(InputError, match=r"no class has the label 'dog' \(7 labels\)"):
        classes_named(TOKENS, ["the", "dog"])
