"""`verify` on part of the truth: classes chosen by label, labels from a file, the domain from the model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf_writer
import numpy as np
import onnx_writer
import pytest
import sentencepiece
import tokenizers
from numpy.typing import NDArray
from onnx import NodeProto
from onnx_writer import node
from running import Command, Ran, is_one_clear_line
from safetensors.numpy import save_file

# Corners of a cross, and their centre, which no input can make the argmax.
CROSS = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]], np.float32)
# fmt: off
TOKENS = (
    "<s>", "[CLS]", "the", " the", "σ", "да", "и1", "42", "!", "été", "漢字", "line\nend", "latинь", " ",
    "<0x0A>",
)
# fmt: on


def verify(command: Command, *arguments: str | Path) -> Ran:
    return command("verify", *arguments, "--no-db", "--workers", "1")


def verified(command: Command, *arguments: str | Path) -> dict[str, Any]:
    ran = verify(command, *arguments, "--json")
    assert ran.code in (0, 1), ran.err
    return ran.record


def unargmaxable(record: dict[str, Any]) -> list[str]:
    """The labels of all classes that were verified, in heads whose every class is unargmaxable."""
    assert record["unargmaxable"] == record["verified"]
    return [entry["label"] for entry in record["unargmaxable_classes"]]


def refused(ran: Ran) -> str:
    """The complaint about bad input."""
    assert ran.code == 2
    assert is_one_clear_line(ran)
    return ran.err


# ---------------------------------------------------------------------- classes by label


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A head of equal rows: every class is tied, so the verdicts list all classes that were chosen.

    The vocabulary is shorter than the head: two rows of padding.
    """
    weight = np.ones((len(TOKENS) + 2, 2), np.float32)
    return gguf_writer.write(
        tmp_path / "labelled.gguf",
        {"token_embd.weight": weight},
        tokens=tuple(token.replace(" ", "▁") for token in TOKENS),
        tokenizer="llama",
    )


PADDING = ["<padding 0>", "<padding 1>"]


def test_without_a_choice_every_class_is_verified(command: Command, labelled: Path) -> None:
    assert unargmaxable(verified(command, labelled)) == [*TOKENS, *PADDING]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (["--tokens", "the"], ["the"]),
        (["--tokens", " the"], [" the"]),
        (["--tokens", "the", "--tokens", "42"], ["the", "42"]),
        (["--tokens", " 42"], ["42"]),
        (["--tokens", r"line\u{a}end"], ["line\nend"]),
        (["--tokens", "' '"], [" "]),
        (["--script", "latin"], ["the", " the", "été", "line\nend"]),
        (["--script", "cyrillic"], ["да", "и1"]),
        (["--script", "Greek"], ["σ"]),
        (["--script", "han"], ["漢字"]),
        (["--skip-special"], [*TOKENS[2:], *PADDING]),
        (["--skip-padding"], [*TOKENS]),
        (["--skip-special", "--skip-padding"], [*TOKENS[2:]]),
        (["--script", "latin", "--tokens", "the", "--tokens", "да"], ["the"]),
        (["--script", "latin", "--only", "0-3"], ["the", " the"]),
        (["--skip-special", "--only", "0-2"], ["the"]),
        (["--skip-special", "--skip-padding", "--script", "cyrillic", "--only", "6-16"], ["и1"]),
    ],
    ids=" ".join,
)
def test_classes_are_chosen_by_label(
    command: Command, labelled: Path, options: list[str], chosen: list[str]
) -> None:
    record = verified(command, labelled, *options)
    assert unargmaxable(record) == chosen
    assert record["classes"] == len(TOKENS) + 2


def test_a_chosen_class_still_competes_with_all_others(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "cross.npz", W=CROSS, labels=np.array(["e", "w", "n", "s", "centre"]))
    record = verified(command, tmp_path / "cross.npz", "--tokens", "centre")
    assert (record["verified"], record["unargmaxable"]) == (1, 1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--tokens", "nowhere"], "no class has the label 'nowhere' (17 labels)"),
        (["--tokens", "the", "--tokens", "The"], "no class has the label 'The'"),
        (["--script", "klingon"], "script 'klingon' is not known; expected one of arabic, "),
        (["--script", "hebrew"], "no class is selected"),
        (["--script", "latin", "--tokens", "да"], "no class is selected"),
        (["--skip-special", "--only", "0-1"], "no class is selected"),
    ],
    ids=" ".join,
)
def test_a_choice_that_leaves_nothing_is_bad_input(
    command: Command, labelled: Path, options: list[str], complaint: str
) -> None:
    assert complaint in refused(verify(command, labelled, *options))


