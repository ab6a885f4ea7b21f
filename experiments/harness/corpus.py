"""A text as token ids: Penn Treebank or WikiText-2 as they ship, or a toy text made here.

A directory holds the three parts as text (train.txt, ptb.train.txt or wiki.train.tokens, and so on) or as the
Parquet files of a dataset on the hub (train-00000-of-00001.parquet, a row for each line). They are taken as
they are. A text without a training part is cut into disjoint parts: of every ten articles in a row (lines
like " = Title = " begin one) the ninth is validation text and the tenth test text; a text without articles is
cut into ten contiguous blocks of lines in the same way. Perplexities on such parts compare with each other,
not with published ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

END_OF_LINE = "<eos>"
UNKNOWN = "<unk>"

_BLOCKS = 10  # and of as many: the last but one for validation, the last for the test
_TOY_SEED = 10
_TOY_WORDS = 400
_TOY_STATES = 8
_TOY_TOKENS = {"train": 24_000, "valid": 3_000, "test": 3_000}

Tokens = list[str]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Token ids (int64) of three disjoint parts; `words` names the ids, `counts` are the training text's.

    The ids are ordered by count, the most frequent first. The arrays are read-only; `torch.tensor` copies.
    """

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]
    words: tuple[str, ...]
    counts: NDArray[np.int64]


def corpus(text: Path | None, *, vocabulary: int) -> Corpus:
    """The text in a directory (None: the toy text) with the `vocabulary` most frequent words of its training
    part, <unk> among them, which stands for all others; a text with fewer words has fewer ids.

    Raises FileNotFoundError where a directory has no validation or test part, ValueError for a vocabulary
    below 2 and for Parquet files without text.
    """
    if vocabulary < 2:
        raise ValueError(f"A vocabulary of {vocabulary} words: at least 2 are needed, one of them {UNKNOWN}.")
    parts = _toy() if text is None else _read(text)
    words, counts = _vocabulary(parts["train"], vocabulary)
    number = {word: token for token, word in enumerate(words)}
    ids = {name: _ids(tokens, number) for name, tokens in parts.items()}
    return Corpus(**ids, words=words, counts=_read_only(counts))


def _vocabulary(tokens: Tokens, size: int) -> tuple[tuple[str, ...], Sequence[int]]:
    """Words and their counts, most frequent first (equal ones in the order of their letters)."""
    found = Counter(tokens)
    known = sorted(found.keys() - {UNKNOWN}, key=lambda word: (-found[word], word))[: size - 1]
    counts = {word: found[word] for word in known}
    counts[UNKNOWN] = len(tokens) - sum(counts.values())
    words = tuple(sorted(counts, key=lambda word: (-counts[word], word)))
    return words, [counts[word] for word in words]


def _ids(tokens: Tokens, number: dict[str, int]) -> NDArray[np.int64]:
    unknown = number[UNKNOWN]
    return _read_only([number.get(token, unknown) for token in tokens])


def _read_only(values: Sequence[int]) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array


# ---------------------------------------------------------------------- texts on disk


# Endings of the files of a part, the first that are there; a hub's dataset may come in several files.
_FILES = {
    "train": ("train.txt", "train.tokens", "train*.parquet"),
    "valid": ("valid.txt", "valid.tokens", "validation*.parquet"),
    "test": ("test.txt", "test.tokens", "test*.parquet"),
}
_LINE_COLUMNS = ("text", "sentence")  # of WikiText and of Penn Treebank on the hub


def text_files(directory: Path) -> dict[str, list[Path]]:
    """The files of each part, "train" only where there are any; raises FileNotFoundError where another part
    has none."""
    found = {part: _files(directory, patterns) for part, patterns in _FILES.items()}
    for part in ("valid", "test"):
        if not found[part]:
            raise FileNotFoundError(
                f"No {part} part in {directory}: a text has valid.txt and test.txt, and train.txt if you "
                "have it (or wiki.valid.tokens, or validation-00000-of-00001.parquet, and so on)."
            )
    return {part: files for part, files in found.items() if files}


