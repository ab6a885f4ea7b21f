"""Labels from the files beside a model: every format as its own library writes it, and every misfit."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import sentencepiece
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from argmaxable.core.errors import LoadError
from argmaxable.models.labels import flat_yaml
from argmaxable.models.labels.sentencepiece import pieces
from argmaxable.models.labels.vocabulary import labels_beside, labels_from_file

WORDS = ["<pad>", " the", " a", "ing", "é", "\n"]


def names_beside(folder: Path, classes: int) -> tuple[str, ...] | None:
    labels = labels_beside(folder, classes)
    return None if labels is None else labels.names


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


# ---------------------------------------------------------------------- tokenizer.json


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))


def byte_level(text: str) -> str:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)[0][0]


@pytest.mark.parametrize("sequence", [False, True])
def test_a_byte_level_tokenizer_gives_text(tmp_path: Path, sequence: bool) -> None:
    vocabulary = {byte_level(word): number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    step = pre_tokenizers.ByteLevel()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), step]) if sequence else step
    save_tokenizer(tmp_path, tokenizer)
    labels = labels_beside(tmp_path, len(WORDS))
    assert labels is not None
    assert labels.names == tuple(WORDS)
    assert labels.source == "tokenizer.json"
    assert labels.may_be_padded


def test_a_unigram_tokenizer_gives_text(tmp_path: Path) -> None:
    stored = [(word.replace(" ", "▁"), -1.0) for word in WORDS]
    tokenizer = Tokenizer(models.Unigram(stored, unk_id=0))
    tokenizer.decoder = decoders.Metaspace()
    save_tokenizer(tmp_path, tokenizer)
    assert names_beside(tmp_path, len(WORDS)) == tuple(WORDS)


def test_a_wordpiece_tokenizer_keeps_its_marks(tmp_path: Path) -> None:
    vocabulary = {"[UNK]": 0, "ing": 1, "##ing": 2}
    save_tokenizer(tmp_path, Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]")))
    assert names_beside(tmp_path, 3) == ("[UNK]", "ing", "##ing")


def test_added_tokens_follow_the_vocabulary_and_special_ones_stay_literal(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.Unigram([("▁the", 0.0), ("▁a", 0.0)], unk_id=0))
    tokenizer.add_special_tokens(["<｜end▁of▁text｜>"])
    tokenizer.add_tokens([AddedToken("▁▁", normalized=False)])
    save_tokenizer(tmp_path, tokenizer)
    assert names_beside(tmp_path, 4) == (" the", " a", "<｜end▁of▁text｜>", "  ")


@pytest.mark.parametrize(
    "value",
    [
        {"model": {}},
        {"model": {"vocab": 3}},
        {"model": {"vocab": ["a"]}},
        {"model": {"vocab": [[]]}},
        {"model": {"vocab": {"a": "0"}}},
        {"model": {"vocab": {"a": -1}}},
        {"model": {"vocab": {"a": 10**30}}},
        {"model": {"vocab": {"a": 0}}, "added_tokens": 5},
        {"model": {"vocab": {"a": 0}}, "added_tokens": [5]},
        {"model": {"vocab": {"a": 0}}, "added_tokens": [{"special": True}]},
        {"model": {"vocab": {}}, "pre_tokenizer": {"pretokenizers": [None, 3]}},
    ],
    ids=str,
)
def test_a_broken_tokenizer_gives_no_labels(tmp_path: Path, value: object) -> None:
    path = write(tmp_path, "tokenizer.json", json.dumps(value))
    assert labels_beside(tmp_path, 1) is None
    with pytest.raises(LoadError, match=r"tokenizer\.json: (has|numbers)"):
        labels_from_file(path, 1)


# ---------------------------------------------------------------------- vocab.json, .txt, .yml


def test_a_json_vocabulary_is_ordered_by_its_numbers(tmp_path: Path) -> None:
    write(tmp_path, "vocab.json", json.dumps({"b": 1, "c": 2, "a": 0}))
    assert names_beside(tmp_path, 3) == ("a", "b", "c")


def test_numbers_from_1_leave_class_0_unused(tmp_path: Path) -> None:
    write(tmp_path, "my_vocab.json", json.dumps({chr(96 + n): n for n in range(1, 11)}))
    assert names_beside(tmp_path, 11) == ("<unused 0>", *"abcdefghij")


def test_lines_are_split_at_line_ends_only(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "a\n\u2028\n\x85\n b\n\x0c\n")
    assert names_beside(tmp_path, 5) == ("a", "\u2028", "\x85", " b", "\x0c")


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_labels(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "\ufeffa\r\nb\r\n")
    assert names_beside(tmp_path, 2) == ("a", "b")


TOKENS = [
    "</s>",
    "<unk>",
    ",",
    "'",
    '"',
    "no",
    "~",
    "0x1",
    ":",
    "a: b",
    "#",
    "- ",
    "?",
    "\\",
    "é",
    "a b",
    "{",
    "-",
]
TOKENS += ["*", "'x'", "\t", "　", "null", "long" * 100]


@pytest.mark.parametrize("style", [None, "'", '"'])
@pytest.mark.parametrize("unicode", [True, False])
def test_a_yaml_vocabulary_is_read_as_pyyaml_writes_it(
    tmp_path: Path, style: str | None, unicode: bool
) -> None:
    numbered = {token: number for number, token in enumerate(TOKENS)}
    text = yaml.safe_dump(numbered, default_style=style, allow_unicode=unicode, width=10**9)
    text = re.sub(r"""!!int ['"](\d+)['"]""", r"\1", text)  # a style quotes the numbers too
    write(tmp_path, "vocab.yml", text)
    assert names_beside(tmp_path, len(TOKENS)) == tuple(TOKENS)


