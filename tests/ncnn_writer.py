"""Small ncnn models: the lines of a .param, and the .bin with the layers' arrays one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES, FEATURES = 6, 4
FLOAT32, FLOAT16, INT8 = 0, 0x01306B47, 0x000D4B38


def tagged(values: NDArray[Any], tag: int | None = None) -> bytes:
    """An array with the four bytes before it that say how it is stored, filled up to four bytes."""
    usual = {"float32": FLOAT32, "float16": FLOAT16, "int8": INT8}[values.dtype.name]
    data = values.tobytes()
    return (usual if tag is None else tag).to_bytes(4, "little") + data + bytes(-len(data) % 4)


@dataclass
class Model:
    """Layers, each with what it reads."""

    lines: list[str] = field(default_factory=list)
    data: bytes = b""

    def layer(
        self, kind: str, name: str, given: Sequence[str], made: Sequence[str], *data: bytes, **parameters: Any
    ) -> str:
        """A layer; its parameters are called _0, _1 and so on, a list's number as ncnn writes it."""
        values = " ".join(
            f"{key.removeprefix('_').replace('m', '-')}={value}" for key, value in parameters.items()
        )
        self.lines.append(f"{kind} {name} {len(given)} {len(made)} {' '.join((*given, *made))} {values}")
        self.data += b"".join(data)
        return made[0]

    def text(self) -> str:
        return f"7767517\n{len(self.lines)} {len(self.lines)}\n" + "\n".join(self.lines) + "\n"

    def save(self, folder: Path) -> Path:
        path = folder / "model.param"
        path.write_text(self.text(), "utf8")
        path.with_suffix(".bin").write_bytes(self.data)
        return path


def weights(dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """A weight (classes × features) and a bias, which is always float32."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(CLASSES, FEATURES)).astype(dtype), rng.normal(size=CLASSES).astype(np.float32)


def body(model: Model, activation: int = 1) -> str:
    """A convolution with an activation built in, and the mean over its positions."""
    kernel = np.ones((FEATURES, 3, 3, 3), np.float32)
    model.layer("Input", "in", [], ["x"], _0=8, _1=8, _2=3)
    model.layer(
        "Convolution", "conv", ["x"], ["c"], tagged(kernel), np.ones(FEATURES, np.float32).tobytes(),
        _0=FEATURES, _1=3, _5=1, _6=kernel.size, _9=activation,
    )  # fmt: skip
    return model.layer("Pooling", "pool", ["c"], ["mean"], _0=1, _4=1)


def classifier(dtype: Any = np.float32, tag: int | None = None, **more: Any) -> Model:
    """That, a linear layer and a softmax."""
    model, (weight, bias) = Model(), weights(dtype)
    body(model)
    model.layer(
        "InnerProduct", "fc", ["mean"], ["logits"], tagged(weight, tag), bias.tobytes(),
        **{"_0": CLASSES, "_1": 1, "_2": weight.size, **more},
    )  # fmt: skip
    model.layer("Softmax", "softmax", ["logits"], ["p"], _0=0, _1=1)
    return model
