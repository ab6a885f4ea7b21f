"""fastText's files, written as its C++ `saveModel` does; shares nothing with our reader."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIERARCHICAL, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4
CBOW, SKIPGRAM, SUPERVISED = 1, 2, 3
WORDS = ("</s>", "the", "Katze", "ночь")
LABELS = ("__label__en", "__label__de", "__label__ру", "__label__")


@dataclass(frozen=True)
class Dense:
    values: NDArray[Any]

    quantised = False

    def data(self) -> bytes:
        return struct.pack("<qq", *self.values.shape) + self.values.astype("<f4").tobytes()


@dataclass(frozen=True)
class Quantised:
    """Codes and centroids (one table of 256 × width for each part of a row), optionally codes of norms."""

    codes: NDArray[np.uint8]
    tables: list[NDArray[np.float32]]
    norm_codes: NDArray[np.uint8] | None = None
    norm_table: NDArray[np.float32] = field(default_factory=lambda: np.zeros(256, np.float32))

    quantised = True

    def data(self) -> bytes:
        rows, columns = len(self.codes), sum(table.shape[1] for table in self.tables)
        width, last = self.tables[0].shape[1], self.tables[-1].shape[1]
        out = struct.pack("<?qqi", self.norm_codes is not None, rows, columns, self.codes.size)
        out += self.codes.tobytes() + struct.pack("<4i", columns, len(self.tables), width, last)
        out += b"".join(table.astype("<f4").tobytes() for table in self.tables)
        if self.norm_codes is not None:
            out += self.norm_codes.tobytes() + struct.pack("<4i", 1, 1, 1, 1)
            out += self.norm_table.astype("<f4").tobytes()
        return out

    def row(self, number: int) -> list[float]:
        """What fastText's addcode adds for a row, in exact arithmetic."""
        norm = 1.0 if self.norm_codes is None else float(self.norm_table[self.norm_codes[number]])
        parts = [table[code] for code, table in zip(self.codes[number], self.tables, strict=True)]
        return [norm * float(value) for part in parts for value in part]


@dataclass(frozen=True)
class Model:
    output: Dense | Quantised
    input: Dense | Quantised
    words: tuple[str, ...] = WORDS
    labels: tuple[str, ...] = LABELS
    loss: int = SOFTMAX
    model: int = SUPERVISED
    version: int = 12
    word_ngrams: int = 1
    ngrams: tuple[int, int] = (0, 0)
    pruned: tuple[tuple[int, int], ...] | None = None
    dim: int = 3

    def data(self) -> bytes:
        shortest, longest = self.ngrams
        settings = (
            self.dim,
            5,
            5,
            1,
            5,
            self.word_ngrams,
            self.loss,
            self.model,
            2000,
            shortest,
            longest,
            100,
        )
        out = struct.pack("<ii12id", 793712314, self.version, *settings, 1e-4)
        sizes = (len(self.words) + len(self.labels), len(self.words), len(self.labels))
        out += struct.pack("<3iqq", *sizes, 1234, -1 if self.pruned is None else len(self.pruned))
        for kind, names in enumerate((self.words, self.labels)):
            out += b"".join(name.encode() + b"\0" + struct.pack("<qb", 7, kind) for name in names)
        out += b"".join(struct.pack("<ii", *pair) for pair in self.pruned or ())
        out += struct.pack("<?", self.input.quantised) + self.input.data()
        return out + struct.pack("<?", self.output.quantised) + self.output.data()

    def save(self, path: Path) -> Path:
        path.write_bytes(self.data())
        return path
