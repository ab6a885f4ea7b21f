"""Which class has which label, judged by transformers' own tokenizers, and which are special."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, models

from argmaxable.core.select import Selection
from argmaxable.models import find_head
from argmaxable.models.finding import Labels
from argmaxable.models.labels.language_codes import M2M_100, MBART_25, MBART_50, NLLB, WMT_21
from argmaxable.models.labels.vocabulary import labels_beside, labels_from_file, search_beside

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # transformers deprecates things while it is imported
    import transformers
    from transformers.convert_slow_tokenizer import NllbConverter, XGLMConverter, import_protobuf
    from transformers.models.m2m_100 import tokenization_m2m_100
    from transformers.models.mbart import tokenization_mbart
    from transformers.models.mbart50 import tokenization_mbart50
    from transformers.models.nllb import tokenization_nllb

transformers.logging.set_verbosity_error()

TEXT = ["the cat sat on the mat", "a naive cafe and tea", "the end of the story"] * 5
# In which order Google's and fairseq's models train the special pieces.
GOOGLE = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
FAIRSEQ = {"unk_id": 0, "bos_id": 1, "eos_id": 2}
XLNET = {**FAIRSEQ, "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]}


def trained(kind: str = "unigram", **settings: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        model_type=kind,
        minloglevel=2,
        hard_vocab_limit=False,
        vocab_size=40,
        **settings,
    )
    return model.getvalue()


def pieces_of(data: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    return [processor.id_to_piece(number) for number in range(len(processor))]


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def stored(labels: Labels | None) -> list[str]:
    """The labels as tokenizers write them."""
    assert labels is not None
    return [name.replace(" ", "▁") for name in labels.names]


# ---------------------------------------------------------------------- SentencePiece files alone

PIECES = "sentencepiece.bpe.model"
TOKENIZERS = {
    "XLMRobertaTokenizer": (PIECES, FAIRSEQ, "xlm-roberta"),
    "CamembertTokenizer": (PIECES, FAIRSEQ, "camembert"),
    "MBartTokenizer": (PIECES, FAIRSEQ, "mbart"),
    "MBart50Tokenizer": (PIECES, FAIRSEQ, "mbart"),
    "PegasusTokenizer": ("spiece.model", GOOGLE, "pegasus"),
    "T5Tokenizer": ("spiece.model", GOOGLE, "t5"),
    "XLNetTokenizer": ("spiece.model", XLNET, "xlnet"),
}


def tokenizer_in(folder: Path, name: str) -> Any:
    file, settings, _ = TOKENIZERS[name]
    (folder / file).write_bytes(trained(**settings))
    return getattr(transformers, name).from_pretrained(folder)


@pytest.mark.parametrize("told_by", ["tokenizer_config.json", "config.json"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_pieces_are_numbered_as_transformers_does(tmp_path: Path, name: str, told_by: str) -> None:
    tokenizer = tokenizer_in(tmp_path, name)
    if told_by == "config.json":
        write_json(tmp_path / told_by, {"model_type": TOKENIZERS[name][2]})
    else:
        write_json(tmp_path / told_by, {"tokenizer_class": f"{name}Fast"})
    labels = labels_beside(tmp_path, len(tokenizer))
    assert stored(labels) == tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    assert labels is not None
    assert labels.special >= set(tokenizer.all_special_ids)


@pytest.mark.parametrize(
    ("name", "converter", "behind"),
    [
        ("NllbTokenizer", NllbConverter, [*NLLB.split(), "<mask>"]),
        ("XGLMTokenizer", XGLMConverter, []),
    ],
)
def test_pieces_are_numbered_as_transformers_converts_them(
    tmp_path: Path, name: str, converter: Any, behind: list[str]
) -> None:
    data = trained(**FAIRSEQ)
    (tmp_path / PIECES).write_bytes(data)
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": name})
    expected = [token for token, _ in converter.vocab(None, import_protobuf().ModelProto.FromString(data))]
    assert stored(labels_beside(tmp_path, len(expected) + len(behind))) == [*expected, *behind]


def test_the_languages_are_those_of_transformers() -> None:
    assert MBART_25.split() == tokenization_mbart.FAIRSEQ_LANGUAGE_CODES
    assert MBART_50.split() == tokenization_mbart50.FAIRSEQ_LANGUAGE_CODES
    assert NLLB.split() == tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
    assert M2M_100.split() == tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    assert WMT_21.split() == tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["wmt21"]


@pytest.mark.parametrize("codes", ["m2m100", "wmt21"])
def test_an_m2m_100_has_its_languages_behind_the_vocabulary(tmp_path: Path, codes: str) -> None:
    data = trained(**FAIRSEQ)
    (tmp_path / PIECES).write_bytes(data)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(data)[3:]]
    write_json(tmp_path / "vocab.json", {token: number for number, token in enumerate(tokens)})
    write_json(
        tmp_path / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer", "language_codes": codes}
    )
    tokenizer = transformers.M2M100Tokenizer(
        str(tmp_path / "vocab.json"), str(tmp_path / PIECES), language_codes=codes
    )
    count = len(tokens) + len(tokenizer.lang_code_to_id)
    labels = labels_beside(tmp_path, count + 2)  # fairseq pads with words it makes up
    assert stored(labels) == [tokenizer._convert_id_to_token(number) for number in range(count)]
    assert labels is not None
    assert set(tokenizer.lang_code_to_id.values()) <= labels.special


def test_the_sentinels_of_an_mt5_are_pieces_already(tmp_path: Path) -> None:
    data = trained(**GOOGLE, user_defined_symbols=["▁<extra_id_0>"])
    (tmp_path / "spiece.model").write_bytes(data)
    write_json(tmp_path / "config.json", {"model_type": "mt5"})
    assert stored(labels_beside(tmp_path, len(pieces_of(data)))) == pieces_of(data)


@pytest.mark.parametrize(
    ("settings", "file", "more"),
    [
        ({}, "tokenizer.model", 1),
        ({}, PIECES, 0),
        ({"tokenizer_class": "NovelTokenizer"}, "tokenizer.model", 1),
        ({"tokenizer_class": "BarthezTokenizer"}, PIECES, 2),
    ],
)
def test_pieces_whose_numbers_are_not_known_are_left_out_with_a_reason(
    tmp_path: Path, settings: dict[str, str], file: str, more: int
) -> None:
    data = trained()
    (tmp_path / file).write_bytes(data)
    write_json(tmp_path / "tokenizer_config.json", settings)
    labels, (doubt,) = search_beside(tmp_path, len(pieces_of(data)) + more)
    assert labels is None
    assert doubt.startswith(f"{file} was not used for labels: how ")
    assert f"--labels {file}" in doubt


def test_a_translator_of_other_size_than_mbart_is_left_out_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / PIECES).write_bytes(trained())
    write_json(tmp_path / "config.json", {"model_type": "mbart"})
    labels, (doubt,) = search_beside(tmp_path, 100)
    assert labels is None
    assert "no such model has 100 classes" in doubt


def test_the_reason_why_there_are_no_labels_is_noted(tmp_path: Path) -> None:
    (tmp_path / PIECES).write_bytes(trained())
    save_file({"lm_head.weight": np.ones((90, 2), np.float32)}, tmp_path / "model.safetensors")
    write_json(tmp_path / "config.json", {"model_type": "mbart", "architectures": ["MBartForCausalLM"]})
    finding = find_head(tmp_path)
    assert finding.labels is None
    assert any(note.startswith(f"{PIECES} was not used") for note in finding.notes)


def test_pieces_that_are_no_ids_of_a_marian_model_are_left_out(tmp_path: Path) -> None:
    data = trained()
    (tmp_path / "target.spm").write_bytes(data)
    write_json(tmp_path / "config.json", {"model_type": "marian"})
    assert labels_beside(tmp_path, len(pieces_of(data))) is None


def test_a_file_the_user_names_is_numbered_as_its_neighbours_say(tmp_path: Path) -> None:
    tokenizer = tokenizer_in(tmp_path, "PegasusTokenizer")
    path = tmp_path / "spiece.model"
    count = len(pieces_of(path.read_bytes()))
    assert len(labels_from_file(path, len(tokenizer)).names) == count
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "PegasusTokenizer"})
    assert len(labels_from_file(path, len(tokenizer)).names) == count + 103


# ---------------------------------------------------------------------- languages of a translator


@pytest.mark.parametrize("source", ["vocab-src.json", "source_vocab.json", "vocab.src.yml", "source.spm"])
def test_the_source_languages_vocabulary_is_never_the_heads(tmp_path: Path, source: str) -> None:
    path = tmp_path / source
    if source.endswith("spm"):
        path.write_bytes(trained())
    else:
        write_json(path, {f"w{number}": number for number in range(5)})
    classes = len(pieces_of(path.read_bytes())) if source.endswith("spm") else 5
    assert labels_beside(tmp_path, classes) is None


@pytest.mark.parametrize("target", ["target_vocab.json", "vocab-tgt.json"])
def test_of_two_vocabularies_the_target_languages_is_the_heads(tmp_path: Path, target: str) -> None:
    write_json(tmp_path / "vocab.json", {"der": 0, "die": 1})
    write_json(tmp_path / target, {"the": 0, "a": 1})
    assert stored(labels_beside(tmp_path, 2)) == ["the", "a"]


# ---------------------------------------------------------------------- tokens that were added

WORDS = {"[PAD]": 0, "the": 1, "cat": 2}


def added(**tokens: int) -> dict[str, Any]:
    return {"added_tokens_decoder": {str(number): {"content": name} for name, number in tokens.items()}}


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("added_tokens.json", {"dog": 3, "eel": 5}),
        ("tokenizer_config.json", added(dog=3, eel=5)),
        ("tokenizer_config.json", {**added(dog=3, eel=5), **{"added_tokens_decoder2": 3}}),
        ("tokenizer_config.json", added(**{"[PAD]": 0, "dog": 3, "eel": 5, "far beyond": 99})),
    ],
)
def test_tokens_added_behind_the_vocabulary_have_their_labels(tmp_path: Path, file: str, value: Any) -> None:
    many = {f"w{number}": number + 6 for number in range(30)}
    write_json(tmp_path / "vocab.json", {**WORDS, **many})
    write_json(tmp_path / file, value)
    assert stored(labels_beside(tmp_path, 38))[:6] == ["[PAD]", "the", "cat", "dog", "<unused▁4>", "eel"]


def test_a_vocabulary_that_its_settings_contradict_is_left_out_with_a_reason(tmp_path: Path) -> None:
    write_json(tmp_path / "vocab.json", WORDS)
    write_json(tmp_path / "tokenizer_config.json", added(**{"<s>": 1}))
    labels, (doubt,) = search_beside(tmp_path, 3)
    assert labels is None
    assert (
        doubt == "vocab.json was not used for labels: it calls class 1 'the', the tokenizer's settings '<s>'."
    )


def test_where_a_vocabulary_is_contradicted_no_lesser_one_is_taken(tmp_path: Path) -> None:
    write_json(tmp_path / "target_vocab.json", WORDS)
    write_json(tmp_path / "vocab.json", {"</s>": 0, "der": 1, "Kater": 2})
    write_json(tmp_path / "tokenizer_config.json", added(**{"</s>": 0}))
    labels, (doubt,) = search_beside(tmp_path, 3)
    assert labels is None
    assert doubt.startswith("target_vocab.json was not used")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"added_tokens_decoder": 3}',
        '{"added_tokens_decoder": {"x": 1, "1": 2, "2": {"content": 3}}}',
        '{"added_tokens_decoder": {"99999999999999999999": "a"}, "extra_ids": "x", "tokenizer_class": 4}',
    ],
)
def test_damaged_settings_declare_nothing(tmp_path: Path, text: str) -> None:
    write_json(tmp_path / "vocab.json", WORDS)
    (tmp_path / "tokenizer_config.json").write_text(text)
    (tmp_path / "special_tokens_map.json").write_text(text)
    assert stored(labels_beside(tmp_path, 3)) == list(WORDS)


# ---------------------------------------------------------------------- special tokens


def special_names(labels: Labels | None) -> list[str]:
    assert labels is not None
    return [labels.names[number] for number in sorted(labels.special)]


def write_tokenizer(folder: Path, words: Sequence[str], special: Sequence[str]) -> None:
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in special])
    tokenizer.add_tokens(["ordinary"])
    tokenizer.save(str(folder / "tokenizer.json"))


def test_tokenizer_json_declares_which_tokens_are_special(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, ["unknown", "the"], ["unknown", "eng_Latn", "de_DE"])
    assert special_names(labels_beside(tmp_path, 5)) == ["unknown", "eng_Latn", "de_DE"]


@pytest.mark.parametrize("file", ["special_tokens_map.json", "tokenizer_config.json"])
@pytest.mark.parametrize(
    "value",
    [
        {"unk_token": "unknown", "additional_special_tokens": ["de_DE"]},
        {"unk_token": {"content": "unknown"}, "additional_special_tokens": [{"content": "de_DE"}]},
        {"unk_token": "unknown", "extra_special_tokens": {"german": "de_DE"}},
    ],
)
@pytest.mark.parametrize("vocabulary", ["vocab.txt", "vocab.json", "tokenizer.json"])
def test_the_files_beside_a_vocabulary_declare_special_tokens(
    tmp_path: Path, vocabulary: str, value: Any, file: str
) -> None:
    words = ["unknown", "the", "de_DE"]
    if vocabulary == "vocab.txt":
        (tmp_path / vocabulary).write_text("\n".join(words))
    elif vocabulary == "vocab.json":
        write_json(tmp_path / vocabulary, {word: number for number, word in enumerate(words)})
    else:
        write_tokenizer(tmp_path, words, [])
    write_json(tmp_path / file, value)
    assert special_names(labels_beside(tmp_path, 3 + (vocabulary == "tokenizer.json"))) == [
        "unknown",
        "de_DE",
    ]


def test_tokens_declared_special_by_number_are(tmp_path: Path) -> None:
    write_json(tmp_path / "vocab.json", {**WORDS, **{f"w{number}": number + 3 for number in range(20)}})
    listed = {"0": {"content": "[PAD]", "special": True}, "23": {"content": "stop", "special": True}}
    write_json(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": listed})
    assert special_names(labels_beside(tmp_path, 24)) == ["[PAD]", "stop"]


def test_controls_of_a_sentencepiece_file_are_special(tmp_path: Path) -> None:
    data = trained(**FAIRSEQ, control_symbols=["stop"], user_defined_symbols=["word"])
    (tmp_path / "tokenizer.model").write_bytes(data)
    assert special_names(labels_beside(tmp_path, len(pieces_of(data)))) == ["<unk>", "<s>", "</s>", "stop"]


def test_a_finding_tells_which_classes_are_special(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, ["unknown", "the"], ["eng_Latn"])
    save_file({"lm_head.weight": np.ones((4, 2), np.float32)}, tmp_path / "model.safetensors")
    finding = find_head(tmp_path)
    assert finding.special == {2}
    wishes = Selection(skip_special=True), Selection(script="latin"), Selection()
    head = finding.head("m")
    assert [wish.of(head, finding.special) for wish in wishes] == [[0, 1, 3], [0, 1, 3], None]