@pytest.mark.parametrize(
    "options",
    [["--tokens", "the"], ["--script", "latin"], ["--skip-special"], ["--skip-padding"]],
    ids=" ".join,
)
def test_a_choice_by_label_needs_labels(command: Command, tmp_path: Path, options: list[str]) -> None:
    np.savez(tmp_path / "bare.npz", W=CROSS)
    assert "Pass --labels FILE" in refused(verify(command, tmp_path / "bare.npz", *options))


# ---------------------------------------------------------------------- labels from a file

WORDS = ("<s>", "the", " cat", "the sat", "naïve")


def text_file(folder: Path) -> Path:
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder / "words.txt"


def vocab_json(folder: Path) -> Path:
    numbers = {word.replace(" ", "▁"): number for number, word in enumerate(WORDS)}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    return folder / "vocab.json"


def list_json(folder: Path) -> Path:
    (folder / "names.json").write_text(json.dumps(WORDS))
    return folder / "names.json"


def id2label(folder: Path) -> Path:
    (folder / "config.json").write_text(json.dumps({"id2label": dict(enumerate(WORDS))}))
    return folder / "config.json"


def marian_yaml(folder: Path) -> Path:
    lines = [f"{json.dumps(word.replace(' ', '▁'))}: {number}" for number, word in enumerate(WORDS)]
    (folder / "vocab.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "vocab.yml"


def tokenizer_json(folder: Path) -> Path:
    vocabulary = {word.replace(" ", "Ġ").replace("ï", "Ã¯"): number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def paddle_yaml(folder: Path) -> Path:
    lines = ["PostProcess:", "  character_dict:", "  - a", "  - b", "  - c"]
    (folder / "inference.yml").write_text("\n".join(lines) + "\n")
    return folder / "inference.yml"


def paddle_dictionary(folder: Path) -> Path:
    (folder / "ppocr_keys.txt").write_text("a\nb\nc\n")
    return folder / "ppocr_keys.txt"


def fairseq_dictionary(folder: Path) -> Path:
    (folder / "dict.en.txt").write_text("the 17\n")
    return folder / "dict.en.txt"


PADDLE = ("<blank>", "a", "b", "c", " ")
FILES = {
    "text": (text_file, WORDS),
    "vocab.json": (vocab_json, WORDS),
    "a list in JSON": (list_json, WORDS),
    "id2label": (id2label, WORDS),
    "Marian": (marian_yaml, WORDS),
    "tokenizer.json": (tokenizer_json, WORDS),
    "inference.yml": (paddle_yaml, PADDLE),
    "PaddleOCR's dictionary": (paddle_dictionary, PADDLE),
    "fairseq's dictionary": (fairseq_dictionary, ("<s>", "<pad>", "</s>", "<unk>", "the")),
}


@pytest.fixture
def equal(tmp_path: Path) -> Path:
    """Five equal rows, all of which are listed with their labels."""
    np.savez(tmp_path / "equal.npz", W=np.ones((5, 2)), labels=np.array(list("vwxyz")))
    return tmp_path / "equal.npz"


@pytest.mark.parametrize("kind", FILES)
def test_labels_are_read_from_a_file_of_any_kind(
    command: Command, equal: Path, tmp_path: Path, kind: str
) -> None:
    make, words = FILES[kind]
    path = make(tmp_path)
    assert tuple(unargmaxable(verified(command, equal, "--labels", path))) == words
    record = command("inspect", equal, "--labels", path, "--json").record
    assert record["labels"] == {"source": str(path), "count": 5, "padding": 0, "first": list(words)}


@pytest.mark.parametrize("suffix", [".model", ".spm"])
def test_labels_are_read_from_a_sentencepiece_model(command: Command, tmp_path: Path, suffix: str) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b ab ba"] * 20),
        model_prefix=str(tmp_path / "m"),
        vocab_size=8,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = (tmp_path / "m.model").rename(tmp_path / f"pieces{suffix}")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = [processor.id_to_piece(number) for number in range(len(processor))]
    np.savez(tmp_path / "equal.npz", W=np.ones((len(pieces), 2)))
    found = unargmaxable(verified(command, tmp_path / "equal.npz", "--labels", path))
    assert found == [piece.replace("▁", " ") for piece in pieces]


def test_a_file_with_fewer_labels_than_rows_leaves_padding(
    command: Command, equal: Path, tmp_path: Path
) -> None:
    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    assert unargmaxable(verified(command, equal, "--labels", tmp_path / "three.txt")) == [
        "a",
        "b",
        "c",
        *PADDING,
    ]
    shown = command("inspect", equal, "--labels", tmp_path / "three.txt").out
    assert f"3 from {tmp_path / 'three.txt'}, 2 rows of padding: a  b  c\n" in shown
    kept = verified(command, equal, "--labels", tmp_path / "three.txt", "--skip-padding")
    assert unargmaxable(kept) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["inspect", "verify"])
def test_a_file_with_more_labels_than_rows_is_bad_input(
    command: Command, equal: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "six.txt").write_text("a\nb\nc\nd\ne\nf\n")
    complaint = refused(command(name, equal, "--labels", tmp_path / "six.txt"))
    assert "six.txt: has 6 labels; the head has only 5 classes" in complaint


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("labels.txt", b"", "has no labels in it"),
        ("labels.txt", b"\xff\xfe\x00", "is not UTF-8 text"),
        ("labels.json", b'{"a": ', "is not valid JSON"),
        ("labels.json", b'{"a": 9}', "numbers 'a' with 9; the head has only 5 classes"),
        ("labels.json", b'["a"]', "lists 1 labels; the head has 5 classes"),
        ("labels.model", b"garbage", "labels.model: "),
        ("absent.txt", None, "is not a file"),
    ],
)
def test_a_file_without_labels_is_bad_input(
    command: Command, equal: Path, tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert complaint in refused(verify(command, equal, "--labels", tmp_path / name))


# ---------------------------------------------------------------------- --domain auto

HEAD = np.concatenate([np.eye(4), -np.ones((1, 4)), np.zeros((1, 4))]).astype(np.float32)
NORM = {"g": np.ones(4, np.float32), "s": np.full(4, 0.5, np.float32)}
NUMBERS = {
    name: np.array(value, np.float32) for name, value in (("zero", 0), ("six", 6), ("two", 2), ("tiny", 1e-6))
}
RMS_NORM = [
    node("Pow", "x two", "xx"),
    node("ReduceMean", "xx", "m", axes=[-1]),
    node("Add", "m tiny", "e"),
    node("Sqrt", "e", "r"),
    node("Div", "x r", "n"),
    node("Mul", "n g", "h"),
]


@dataclass(frozen=True)
class Feed:
    """Operations that make the head's features h from the input x, and the domain that follows.

    The row of −1 in HEAD is the argmax only where the features can sum to less than 0: `loses` tells.
    """

    name: str
    nodes: list[NodeProto]
    domain: str
    loses: bool
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)