@pytest.mark.parametrize("name", ["vocab.yml", "vocab.yaml", "opus.spm32k.vocab.yml"])
def test_a_yaml_vocabulary_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, '# Marian\n---\n</s>: 0\n"\\"": 1\n▁de : 2\n\n')
    assert names_beside(tmp_path, 3) == ("</s>", '"', " de")


def test_a_yaml_vocabulary_in_json_is_read(tmp_path: Path) -> None:
    write(tmp_path, "vocab.yml", json.dumps({"a": 0, "b": 1}, indent=1))
    assert names_beside(tmp_path, 2) == ("a", "b")


def test_vocabularies_of_two_languages_are_not_guessed_between(tmp_path: Path) -> None:
    write(tmp_path, "vocab.en.yml", "the: 0\na: 1\n")
    write(tmp_path, "vocab.de.yml", "der: 0\neine: 1\n")
    assert labels_beside(tmp_path, 2) is None
    assert labels_from_file(tmp_path / "vocab.de.yml", 2).names == ("der", "eine")


def test_the_same_vocabulary_twice_is_one(tmp_path: Path) -> None:
    write(tmp_path, "vocab.en.yml", "the: 0\na: 1\n")
    write(tmp_path, "vocab.de.yml", "the: 0\na: 1\n")
    assert names_beside(tmp_path, 2) == ("the", "a")


@pytest.mark.parametrize(
    "line",
    [
        "word",
        "word: x",
        "word:",
        "'a: 1",
        '"a: 1',
        '"\\q": 1',
        '"\\uZZZZ": 1',
        '"\\UFFFFFFFF": 1',
        "*a: 1",
        "? a",
        "a: ١",
        "- a: 1",
    ],
)
def test_more_yaml_than_a_vocabulary_needs_is_refused_by_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "vocab.yml", f"the: 0\n{line}\n")
    with pytest.raises(LoadError, match=r"vocab\.yml: line 2"):
        labels_from_file(path, 100)


# ---------------------------------------------------------------------- SentencePiece


def train_sentencepiece(kind: str, *, vocab_size: int = 40, byte_fallback: bool = False) -> bytes:
    model = io.BytesIO()
    text = ["the cat sat on the mat", "a naïve café — thé", "the end of the story"] * 5
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text),
        model_writer=model,
        model_type=kind,
        minloglevel=2,
        hard_vocab_limit=False,
        user_defined_symbols=["<sep>"],
        vocab_size=vocab_size,
        byte_fallback=byte_fallback,
    )
    return model.getvalue()


