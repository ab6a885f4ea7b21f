"""Tesseract's .traineddata files, as `TessdataManager::Serialize` and the layers' `Serialize` write them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPONENTS = 24
LSTM, UNICHARSET, RECODER = 17, 21, 22


def text(value: str) -> bytes:
    return struct.pack("<I", len(value.encode())) + value.encode()


def layer(
    kind: str, content: bytes, *, inputs: int = 4, outputs: int = 4, flags: int = 192, training: int = 0
) -> bytes:
    head = b"\0" + text(kind) + struct.pack("<bbiiii", training, 0, flags, inputs, outputs, 9)
    return head + text(f"my {kind}") + content


def matrix(values: NDArray[Any], scales: NDArray[np.float64] | None = None, *, mode: int = 128) -> bytes:
    """int8 values with a scale for each row, or float64 ones."""
    mode |= 4 | (scales is not None)
    out = struct.pack("<Bii", mode, *values.shape) + bytes(values.itemsize) + values.tobytes()
    return out if scales is None else out + struct.pack("<I", len(scales)) + scales.tobytes()


def within(kind: str, *inside: bytes, outputs: int = 4) -> bytes:
    rates = struct.pack(f"<I{len(inside)}f", len(inside), *[0.5] * len(inside))
    return layer(kind, struct.pack("<I", len(inside)) + b"".join(inside) + rates, outputs=outputs)


def lstm(kind: str = "LSTM", *, inputs: int = 4, cells: int = 3, is_2d: bool = False) -> bytes:
    width = inputs + (2 if is_2d else 1) * cells
    gate = matrix(np.zeros((cells, width + 1), np.int8), np.ones(cells + 5))
    return layer(kind, struct.pack("<i", width) + (5 if is_2d else 4) * gate, inputs=inputs, outputs=cells)


INPUT = layer("Input", struct.pack("<5i", 1, 36, 0, 1, 0))
MAXPOOL = layer("Maxpool", struct.pack("<2i", 3, 3))


def codes(*each: Sequence[int]) -> bytes:
    return struct.pack("<I", len(each)) + b"".join(
        struct.pack(f"<bI{len(code)}i", 1, len(code), *code) for code in each
    )


def characters(*names: str) -> bytes:
    lines = [f"{name} 5 0,255,0,255,0,0,0,0,0,0 Latin 3 0 3 {name}\t# {name}" for name in names]
    return "\n".join([str(len(names)), *lines, ""]).encode()


@dataclass(frozen=True)
class Model:
    """`before` are the layers that come before the softmax; `null` is the output for no character.

    `is_inside`: characters and codes are stored inside the network, as in files of 4.00 alpha.
    """

    softmax: bytes
    before: Sequence[bytes] = (INPUT, lstm())
    characters: bytes = b""
    codes: bytes = b""
    null: int = 0
    flags: int = 64
    is_inside: bool = False
    others: dict[int, bytes] = field(default_factory=dict)

    def data(self) -> bytes:
        network = within("Series", *self.before, self.softmax)
        settings = text("[1,36,0,1 Lfx3 O1c5]") + struct.pack(
            "<4i3f", self.flags, 7, 8, self.null, 0.9, 0.1, 0.5
        )
        if self.is_inside:
            return assemble({LSTM: network + self.characters + settings + self.codes, **self.others})
        return assemble(
            {LSTM: network + settings, UNICHARSET: self.characters, RECODER: self.codes, **self.others}
        )

    def save(self, folder: Path) -> Path:
        path = folder / "xyz.traineddata"
        path.write_bytes(self.data())
        return path


def assemble(components: dict[int, bytes], *, shift: int = 0) -> bytes:
    """A file of these components; `shift` makes the table lie about where they begin."""
    offset = 4 + 8 * COMPONENTS
    table, content = [], b""
    for number in range(COMPONENTS):
        part = components.get(number, b"")
        table.append(offset + len(content) + shift if part else -1)
        content += part
    return struct.pack(f"<I{COMPONENTS}q", COMPONENTS, *table) + content
