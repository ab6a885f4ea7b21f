"""Labels for a head's classes, from the files that lie beside models: tokenizers, vocabularies,
dictionaries and lists of labels.

A file that was found by its name is used only if its number of labels fits the head, and if it is known how
the model numbers them; one that the user named must fit. All are plain data: no tokenizer library is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json, twice
from argmaxable.models.finding import Labels
from argmaxable.models.labels import flat_yaml, sentencepiece
from argmaxable.models.labels.piece_numbers import AS_STORED, FAIRSEQ, languages_behind, numberings
from argmaxable.models.labels.readable import (
    PLAIN,
    SENTENCEPIECE,
    guess_kind,
    readable_token,
    readable_tokens,
)
from argmaxable.models.labels.tokenizer_file import TOKENIZER, by_number, from_tokenizer, unused
from argmaxable.models.labels.tokenizer_settings import TokenizerSettings, settings_beside

# Where to look, in order of trust, and whether the file lists a vocabulary, to whose size heads are
# padded, or the classes themselves. Of separate vocabularies the target language's is the head's.
_PLACES: tuple[tuple[str, bool], ...] = (
    ("config*.json", False),
    ("tokenizer.json", True),
    ("vocab-tgt.json", True),
    ("target_vocab.json", True),
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
# In the name of the vocabulary of a source language, which is never the head's.
_SOURCE = re.compile(r"(?:^|[-_.])(?:source|src)(?:[-_.]|$)")
# How the SentencePiece files of models are called that number the pieces in another way than the file does.
_RENUMBERED = ".bpe.model"
# Padding that was seen reaches 2.4 % (DeepSeek-V2: 100,002 tokens, 102,400 rows). A vocabulary that
# leaves more rows without a token is another model's.
_MOST_PADDING = 0.1
# The largest tokenizer.json in use has 35 MB; parsed JSON takes about ten times its size.
_LARGEST_FILE = 128 * 2**20
# Keys under which a model's configuration lists its classes: Hugging Face, Magika, and common habits.
_CLASS_KEYS = ("id2label", "target_labels_space", "class_names", "labels", "classes")
_SAVE_LABELS = "Save the labels as text, one in a line."
_OF_PIECES = (".model", ".spm")


class _Doubtful(LoadError):
    """A vocabulary that would fit, but may name the classes wrongly."""


def labels_beside(folder: Path, classes: int) -> Labels | None:
    """Labels from the most trusted file in the folder that fits the number of classes, or None."""
    return search_beside(folder, classes)[0]


def search_beside(folder: Path, classes: int) -> tuple[Labels | None, list[str]]:
    """Labels as from `labels_beside` and, where there are none, why files that may have them were not used.

    Files that can't be read don't fit. Where several files of one rank fit but disagree (the
    vocabularies of two languages), none of them is taken.
    """
    try:
        settings = settings_beside(folder)
    except AmbiguousError as error:
        return None, [f"no file was used for labels: {error}"]
    doubts: dict[str, str] = {}
    for pattern, is_vocabulary in _PLACES:
        fitting = []
        for path in sorted(folder.glob(pattern)):
            try:
                labels = _if_fitting(path, classes, settings, is_vocabulary=is_vocabulary)
            except _Doubtful as doubt:
                doubts[path.name] = f"{path.name} was not used for labels: {doubt}"
            else:
                fitting += [] if labels is None else [labels]
        # What is wrong about a vocabulary is no reason to trust a lesser one.
        if len({labels.names for labels in fitting}) == 1 and not (is_vocabulary and doubts):
            return fitting[0], []
    return None, list(doubts.values())


def labels_from_file(path: Path, classes: int) -> Labels:
    """The labels in a file the user named. A vocabulary may have fewer than there are classes: padding.

    Raises LoadError when the file can't be read as labels or their number does not fit.
    """
    try:
        labels = _read(path, classes, settings_beside(path.parent))
    except LoadError as error:
        kind = AmbiguousError if isinstance(error, AmbiguousError) else LoadError
        raise kind(f"{path}: {error}") from error
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
    if len(characters) + 3 == classes and " " not in characters:
        raise _Doubtful(
            f"it lists {len(characters):,} characters, one too few for {classes:,} classes with a blank and "
            "a space. PaddleOCR's own lists end in a line with one space, which this file seems to have "
            "lost: add it."
        )
    raise LoadError(
        f"lists {len(characters):,} characters, which with a blank and a space make "
        f"{len(characters) + 2:,} classes; the head has {classes:,}. Do they belong to this model?"
    )


def class_labels(value: object, classes: int) -> tuple[str, ...]:
    """Labels from a list, or from an object {"0": label, …} as id2label is; raises LoadError."""
    if isinstance(value, dict) and all(str(key).isascii() and str(key).isdigit() for key in value):
        repeated = twice(str(int(str(key)[:20])) for key in value)
        if repeated is not None:
            raise ambiguous(f"class {repeated} has two labels")
        value = [value[key] for key in sorted(value, key=lambda key: int(str(key)[:20]))]
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise LoadError("lists no labels: expected strings, in order or by number.")
    if len(value) != classes:
        raise LoadError(f"lists {len(value):,} labels; the head has {classes:,} classes.")
    return readable_tokens(value, PLAIN)


def _if_fitting(
    path: Path, classes: int, settings: TokenizerSettings, *, is_vocabulary: bool
) -> Labels | None:
    if not path.is_file() or (is_vocabulary and _SOURCE.search(path.name)):
        return None
    try:
        labels = _read(path, classes, settings)
    except _Doubtful:
        raise
    except AmbiguousError as error:
        raise _Doubtful(str(error)) from error
    except (LoadError, OSError):
        return None
    if not is_vocabulary:
        return labels if len(labels.names) == classes and _unnamed(labels, classes) == 0 else None
    if _unnamed(labels, classes) - len(settings.added) > classes * _MOST_PADDING:
        return None  # not worth a doubt
    labels = _with_added(labels, settings, classes)
    if _unnamed(labels, classes) > classes * _MOST_PADDING:
        return None
    if path.suffix in _OF_PIECES:
        _require_known_numbers(path, labels, classes, settings)
    return replace(labels, may_be_padded=True)


def _unnamed(labels: Labels, classes: int) -> int:
    """How many classes have no label."""
    return classes - sum(not name.startswith("<unused ") for name in labels.names)


def _read(path: Path, classes: int, settings: TokenizerSettings) -> Labels:
    """The labels in a file of any of the known formats, told by its suffix; at most `classes` of them."""
    if path.is_dir() or not path.exists():
        raise LoadError("is not a file. Expected labels, e.g. a text file with one per line.")
    if path.stat().st_size > _LARGEST_FILE:
        raise LoadError(f"has {path.stat().st_size:,} bytes, too many for a list of labels.")
    data = path.read_bytes()
    if path.suffix in _OF_PIECES:
        labels = _from_pieces(sentencepiece.pieces(data), settings, classes)
    else:
        read = _READERS.get(path.suffix, _from_text)
        labels = read(_decoded(data), path.name, classes)
    if not labels.names:
        raise LoadError("has no labels in it; expected one for each class.")
    if path.name == "vocab.json":
        labels = _with_languages(labels, settings)
    if len(labels.names) > classes:
        raise LoadError(
            f"has {len(labels.names):,} labels; the head has only {classes:,} classes. "
            "Do they belong to this model?"
        )
    return replace(labels, source=path.name)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"is not UTF-8 text: {error}. Save the labels as UTF-8.") from error


def _from_text(text: str, name: str, classes: int) -> Labels:
    # Only line ends separate: str.splitlines would also split at characters that are labels.
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        raise ambiguous(
            "it has a carriage return without a line feed, which ends a line for some", _SAVE_LABELS
        )
    lines = text.removesuffix("\n").split("\n") if text else []
    if "dict" not in name and "keys" not in name:
        return _named(lines)
    words = [line.rpartition(" ") for line in lines]
    if all(word and count.isascii() and count.isdigit() for word, _, count in words):
        labels = _named([*FAIRSEQ, *(word for word, _, _ in words)])
        return replace(labels, special=frozenset(range(len(FAIRSEQ))))
    return Labels(ctc_labels(lines, classes), name)


def _from_yaml(text: str, name: str, classes: int) -> Labels:
    if text.lstrip().startswith("{"):  # YAML includes JSON, and Marian's vocabularies come in both
        return _from_json(text, name, classes)
    if name.startswith("inference"):
        return Labels(ctc_labels(flat_yaml.list_under(text, ("character_dict", "label_list")), classes), name)
    pairs = list(flat_yaml.numbered_keys(text))
    repeated = twice(key for key, _ in pairs)
    if repeated is not None:
        raise ambiguous(f"the key {repeated[:80]!r} occurs twice")
    return _named(by_number(((number, key) for key, number in pairs), classes))


def _from_json(text: str, name: str, classes: int) -> Labels:
    value = parse_json(text, name)
    if not isinstance(value, dict):
        return Labels(class_labels(value, classes), name)
    if isinstance(value.get("model"), dict):
        return from_tokenizer(value, classes)
    lists = {key: value[key] for key in _CLASS_KEYS if isinstance(value.get(key), list | dict)}
    if lists:
        return Labels(_only_list(lists, classes), name)
    if all(isinstance(label, str) for label in value.values()):
        return Labels(class_labels(value, classes), name)
    return _named(by_number(((number, token) for token, number in value.items()), classes))


def _only_list(lists: Mapping[str, object], classes: int) -> tuple[str, ...]:
    """The labels in the lists of a configuration that fit; raises AmbiguousError where they differ."""
    fitting: dict[str, tuple[str, ...]] = {}
    refused = None
    for key, value in lists.items():
        try:
            fitting[key] = class_labels(value, classes)
        except AmbiguousError:
            raise
        except LoadError as error:
            refused = refused or error
    if len(set(fitting.values())) > 1:
        raise ambiguous(f"{' and '.join(map(repr, fitting))} list different labels", _SAVE_LABELS)
    if not fitting:
        raise refused or LoadError("lists no labels.")
    return next(iter(fitting.values()))


def _from_pieces(pieces: Sequence[sentencepiece.Piece], settings: TokenizerSettings, classes: int) -> Labels:
    """The pieces of a SentencePiece file as the model numbers them: as stored, unless it is known better."""
    texts = [piece.text for piece in pieces]
    known = numberings(settings.tokenizer_class, settings.model_type, texts, settings.extra_ids)
    fitting = [each for each in known if len(known) == 1 or len(each.tokens(texts)) == classes]
    if known and not fitting:
        raise _Doubtful(f"with its {len(pieces):,} pieces no such model has {classes:,} classes.")
    numbering = fitting[0] if fitting else AS_STORED
    first = len(numbering.first) - numbering.dropped
    marks = {first + number for number, piece in enumerate(pieces) if piece.is_special}
    names = readable_tokens(numbering.tokens(texts), SENTENCEPIECE)
    return Labels(names, "", special=numbering.special(texts) | {mark for mark in marks if mark >= 0})


def _require_known_numbers(path: Path, labels: Labels, classes: int, settings: TokenizerSettings) -> None:
    """Raise _Doubtful unless it is known how the model numbers pieces, or there is one for each class."""
    if numberings(settings.tokenizer_class, settings.model_type, [], 0):
        return
    kind = settings.tokenizer_class or settings.model_type or "the model"
    if settings.model_type == "marian" or path.name.endswith(_RENUMBERED) or len(labels.names) < classes:
        raise _Doubtful(
            f"how {kind} numbers its pieces is not known. If as in the file, pass labels= (--labels "
            f"{path.name})."
        )


def _with_languages(labels: Labels, settings: TokenizerSettings) -> Labels:
    languages = languages_behind(settings.tokenizer_class, settings.model_type, settings.language_codes)
    if any(language in labels.names for language in languages):
        return labels
    behind = range(len(labels.names), len(labels.names) + len(languages))
    return replace(labels, names=(*labels.names, *languages), special=labels.special | set(behind))


def _with_added(labels: Labels, settings: TokenizerSettings, classes: int) -> Labels:
    """The labels with what the files beside add to them; raises _Doubtful where they contradict."""
    names = dict(enumerate(labels.names))
    for number, token in settings.added:
        known = names.get(number, unused(number))
        if labels.source != TOKENIZER and number < classes:
            if known != unused(number) and _spaced(known) != _spaced(token):
                raise _Doubtful(f"it calls class {number} {known!r}, the tokenizer's settings {token!r}.")
            names[number] = readable_token(token, PLAIN)
    listed = tuple(names.get(number, unused(number)) for number in range(max(names) + 1))
    marks = {_spaced(token) for token in settings.special} - {""}
    special = {number for number, name in enumerate(listed) if _spaced(name) in marks}
    return replace(labels, names=listed, special=labels.special | special)


def _spaced(token: str) -> str:
    """A token without the spaces around it, however they are written."""
    return token.replace("▁", " ").strip(" ")


def _named(tokens: list[str]) -> Labels:
    return Labels(readable_tokens(tokens, guess_kind(tokens)), "")


_READERS: dict[str, Callable[[str, str, int], Labels]] = {
    ".json": _from_json,
    ".yml": _from_yaml,
    ".yaml": _from_yaml,
}