@pytest.mark.parametrize("suffix", ["tokenizer.model", "vocab.spm"])
@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_the_pieces_are_those_the_library_reads(tmp_path: Path, kind: str, suffix: str) -> None:
    data = train_sentencepiece(kind)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    stored = [processor.id_to_piece(number) for number in range(len(processor))]
    marks = [processor.is_control(number) or processor.is_unknown(number) for number in range(len(processor))]
    assert pieces(data) == list(zip(stored, marks, strict=True))
    (tmp_path / suffix).write_bytes(data)
    names = names_beside(tmp_path, len(stored))
    assert names is not None
    assert [name.replace(" ", "▁") for name in names] == stored


def test_byte_pieces_are_shown_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(train_sentencepiece("bpe", byte_fallback=True, vocab_size=300))
    names = names_beside(tmp_path, len(pieces((tmp_path / "tokenizer.model").read_bytes())))
    assert names is not None
    assert "<0x0A>" in names


def test_pieces_that_fairseq_renumbers_are_not_used(tmp_path: Path) -> None:
    data = train_sentencepiece("unigram")
    (tmp_path / "sentencepiece.bpe.model").write_bytes(data)
    assert labels_beside(tmp_path, len(pieces(data))) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
        b"\x0a\x02\x08\x01",
        b"\x0a\x03\x0a\x01\xff",
        b"\xff" * 20,
        b"\x0b",
        b"\x08\x01",
    ],
    ids=[
        "nothing",
        "no length",
        "absurd length",
        "no text",
        "not UTF-8",
        "endless number",
        "a group",
        "no pieces",
    ],
)
def test_a_broken_sentencepiece_model_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(data)
    assert labels_beside(tmp_path, 3) is None
    with pytest.raises(LoadError, match=r"x\.model: (is|holds)"):
        labels_from_file(path, 3)


# ---------------------------------------------------------------------- PaddleOCR, fairseq, lists of classes

CHARACTERS = ["!", "'", "-", "0", "　", "字", "\\", "no", "~"]


@pytest.mark.parametrize(
    ("extra", "expected"),
    [(0, CHARACTERS), (1, ["<blank>", *CHARACTERS]), (2, ["<blank>", *CHARACTERS, " "])],
)
@pytest.mark.parametrize("name", ["ppocr_keys_v1.txt", "en_dict.txt", "inference.yml"])
def test_a_dictionary_is_completed_to_the_classes(
    tmp_path: Path, name: str, extra: int, expected: Sequence[str]
) -> None:
    text = "\n".join(CHARACTERS) + "\n"
    if name.endswith("yml"):
        config = {
            "Global": {"a": [["b", 1]]},
            "PostProcess": {"name": "CTC", "character_dict": CHARACTERS},
            "Z": [1],
        }
        text = yaml.safe_dump(config, allow_unicode=True, sort_keys=False)
    write(tmp_path, name, text)
    assert names_beside(tmp_path, len(CHARACTERS) + extra) == tuple(expected)


def test_a_dictionary_that_does_not_fit_is_no_dictionary_of_this_model(tmp_path: Path) -> None:
    path = write(tmp_path, "en_dict.txt", "a\nb\n")
    assert labels_beside(tmp_path, 6) is None
    with pytest.raises(LoadError, match=r"lists 2 characters.* the head has 6"):
        labels_from_file(path, 6)


def test_an_inference_file_without_characters_gives_none(tmp_path: Path) -> None:
    path = write(tmp_path, "inference.yml", "PostProcess:\n  name: DBPostProcess\n")
    assert labels_beside(tmp_path, 5) is None
    with pytest.raises(LoadError, match="no list under 'character_dict' or 'label_list'"):
        labels_from_file(path, 5)


def test_fairseqs_counts_are_dropped_and_its_special_tokens_come_first(tmp_path: Path) -> None:
    write(tmp_path, "dict.de.txt", "der 120\ndie@@ 7\n1 5\n")
    assert names_beside(tmp_path, 7) == ("<s>", "<pad>", "</s>", "<unk>", "der", "die@@", "1")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.txt", "cat\ndog\n"),
        ("imagenet_labels.txt", "cat\ndog"),
        ("config.json", json.dumps({"hidden": 3, "id2label": {"1": "dog", "0": "cat"}})),
        ("config.min.json", json.dumps({"target_labels_space": ["cat", "dog"]})),
    ],
)
def test_names_of_the_classes_must_be_as_many(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, text)
    labels = labels_beside(tmp_path, 2)
    assert labels is not None
    assert labels.names == ("cat", "dog")
    assert not labels.may_be_padded
    assert labels_beside(tmp_path, 3) is None
    assert labels_beside(tmp_path, 1) is None


