"""Word vectors as word2vec, gensim (`save_word2vec_format`) and fastText (.vec) write them, binary or as
text.

The first line has the number of words and of features. Then each word is followed by a space and its vector:
float32 in binary, decimal numbers up to the end of the line in text, which gensim rounds to float32 as well.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import Finding, Labels, TensorInfo
from argmaxable.models.item_vectors import ItemVectors, Metric, finding_of_items

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

HEADER = rb"([1-9]\d{0,9}) ([1-9]\d{0,6})\r?\n"
_LONGEST_WORD = 10_000
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DAMAGED = "The file is cut short or damaged; save it again."


def find(path: Path, options: ReadOptions) -> Finding:
    """The vectors as a head with a class for each word; raises LoadError."""
    if options.tensor is not None:
        raise LoadError("a file of word vectors has one matrix: leave out tensor= (--tensor).")
    if not path.stat().st_size:  # mmap refuses empty files
        raise LoadError(f"is empty. {_DAMAGED}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        header = re.match(HEADER, data)
        if header is None:
            raise LoadError("is not a file of word vectors: its first line should have two numbers.")
        count, size = int(header[1]), int(header[2])
        kind = "text" if _is_text(data, header.end(), size) else "binary"
        words, rows = (_read_text if kind == "text" else _read_binary)(data, header.end(), count, size)
        if kind == "text" and _binary_words(data, header.end(), count, size) == words:
            raise ambiguous(
                "its numbers are text, and its bytes float32 numbers too", "Save it again as .npz."
            )
    weight = TensorInfo("vectors", (count, size), "float32")
    labels = Labels(tuple(words), "the words of the file")
    items = ItemVectors("word2vec", weight, f"word vectors, {kind}", lambda: rows, labels)
    return finding_of_items(items, Metric.INNER_PRODUCT, options)


def _is_text(data: mmap.mmap, start: int, size: int) -> bool:
    """Whether the first line is a word and decimal numbers. Bytes of floats that look so do not occur."""
    end = data.find(b"\n", start)
    fields = data[start : len(data) if end < 0 else end].rstrip().split(b" ")
    return len(fields) == size + 1 and all(map(_NUMBER.fullmatch, fields[1:]))


def _binary_words(data: mmap.mmap, start: int, count: int, size: int) -> list[str]:
    """The words of a text that is a file of binary vectors too, where its lines have as many bytes."""
    try:
        return _read_binary(data, start, count, size)[0]
    except LoadError:
        return []


def _read_text(data: mmap.mmap, start: int, count: int, size: int) -> tuple[list[str], NDArray[Any]]:
    if count * size > len(data):  # a number takes a digit and a space
        raise LoadError(f"declares {count} × {size} numbers in {len(data)} bytes. {_DAMAGED}")
    words, rows = [], np.empty((count, size), np.float32)
    data.seek(start)
    for number in range(count):
        fields = data.readline().rstrip(b"\r\n ").split(b" ")
        if len(fields) != size + 1 or not all(map(_NUMBER.fullmatch, fields[1:])):
            raise LoadError(f"word {number} is not followed by {size} numbers. {_DAMAGED}")
        words.append(_word(fields[0]))
        with np.errstate(over="ignore"):  # refused where a Head is made
            rows[number] = np.array(list(map(float, fields[1:])))
    if data.read().strip():
        raise LoadError(f"has more than the {count} words that its first line declares. {_DAMAGED}")
    return words, rows


def _read_binary(data: mmap.mmap, start: int, count: int, size: int) -> tuple[list[str], NDArray[Any]]:
    if count * (4 * size + 2) > len(data) - start:
        raise LoadError(f"declares {count} × {size} numbers in {len(data) - start} bytes. {_DAMAGED}")
    words, rows = [], np.empty((count, size), np.float32)
    for number in range(count):
        while data[start : start + 1] in (b"\n", b"\r"):  # word2vec itself ends vectors with a line break
            start += 1
        end = data.find(b" ", start, start + _LONGEST_WORD)
        if end <= start or end + 1 + 4 * size > len(data):
            raise LoadError(f"word {number} is not followed by {size} numbers. {_DAMAGED}")
        words.append(_word(data[start:end]))
        rows[number] = np.frombuffer(data[end + 1 : end + 1 + 4 * size], "<f4")
        start = end + 1 + 4 * size
    if data[start:].strip():
        raise LoadError(f"has bytes after its {count} words. {_DAMAGED}")
    return words, rows


def _word(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
