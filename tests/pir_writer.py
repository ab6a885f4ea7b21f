"""Small programs of PaddlePaddle 3: inference.json and the parameters beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paddle_writer import CLASSES, FEATURES, matrix, stream

TYPES = {"float32": "0.t_f32", "float16": "0.t_f16", "int64": "0.t_i64"}


def tensor(number: int, shape: Sequence[int], dtype: str = "float32") -> dict[str, Any]:
    return {"%": number, "TT": {"#": "0.t_dtensor", "D": [{"#": TYPES[dtype]}, list(shape), "NCHW", [], 0]}}


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"#": "0.a_bool", "D": value}
    if isinstance(value, int):
        return {"#": "0.a_i32", "D": value}
    if isinstance(value, float):
        return {"#": "0.a_f32", "D": value}
    if isinstance(value, str):
        return {"#": "0.a_str", "D": value}
    return {"#": "0.a_array", "D": [attribute(each) for each in value]}


@dataclass
class PirModel:
    """Operations are added one after the other; each gives the number of its only value."""

    operations: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    made: int = 0

    def parameter(self, name: str, values: NDArray[Any]) -> int:
        self.made += 1
        self.parameters[name] = values
        declared = tensor(self.made, values.shape, values.dtype.name)
        self.operations.append({"#": "p", "A": [0, 1, 1, name], "DA": [], "O": declared, "OA": [1, 0, 1]})
        return self.made

    def add(self, kind: str, inputs: Sequence[int], shape: Sequence[int], /, **attributes: Any) -> int:
        self.made += 1
        self.operations.append(
            {
                "#": kind if kind.startswith("0.") else f"1.{kind}",
                "A": [{"AT": attribute(value), "N": name} for name, value in attributes.items()],
                "I": [{"%": each} for each in inputs],
                "O": [tensor(self.made, shape, "int64" if kind == "full_int_array" else "float32")],
            }
        )
        return self.made

    def axes(self, *values: int) -> int:
        return self.add("full_int_array", [], [len(values)], value=list(values))

    def text(self) -> str:
        block = {"#": "block_0", "args": [], "ops": self.operations}
        program = {"regions": [{"#": "region_0", "blocks": [block]}]}
        base = {"magic": "pir", "trainable": True, "version": 4}
        return json.dumps({"base_code": base, "program": program}, separators=(",", ":"))

    def save(self, folder: Path) -> Path:
        path = folder / "inference.json"
        path.write_text(self.text(), "utf8")
        weights = b"".join(stream(self.parameters[name]) for name in sorted(self.parameters))
        path.with_suffix(".pdiparams").write_bytes(weights)
        return path


def ended(model: PirModel, features: int, rank: int = 2) -> PirModel:
    """The model with x W + b, a softmax and what fetches it."""
    weight = model.parameter("w", matrix((FEATURES, CLASSES)))
    bias = model.parameter("b", matrix((CLASSES,), 6))
    shape = [*[-1] * (rank - 1), CLASSES]
    product = model.add("matmul", [features, weight], shape, transpose_x=False, transpose_y=False)
    logits = model.add("add", [product, bias], shape)
    model.add("fetch", [model.add("softmax", [logits], shape, axis=rank - 1)], shape, name="fetch_0", col=0)
    return model


def classifier(before: str = "relu") -> PirModel:
    model = PirModel()
    model.parameter("a", np.ones(3, np.float32))
    x = model.add("data", [], [-1, FEATURES], name="x")
    return ended(model, model.add(before, [x], [-1, FEATURES]))
