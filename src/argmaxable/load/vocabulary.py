"""Labels for a head's classes, from the files that lie beside models: tokenizers, vocabularies,
dictionaries and lists of labels.

A file that was found by its name is used only if its number of labels fits the head; one that the user
named must fit. All of them are read as plain data, with no tokenizer library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from argmaxable.errors import LoadError
from argmaxable.load import flat_yaml, sentencepiece
from argmaxable.load.finding import Labels
from argmaxable.load.readable import (
    BYTE_LEVEL,
    PLAIN,
    SENTENCEPIECE,
    guess_kind,
    readable_token,
    readable_tokens,
)

# Where to look, in order of trust, and whether the file lists a vocabulary, to whose size heads are
# padded, or the classes themselves. Of separate vocabularies the target language's is the head's.
_PLACES: tuple[tuple[str, bool], ...] = (
    ("config*.json", False),
    ("tokenizer.json", True),
    ("vocab-tgt.json", True),
    ("vocab.json", True),
    ("vocab.txt", True),
    ("vocab.y*ml", True),
    ("*vocab*.y*ml", True),
    ("target.spm", True),
    ("*.spm", True),
    ("*.model", True),
    ("inference.y*ml", False),
    ("ppocr_keys*.txt", False),
    ("*dict*.txt", False),
    ("labels.txt", False),
    ("*_labels.txt", False),
    ("*vocab*.json", True),
)
# fairseq's models number the pieces of such a file from 1, after four tokens of their own; their
# vocabulary is in tokenizer.json or dict.txt, and this file alone would shift every label by one.
_SHIFTED = ".bpe.model"
# Padding that was seen reaches 2.4 % (DeepSeek-V2: 100,002 tokens, 102,400 rows). A vocabulary that
# leaves more rows without a token is another model's.
_MOST_PADDING = 0.1
# The largest tokenizer.json in use has 35 MB; parsed JSON takes about ten times its size.
_LARGEST_FILE = 128 * 2**20
# Keys under which a model's configuration lists its classes: Hugging Face, Magika, and common habits.
_CLASS_KEYS = ("id2label", "target_labels_space", "class_names", "labels", "classes")
_FAIRSEQ_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def labels_beside(folder: Path, classes: int) -> Labels | None:
    """Labels from the most trusted file in the folder that fits the number of classes, or None.

    Files that can't be read don't fit. Where several files of one rank fit but disagree (the
    vocabularies of two languages), none of them is taken.
    """
    for pattern, is_vocabulary in _PLACES:
        paths = (path for path in sorted(folder.glob(pattern)) if not path.name.endswith(_SHIFTED))
        fitting = [labels for path in paths if (labels := _if_fitting(path, classes, is_vocabulary))]
        if len({labels.names for labels in fitting}) == 1:
            return fitting[0]
    return None


def labels_from_file(path: Path, classes: int) -> Labels:
    """The labels in a file the user named. A vocabulary may have fewer than there are classes: padding.

    Raises LoadError when the file can't be read as labels or their number does not fit.
    """
    try:
        labels = _read(path, classes)
    except LoadError as error:
        raise LoadError(f"{path}: {error}") from error
    except OSError as error:
        raise LoadError(f"{path}: can't be read ({error.strerror or error}). Check --labels.") from error
    return replace(labels, source=str(path), may_be_padded=True)


def ctc_labels(characters: list[str], classes: int) -> tuple[str, ...]:
    """PaddleOCR's labels for a list of characters; raises LoadError when their number does not fit.

    A recogniser has a class "<blank>" before the listed characters and, unless it was trained without,
    a space after them; an orientation classifier has just those listed.
    """
    for labels in (characters, ["<blank>", *characters], ["<blank>", *characters, " "]):
        if len(labels) == classes:
            return tuple(labels)
    raise LoadError(
        f"lists {len(characters):,} characters, which with a blank and a space make "
        f"{len(characters) + 2:,} classes; the head has {classes:,}. Do they belong to this model?"
    )


def class_labels(value: object, classes: int) -> tuple[str, ...]:
    """Labels from a list, or from an object {"0": label, …} as id2label is; raises LoadError."""
    if isinstance(value, dict) and all(str(key).isascii() and str(key).isdigit() for key in value):
        value = [value[key] for key in sorted(value, key=lambda key: int(str(key)[:20]))]
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise LoadError("lists no labels: expected strings, in order or by number.")
    if len(value) != classes:
        raise LoadError(f"lists {len(value):,} labels; the head has {classes:,} classes.")
    return readable_tokens(value, PLAIN)


def _if_fitting(path: Path, classes: int, is_vocabulary: bool) -> Labels | None:
    try:
        labels = _read(path, classes) if path.is_file() else None
    except (LoadError, OSError):
        return None
    if labels is None:
        return None
    missing = classes - sum(not name.startswith("<unused ") for name in labels.names)
    if missing > classes * _MOST_PADDING or (len(labels.names) < classes and not is_vocabulary):
        return None
    return replace(labels, may_be_padded=is_vocabulary)


def _read(path: Path, classes: int) -> Labels:
    """The labels in a file of any of the known formats, told by its suffix; at most `classes` of them."""
    if path.is_dir() or not path.exists():
        raise LoadError("is no file. Expected labels, e.g. a text file with one per line.")
    if path.stat().st_size > _LARGEST_FILE:
        raise LoadError(f"has {path.stat().st_size:,} bytes, too many for a list of labels.")
    data = path.read_bytes()
    if path.suffix in (".model", ".spm"):
        names = readable_tokens(sentencepiece.pieces(data), SENTENCEPIECE)
    else:
        read = _READERS.get(path.suffix, _from_text)
        names = read(_decoded(data), path.name, classes)
    if not names:
        raise LoadError("has no labels in it; expected one for each class.")
    if len(names) > classes:
        raise LoadError(
            f"has {len(names):,} labels; the head has only {classes:,} classes. Do they belong to this model?"
        )
    return Labels(names, path.name)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"is not UTF-8 text: {error}. Save the labels as UTF-8.") from error


def _from_text(text: str, name: str, classes: int) -> tuple[str, ...]:
    # Only line ends separate: str.splitlines would also split at characters that are labels.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    if "dict" not in name and "keys" not in name:
        return readable_tokens(lines, guess_kind(lines))
    words = [line.rpartition(" ") for line in lines]
    if all(word and count.isascii() and count.isdigit() for word, _, count in words):
        return _named([*_FAIRSEQ_SPECIAL, *(word for word, _, _ in words)])
    return ctc_labels(lines, classes)


def _from_yaml(text: str, name: str, classes: int) -> tuple[str, ...]:
    if text.lstrip().startswith("{"):  # YAML includes JSON, and Marian's vocabularies come in both
        return _from_json(text, name, classes)
    if name.startswith("inference"):
        return ctc_labels(flat_yaml.list_under(text, ("character_dict", "label_list")), classes)
    return _named(_by_number(((number, key) for key, number in flat_yaml.numbered_keys(text)), classes))


def _from_json(text: str, name: str, classes: int) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"is no readable JSON: {error}. It may be cut short or damaged.") from error
    if not isinstance(value, dict):
        return class_labels(value, classes)
    if isinstance(value.get("model"), dict):
        return _from_tokenizer(value, classes)
    key = next((key for key in _CLASS_KEYS if isinstance(value.get(key), list | dict)), None)
    if key is not None:
        return class_labels(value[key], classes)
    if all(isinstance(label, str) for label in value.values()):
        return class_labels(value, classes)
    return _named(_by_number(((number, token) for token, number in value.items()), classes))


def _from_tokenizer(tokenizer: Mapping[str, Any], classes: int) -> tuple[str, ...]:
    """The tokens of Hugging Face's tokenizer.json; special ones are literal, the rest in its own writing."""
    vocabulary = tokenizer["model"].get("vocab")
    if isinstance(vocabulary, dict):
        pairs = [(number, token) for token, number in vocabulary.items()]
    elif isinstance(vocabulary, list) and all(isinstance(pair, list) and pair for pair in vocabulary):
        pairs = [(number, pair[0]) for number, pair in enumerate(vocabulary)]  # Unigram: [token, score]
    else:
        raise LoadError("has no model.vocab; expected a tokenizer.json of Hugging Face.")
    added = tokenizer.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise LoadError("has added_tokens that are no list of objects.")
    tokens = _by_number([*pairs, *((token.get("id"), token.get("content")) for token in added)], classes)
    byte_level = any(_is_byte_level(tokenizer.get(part)) for part in ("pre_tokenizer", "decoder"))
    names = list(readable_tokens(tokens, BYTE_LEVEL if byte_level else guess_kind(tokens)))
    for token in added:
        if token.get("special") is True:
            names[token["id"]] = readable_token(token["content"], PLAIN)
    return tuple(names)