FEEDS = [
    Feed("Relu", [node("Relu", "x", "h")], "box [0, inf]", True),
    Feed("Relu6", [node("Clip", "x zero six", "h")], "box [0, 6]", True, NUMBERS),
    Feed("Sigmoid", [node("Sigmoid", "x", "h")], "box [0, 1]", True),
    Feed("Tanh", [node("Tanh", "x", "h")], "box ±1", False),
    Feed("SiLU", [node("Sigmoid", "x", "s"), node("Mul", "x s", "h")], "box [-0.27847, inf]", False),
    Feed("LayerNorm", [node("LayerNormalization", "x g s", "h")], "LayerNorm solid", True, NORM),
    Feed("RMSNorm", RMS_NORM, "RMSNorm solid", False, {**NORM, **NUMBERS}),
    Feed(
        "pooled Relu",
        [node("Relu", "x", "r"), node("Reshape", "r s", "q"), node("GlobalAveragePool", "q", "p"),
         node("Flatten", "p", "h")],
        "box [0, inf]", True, {"s": np.array([1, 4, 1, 1])},
    ),
]  # fmt: skip


def behind(folder: Path, nodes: list[NodeProto], constants: dict[str, NDArray[Any]]) -> Path:
    arrays = {"W": np.ascontiguousarray(HEAD.T), **constants}
    return onnx_writer.save(folder, onnx_writer.build([*nodes, node("MatMul", "h W", "y")], arrays))


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_the_operation_before_the_head_gives_the_domain(command: Command, tmp_path: Path, feed: Feed) -> None:
    path = behind(tmp_path, feed.nodes, feed.constants)
    assert command("inspect", path, "--json").record["domain"] == feed.domain
    record = verified(command, path)
    assert record["domain"] == feed.domain
    assert record["domain_source"]["basis"] == "proven"
    assert (4 in [entry["class"] for entry in record["unargmaxable_classes"]]) == feed.loses
    assert verified(command, path, "--domain", "auto")["domain"] == feed.domain


