"""Tokens as people write them, and labels that hide nothing when printed."""

from __future__ import annotations

import unicodedata

import pytest
from drawn import ENCODABLE
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from argmaxable.core.labels import visible
from argmaxable.models.labels.readable import KINDS, guess_kind, readable_token, readable_tokens


def stored_by_byte_level(text: str) -> str:
    """How the tokenizers library writes a text in byte-level BPE."""
    ((token, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return token


@pytest.mark.parametrize(
    "text", [" the", "naïve", "北京", "\n\n", "\t", "\x00\x7f\xa0\xad", "🙂", " الس", "~¡"]
)
def test_byte_level_tokens_are_the_text_the_library_made_them_from(text: str) -> None:
    assert readable_token(stored_by_byte_level(text), "byte-level") == text


@given(st.text(ENCODABLE, min_size=1))
def test_every_text_survives_byte_level_writing(text: str) -> None:
    assert readable_token(stored_by_byte_level(text), "byte-level") == text


def test_bytes_that_are_no_character_are_shown_as_bytes() -> None:
    half = stored_by_byte_level("é")[:1]
    assert readable_token(half, "byte-level") == "<0xC3>"
    assert readable_token(stored_by_byte_level(" a")[:2] + half, "byte-level") == " a<0xC3>"


BYTES = st.text(st.sampled_from(sorted(pre_tokenizers.ByteLevel.alphabet())), max_size=5)


@given(BYTES, BYTES)
def test_different_bytes_get_different_labels(left: str, right: str) -> None:
    labels = {readable_token(token, "byte-level") for token in (left, right)}
    assert len(labels) == len({left, right})


@pytest.mark.parametrize("token", ["<｜begin▁of▁sentence｜>", "  ", "<|endoftext|>"])
def test_tokens_added_to_a_byte_level_vocabulary_stay(token: str) -> None:
    assert readable_token(token, "byte-level") == token


def test_sentencepiece_marks_become_spaces() -> None:
    assert readable_token("▁the", "sentencepiece") == " the"
    assert readable_token("▁▁▁", "sentencepiece") == "   "


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("<0x0A>", "sentencepiece"),
        ("##ing", "wordpiece"),
        ("▁", "plain"),
        ("Ġthe", "sentencepiece"),
        ("wo@@", "plain"),
    ],
)
def test_marks_of_other_tokenizers_and_byte_tokens_stay(token: str, kind: str) -> None:
    assert readable_token(token, kind) == token


def test_an_unknown_kind_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="expected one of byte-level, sentencepiece"):
        readable_token("a", "bpe")


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_surrogate_pair_is_written_out(kind: str) -> None:
    assert readable_token("a\ud83d", kind) == "a\\ud83d"


def test_tokens_that_would_look_alike_keep_their_stored_form() -> None:
    assert readable_tokens(["▁a", " a", "▁b"], "sentencepiece") == ("▁a", " a", " b")


@pytest.mark.parametrize(
    ("tokens", "kind"),
    [
        (["Ġthe", "Ġa", "ing"], "byte-level"),
        (["▁the", "▁a", "ing"], "sentencepiece"),
        (["the", "##ing", "[CLS]"], "wordpiece"),
        (["▁", *(chr(0x4E00 + n) for n in range(200))], "plain"),
        (["Ġimgħa", *(f"kelma{n}" for n in range(30))], "plain"),
        (["#", "##", "a"], "plain"),
        ([], "plain"),
    ],
    ids=["byte-level", "sentencepiece", "wordpiece", "characters", "Maltese", "signs", "nothing"],
)
def test_the_kind_is_told_from_the_tokens(tokens: list[str], kind: str) -> None:
    assert guess_kind(tokens) == kind


def test_labels_agree_with_the_librarys_decoder() -> None:
    vocabulary = {
        stored_by_byte_level(text): number for number, text in enumerate([" the", "ing", "é", "\n"])
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    for token, number in vocabulary.items():
        assert readable_token(token, "byte-level") == tokenizer.decode([number])


# ---------------------------------------------------------------------- printing


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("word", "word"),
        (" word", "' word'"),
        ("two words", "two words"),
        ("", "''"),
        ("  ", "'  '"),
        ("\n", "\\u{a}"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("\u3000", "\\u{3000}"),
        ("a\u200db", "a\\u{200d}b"),
        ("❤\ufe0f", "❤\\u{fe0f}"),
        ("\u2800", "\\u{2800}"),
        ("हिन्दी", "हिन्दी"),
        ("\u0301", "\\u{301}"),
        (" \u0301", "' \\u{301}'"),
        ("e\u0301", "e\u0301"),
        ("\ue000", "\\u{e000}"),
        ("\ud800", "\\u{d800}"),
    ],
)
def test_what_can_not_be_seen_is_written_out(label: str, shown: str) -> None:
    assert visible(label) == shown


@given(st.text(st.characters(), max_size=8))
def test_nothing_that_steers_a_terminal_is_printed(label: str) -> None:
    assert not any(unicodedata.category(char)[0] == "C" for char in visible(label))
    visible(label).encode()