# ---------------------------------------------------------------------- which file, and whether it fits


def test_a_vocabulary_may_be_a_little_short_but_never_too_long(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "".join(f"w{n}\n" for n in range(95)))
    labels = labels_beside(tmp_path, 100)
    assert labels is not None
    assert len(labels.names) == 95
    assert labels.may_be_padded
    assert labels_beside(tmp_path, 94) is None
    assert labels_beside(tmp_path, 200) is None


def test_the_most_trusted_file_that_fits_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "labels.txt", "label0\nlabel1\n")
    write(tmp_path, "vocab.txt", "word0\nword1\n")
    write(tmp_path, "tokenizer.json", "{")
    assert names_beside(tmp_path, 2) == ("word0", "word1")
    write(tmp_path, "config.json", json.dumps({"id2label": {"0": "cat", "1": "dog"}}))
    assert names_beside(tmp_path, 2) == ("cat", "dog")


def test_folders_with_such_names_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").mkdir()
    assert labels_beside(tmp_path, 2) is None


def test_a_named_vocabulary_may_be_much_shorter(tmp_path: Path) -> None:
    labels = labels_from_file(write(tmp_path, "words.lst", "a\nb\n"), 10)
    assert labels.names == ("a", "b")
    assert labels.may_be_padded
    assert labels.source.endswith("words.lst")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.txt", "a\nb\nc\n", "has 3 labels; the head has only 2 classes"),
        ("l.txt", "", "has no labels in it"),
        ("l.json", '{"a": 0, "b": 1, "c": 2}', "numbers 'c' with 2; the head has only 2 classes"),
        ("l.json", '["a", "b", "c"]', "lists 3 labels; the head has 2 classes"),
        ("l.json", '["a", 1]', "expected strings"),
        ("l.json", "3", "expected strings"),
        ("l.json", "[" * 100_000, "is not valid JSON"),
        ("l.json", "[" + "9" * 5000 + "]", "is not valid JSON"),
        ("l.json", '{"a": 0.5}', "expected a token and a whole number"),
        ("l.json", '{"0": "a", "x": "b"}', "expected strings"),
    ],
)
def test_a_named_file_that_does_not_fit_says_why(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(LoadError, match=message):
        labels_from_file(path, 2)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"nothing\.txt: is not a file"):
        labels_from_file(tmp_path / "nothing.txt", 2)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(LoadError, match="not UTF-8"):
        labels_from_file(tmp_path / "l.txt", 2)


def test_an_absurdly_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    with path.open("wb") as file:
        file.truncate(2**40)  # sparse: takes no space
    with pytest.raises(LoadError, match="too many for a list of labels"):
        labels_from_file(path, 2)


# ---------------------------------------------------------------------- fuzzing our own parsers


@settings(max_examples=300)
@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"\x0a", b"\x03", b"a", b"\xff", b"\x12"])).map(b"".join)
)
def test_the_protobuf_reader_raises_nothing_but_load_errors(data: bytes) -> None:
    with contextlib.suppress(LoadError):
        assert all(isinstance(piece.text, str) for piece in pieces(data))


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab:'\"\\ux0 -?\n#1{"), max_size=40))
def test_the_yaml_reader_raises_nothing_but_load_errors(text: str) -> None:
    with contextlib.suppress(LoadError):
        assert all(isinstance(key, str) and number >= 0 for key, number in flat_yaml.numbered_keys(text))
    with contextlib.suppress(LoadError):
        assert all(isinstance(item, str) for item in flat_yaml.list_under(f"a:\n{text}", ["a"]))


# PyYAML spreads texts with line breaks, of which YAML 1.1 knows five, over several lines.
NO_BREAKS = st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\x85\u2028\u2029")


@settings(max_examples=200)
@given(st.dictionaries(st.text(NO_BREAKS, max_size=8), st.just(0), min_size=1, max_size=8), st.booleans())
def test_every_token_survives_pyyaml_and_this_reader(entries: dict[str, int], unicode: bool) -> None:
    text = yaml.safe_dump(entries, allow_unicode=unicode, width=10**9)
    assert dict(flat_yaml.numbered_keys(text)) == entries
