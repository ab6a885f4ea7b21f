"""The layout of fastText's model files, .bin and .ftz: where the matrices are and what the dictionary says.

A file is a signature, the training arguments, the dictionary, the input matrix and the output matrix, one
after the other, as fastText's own `saveModel` writes them. Every declared size is compared with the bytes
that are there before it is believed; no matrix is read before somebody asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.binary_file import BinaryReader, mapped, read_array

_MAGIC = 793712314
# 11 and 12 differ in how words are cut into n-grams, not in the layout; earlier files had no signature.
_VERSIONS = (11, 12)
_SUPERVISED = 3
# fastText's own limit (MAX_VOCAB_SIZE).
_MOST_ENTRIES = 30_000_000
# A zero, an int64 that says how often the entry occurs, one byte for word or label.
_AFTER_NAME = 1 + 8 + 1
# A code is one byte, so each part of a quantised vector has as many centroids.
_CENTROIDS = 256
DAMAGED = "The file is cut short or damaged; fetch it again."


@dataclass(frozen=True)
class Arguments:
    """How the model was trained, as far as it decides what a prediction is."""

    dim: int
    word_ngrams: int
    loss: int
    is_classifier: bool
    shortest_ngram: int
    longest_ngram: int


@dataclass(frozen=True)
class Dense:
    """A matrix of float32 at an offset of the file."""

    rows: int
    columns: int
    start: int

    @property
    def dtype(self) -> str:
        return "float32"

    @property
    def stored_bytes(self) -> int:
        return 4 * self.rows * self.columns

    def read(self, path: Path) -> NDArray[Any]:
        return read_array(path, "<f4", self.start, (self.rows, self.columns), DAMAGED)


@dataclass(frozen=True)
class Quantised:
    """A matrix whose rows are cut into parts of `width` features; each part is the number of a centroid.

    With `norms` (offsets of one code a row and of its centroids) rows are also scaled by a quantised norm.
    """

    rows: int
    columns: int
    width: int
    codes: int
    centroids: int
    norms: tuple[int, int] | None

    @property
    def parts(self) -> int:
        return -(-self.columns // self.width)

    @property
    def dtype(self) -> str:
        return f"product-quantised, {self.width} features a byte" + (", norms apart" if self.norms else "")

    @property
    def stored_bytes(self) -> int:
        return self.rows * self.parts

    def read(self, path: Path) -> NDArray[Any]:
        # A product of two float32 has at most 48 significant bits: float64 holds it exactly.
        weight = np.empty((self.rows, self.columns), np.float64 if self.norms else np.float32)
        codes = read_array(path, "u1", self.codes, (self.rows, self.parts), DAMAGED)
        centroids = read_array(path, "<f4", self.centroids, (_CENTROIDS * self.columns,), DAMAGED)
        for part in range(self.parts):
            first = part * self.width
            last = min(first + self.width, self.columns)
            table = centroids[_CENTROIDS * first : _CENTROIDS * last].reshape(_CENTROIDS, last - first)
            with np.errstate(invalid="ignore"):  # NaN is refused where a Head is made
                weight[:, first:last] = table[codes[:, part]]
        if self.norms:
            row_codes = read_array(path, "u1", self.norms[0], (self.rows,), DAMAGED)
            with np.errstate(invalid="ignore"):
                weight *= read_array(path, "<f4", self.norms[1], (_CENTROIDS,), DAMAGED)[
                    row_codes, np.newaxis
                ]
        return weight


Matrix = Dense | Quantised


@dataclass(frozen=True)
class FastTextFile:
    """`names` are those of the output matrix's rows: labels, or words where the model is not a classifier."""

    arguments: Arguments
    names: tuple[str, ...]
    input: Matrix
    output: Matrix


def parse(path: Path) -> FastTextFile:
    """What a fastText file holds; raises LoadError when it is none, cut short or damaged."""
    with mapped(path, "a fastText model") as data:
        return _parse(_Reader(data, DAMAGED))


class _Reader(BinaryReader):
    """Reads numbers, flags and entries of the dictionary."""

    def flag(self, what: str) -> bool:
        (value,) = self.numbers("B", what)
        if value > 1:
            raise LoadError(f"{what} is {value}, expected 0 or 1. {DAMAGED}")
        return bool(value)

    def entry(self) -> tuple[slice, int]:
        """Where an entry of the dictionary has its name, and its kind: a text, a zero, a count, one byte."""
        start = self.position
        end = self.data.find(b"\0", start)
        if end < 0 or end + _AFTER_NAME > len(self.data):
            raise LoadError(f"an entry of the dictionary has no end. {DAMAGED}")
        self.position = end + _AFTER_NAME
        return slice(start, end), self.data[self.position - 1]

    def text(self, place: slice) -> str:
        return self.data[place].decode(errors="backslashreplace")


