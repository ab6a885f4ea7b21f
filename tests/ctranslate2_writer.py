"""CTranslate2's model.bin, as its Python `ModelSpec._serialize` writes it; shares nothing with our reader."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


@dataclass(frozen=True)
class Model:
    """`variables` are pairs of a name and an array, in the file's order; `aliases` of a name and another."""

    variables: Sequence[tuple[str, NDArray[Any]]]
    aliases: Sequence[tuple[str, str]] = ()
    version: int = 6
    specification: str = "TransformerSpec"
    revision: int = 7

    def data(self) -> bytes:
        out = struct.pack("<I", self.version)
        if self.version >= 2:
            out += text(self.specification) + struct.pack("<I", self.revision)
        out += struct.pack("<I", len(self.variables))
        for name, array in self.variables:
            out += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
            if self.version >= 4:
                out += struct.pack("<BI", TYPES.index(array.dtype.name), array.nbytes)
            else:
                out += struct.pack("<BI", array.itemsize, array.size)
            out += np.ascontiguousarray(array).tobytes()
        if self.version >= 3:
            out += struct.pack("<I", len(self.aliases))
            out += b"".join(text(alias) + text(name) for alias, name in self.aliases)
        return out

    def save(self, folder: Path, **beside: object) -> Path:
        """The path of model.bin; `beside` are JSON files in the same folder, without their suffix."""
        for stem, value in beside.items():
            (folder / f"{stem}.json").write_text(json.dumps(value), encoding="utf-8")
        path = folder / "model.bin"
        path.write_bytes(self.data())
        return path