def test_proofs_over_the_domain_of_the_file_pass_check(command: Command, tmp_path: Path) -> None:
    feed = next(each for each in FEEDS if each.name == "LayerNorm")
    path = behind(tmp_path, feed.nodes, feed.constants)
    verify(command, path, "--domain", "auto", "--output", tmp_path / "proofs")
    checked = command("check", tmp_path / "proofs", path)
    assert checked.code == 0
    assert checked.out.splitlines()[0] == "6 of 6 verdicts proven over the domain LayerNorm solid."


def llama_folder(folder: Path) -> Path:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {"lm_head.weight": HEAD, "model.norm.weight": np.ones(4, np.float32)}
    save_file(tensors, folder / "model.safetensors")
    return folder


def llama_gguf(folder: Path) -> Path:
    tensors = {"output.weight": HEAD, "output_norm.weight": np.ones(4, np.float32)}
    return gguf_writer.write(folder / "model.gguf", {**tensors, "token_embd.weight": HEAD})


@pytest.mark.parametrize("make", [llama_folder, llama_gguf])
def test_the_final_norm_of_a_checkpoint_gives_the_domain(command: Command, tmp_path: Path, make: Any) -> None:
    path = make(tmp_path)
    assert "RMSNorm" in command("inspect", path, "--json").record["inputs"]
    assert verified(command, path)["domain"] == "RMSNorm solid"


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_weights_alone_are_verified_over_a_box_that_is_called_an_assumption(
    command: Command, tmp_path: Path, suffix: str
) -> None:
    save = {"npz": lambda path: np.savez(path, W=CROSS), "npy": lambda path: np.save(path, CROSS)}
    save[suffix](tmp_path / f"head.{suffix}")
    answer, domain = verify(command, tmp_path / f"head.{suffix}").out.splitlines()[:2]
    assert answer == "1 of 5 classes can never be predicted for features within ±100."
    assert domain.startswith("Domain: box ±100, an assumption: the file does not say what reaches")
    record = verified(command, tmp_path / f"head.{suffix}")
    assert record["answer"] == answer
    assert record["domain_source"]["basis"] == "assumed"


def test_an_assumption_says_why_it_is_made(command: Command, tmp_path: Path) -> None:
    save_file({"classifier.weight": CROSS, "body.weight": CROSS}, tmp_path / "model.safetensors")
    domain = verify(command, tmp_path / "model.safetensors").out.splitlines()[1]
    inputs = command("inspect", tmp_path / "model.safetensors", "--json").record["inputs"]
    assert inputs in domain


def test_the_range_that_the_file_proves_is_named_with_its_reason(command: Command, tmp_path: Path) -> None:
    path = behind(tmp_path, [node("Relu", "x", "h")], {})
    answer, domain = verify(command, path).out.splitlines()[:2]
    assert answer == "2 of 6 classes can never be predicted, whatever the input."
    assert domain == "Domain: box [0, inf], which the file itself proves: Relu."


def test_a_domain_that_was_asked_for_is_not_every_input(command: Command, tmp_path: Path) -> None:
    path = behind(tmp_path, [node("Relu", "x", "h")], {})
    text = verify(command, path, "--domain", "box:100").out
    assert "whatever the input" not in text
    assert text.splitlines()[1] == "Domain: box ±100, as asked."
    (hint,) = [line for line in text.splitlines() if "--domain auto" in line]
    assert "box [0, inf]" in hint


def test_over_the_domain_of_the_file_there_is_nothing_to_mention(command: Command, tmp_path: Path) -> None:
    path = behind(tmp_path, [node("Relu", "x", "h")], {})
    assert "--domain auto" not in verify(command, path).out


@pytest.mark.parametrize("arguments", [["explain", "4"], ["ranking", "4 > 1"]], ids=" ".join)
def test_other_questions_are_about_the_domain_of_the_file_too(
    command: Command, tmp_path: Path, arguments: list[str]
) -> None:
    name, *words = arguments
    path = behind(tmp_path, [node("Relu", "x", "h")], {})
    assert command(name, path, *words).out.splitlines()[-1].startswith("Domain: box [0, inf], which the file")
    source = command(name, path, *words, "--json").record["domain_source"]
    assert source == {"basis": "proven", "why": "Relu"}


def test_where_no_domain_is_known_none_is_mentioned(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "cross.npz", W=CROSS)
    assert "--domain auto" not in verify(command, tmp_path / "cross.npz").out