def _parse(reader: _Reader) -> FastTextFile:
    _require_signature(reader)
    arguments = _read_arguments(reader)
    names = _read_dictionary(reader, arguments)
    is_quantised = reader.flag("the flag of the input matrix")
    inputs = _read_matrix(reader, is_quantised, "the input matrix", arguments)
    # fastText quantises the output matrix only together with the input matrix, and ignores this flag alone.
    is_quantised &= reader.flag("the flag of the output matrix")
    output = _read_matrix(reader, is_quantised, "the output matrix", arguments)
    if len(names) != output.rows:
        raise LoadError(f"the output matrix has {output.rows} rows for {len(names)} names. {DAMAGED}")
    return FastTextFile(arguments, names, inputs, output)


def _require_signature(reader: _Reader) -> None:
    magic, version = reader.numbers("ii", "the signature")
    if magic != _MAGIC:
        raise LoadError(
            f"is not a fastText model: it begins with {magic}, expected {_MAGIC}. Text files of word vectors "
            "(.vec) and models from before 2017 can't be read."
        )
    if version not in _VERSIONS:
        raise LoadError(
            f"is a fastText model of version {version}; known are 11 and 12. Save it again with fastText 0.9."
        )


def _read_arguments(reader: _Reader) -> Arguments:
    dim, _, _, _, _, word_ngrams, loss, model, _, shortest, longest, _, _ = reader.numbers(
        "12id", "the training arguments"
    )
    return Arguments(dim, word_ngrams, loss, model == _SUPERVISED, shortest, longest)


def _read_dictionary(reader: _Reader, arguments: Arguments) -> tuple[str, ...]:
    size, words, labels, _, pruned = reader.numbers("iiiqq", "the dictionary")
    if min(words, labels) < 0 or not words + labels == size <= _MOST_ENTRIES:
        raise LoadError(
            f"the dictionary declares {size} entries, {words} words and {labels} labels (fastText's limit: "
            f"{_MOST_ENTRIES}). {DAMAGED}"
        )
    named = range(words, size) if arguments.is_classifier else range(words)  # labels follow the words
    names = []
    for number in range(size):
        place, is_label = reader.entry()
        if is_label != (number >= words):
            raise LoadError(f"entry {number} of the dictionary is of the wrong kind, {is_label}. {DAMAGED}")
        if number in named:
            names.append(reader.text(place))
    # Where the n-grams of a pruned dictionary are in the input matrix; -1 if it is not pruned.
    reader.skip(8 * max(pruned, 0), "the index of pruned n-grams")
    return tuple(names)


def _read_matrix(reader: _Reader, is_quantised: bool, what: str, arguments: Arguments) -> Matrix:
    matrix = _read_quantised(reader, what) if is_quantised else _read_dense(reader, what)
    if matrix.columns != arguments.dim:
        raise LoadError(f"{what} has {matrix.columns} columns for {arguments.dim} features. {DAMAGED}")
    return matrix


def _read_dense(reader: _Reader, what: str) -> Dense:
    rows, columns = _read_shape(reader, what)
    return Dense(rows, columns, reader.skip(4 * rows * columns, what))


def _read_quantised(reader: _Reader, what: str) -> Quantised:
    has_norms = reader.flag(f"the flag of {what}'s norms")
    rows, columns = _read_shape(reader, what)
    (code_bytes,) = reader.numbers("i", what)
    codes = reader.skip(code_bytes, what)
    width, centroids = _read_quantiser(reader, what, columns)
    norms = None
    if has_norms:
        norm_codes = reader.skip(rows, f"{what}'s norms")
        norms = norm_codes, _read_quantiser(reader, f"{what}'s norms", 1)[1]
    matrix = Quantised(rows, columns, width, codes, centroids, norms)
    if code_bytes != matrix.stored_bytes:
        raise LoadError(f"{what} has {code_bytes} codes, expected {rows} × {matrix.parts}. {DAMAGED}")
    return matrix


def _read_quantiser(reader: _Reader, what: str, columns: int) -> tuple[int, int]:
    """How many features share a code, and the offset of the centroids."""
    dim, parts, width, last_width = reader.numbers("4i", f"{what}'s quantiser")
    if dim != columns or width < 1 or parts != -(-dim // width) or last_width != dim - (parts - 1) * width:
        raise LoadError(
            f"{what}'s quantiser has {parts} parts of {width} features, the last of {last_width}, for "
            f"{columns} columns. {DAMAGED}"
        )
    return width, reader.skip(4 * _CENTROIDS * dim, f"{what}'s centroids")


def _read_shape(reader: _Reader, what: str) -> tuple[int, int]:
    rows, columns = reader.numbers("qq", what)
    if rows < 1 or columns < 1:
        raise LoadError(f"{what} is declared as {rows} × {columns}. {DAMAGED}")
    return rows, columns