def _is_byte_level(step: object) -> bool:
    """Whether a pre-tokenizer or decoder, or a step of it when it is a Sequence, is GPT-2's."""
    inner = step.get("pretokenizers", step.get("decoders")) if isinstance(step, dict) else None
    steps = inner if isinstance(inner, list) else [step]
    return any(isinstance(each, dict) and each.get("type") == "ByteLevel" for each in steps)


def _by_number(pairs: Iterable[tuple[Any, Any]], classes: int) -> list[str]:
    """Tokens in the order of their numbers, which may leave some out; a later pair replaces an earlier."""
    tokens: dict[int, str] = {}
    for number, token in pairs:
        if not (isinstance(number, int) and isinstance(token, str)):
            raise LoadError(
                f"numbers {str(token)[:60]!r} with {str(number)[:60]!r}; expected a token and a whole number."
            )
        if not 0 <= number < classes:
            raise LoadError(
                f"numbers {token[:60]!r} with {number}; the head has only {classes:,} classes. "
                "Does it belong to this model?"
            )
        tokens[number] = token
    return [tokens.get(number, f"<unused {number}>") for number in range(max(tokens, default=-1) + 1)]


def _named(tokens: list[str]) -> tuple[str, ...]:
    return readable_tokens(tokens, guess_kind(tokens))


_READERS: dict[str, Callable[[str, str, int], tuple[str, ...]]] = {
    ".json": _from_json,
    ".yml": _from_yaml,
    ".yaml": _from_yaml,
}