def _files(directory: Path, patterns: Iterable[str]) -> list[Path]:
    for pattern in patterns:
        # Text files may have the corpus's name before the part's: ptb.train.txt, wiki.train.tokens.
        names = (pattern,) if pattern.endswith(".parquet") else (pattern, f"*.{pattern}")
        for name in names:
            if files := sorted(directory.glob(name)):
                return files
    return []


def articles(directory: Path) -> dict[str, int]:
    """How many articles each part of the text has; none where no line begins one."""
    return {part: sum(map(_begins_article, lines)) for part, lines in _parts(directory).items()}


def _read(directory: Path) -> dict[str, Tokens]:
    return {part: _tokens(lines) for part, lines in _parts(directory).items()}


def _parts(directory: Path) -> dict[str, list[str]]:
    """The lines of each part."""
    files = text_files(directory)
    lines = {part: [line for path in paths for line in _lines(path)] for part, paths in files.items()}
    if "train" not in lines:
        lines = _cut([*lines["valid"], *lines["test"]])
    return {part: lines[part] for part in ("train", "valid", "test")}


def _lines(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return _rows(path)
    # Not splitlines, which also cuts at characters that stand inside a line of WikiText.
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def _rows(path: Path) -> list[str]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(f"{path.name}: reading Parquet needs pyarrow: pip install pyarrow.") from error
    table = parquet.read_table(path)
    column = next((name for name in _LINE_COLUMNS if name in table.column_names), None)
    if column is None:
        raise ValueError(
            f"{path.name} has the columns {', '.join(table.column_names)}: lines of text are looked for in "
            f"{' or '.join(_LINE_COLUMNS)}."
        )
    return [line.rstrip("\n") for line in table[column].to_pylist()]


def _tokens(lines: Iterable[str]) -> Tokens:
    """As AWD-LSTM reads them: the words between blanks, and <eos> after every line, empty ones too."""
    return [token for line in lines for token in (*line.split(), END_OF_LINE)]


def _cut(lines: Sequence[str]) -> dict[str, list[str]]:
    """Training, validation and test lines out of one text."""
    starts = [number for number, line in enumerate(lines) if _begins_article(line)]
    if len(starts) < _BLOCKS:
        starts = [len(lines) * block // _BLOCKS for block in range(_BLOCKS)]
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    names = [*["train"] * (_BLOCKS - 2), "valid", "test"]
    # What stands before the first article belongs to it.
    ends = [*starts[1:], len(lines)]
    for block, (start, end) in enumerate(zip([0, *starts[1:]], ends, strict=True)):
        parts[names[block % _BLOCKS]].extend(lines[start:end])
    return parts


def _begins_article(line: str) -> bool:
    """WikiText's titles are ` = Title = `, its sections ` = = Section = = `."""
    words = line.split()
    return len(words) > 2 and words[0] == words[-1] == "=" and words[1] != "=" and words[-2] != "="


# ---------------------------------------------------------------------- the toy text


def _toy() -> dict[str, Tokens]:
    """Zipf's law in each state of a small Markov chain, which prefers other words in each."""
    generator = np.random.default_rng(_TOY_SEED)
    zipf = 1 / np.arange(1, _TOY_WORDS + 1)
    # Each state likes some words ten times as much: what was said before tells something about what follows.
    liked = 10.0 ** generator.integers(0, 2, (_TOY_STATES, _TOY_WORDS))
    speak = zipf * liked / (zipf * liked).sum(axis=1, keepdims=True)
    move = generator.dirichlet(np.full(_TOY_STATES, 0.3), _TOY_STATES)
    return {name: _walk(speak, move, length, generator) for name, length in _TOY_TOKENS.items()}


def _walk(
    speak: NDArray[np.float64], move: NDArray[np.float64], length: int, generator: np.random.Generator
) -> Tokens:
    draws = generator.random((length, 2))
    heard, moved = np.cumsum(speak, axis=1), np.cumsum(move, axis=1)
    tokens, state = [], 0
    for word_draw, move_draw in draws:
        # The sums end at 1 but for rounding: the last entry takes what lies beyond.
        word = min(int(np.searchsorted(heard[state], word_draw)), _TOY_WORDS - 1)
        state = min(int(np.searchsorted(moved[state], move_draw)), _TOY_STATES - 1)
        tokens.append(END_OF_LINE if word == 0 else f"w{word}")
    return tokens
