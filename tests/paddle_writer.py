"""Small PaddlePaddle models, written byte by byte: a ProgramDesc, and the tensors beside it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.models.protobuf import varint

CLASSES, FEATURES = 6, 4
LOD_TENSOR, FEED, FETCH = 7, 9, 10
TYPES = {"float16": 4, "float32": 5, "float64": 6, "int8": 21, "bfloat16": 22}
Slots = Mapping[str, str | Sequence[str]]


def number(place: int, value: int) -> bytes:
    return varint(place << 3) + varint(value % 2**64)


def delimited(place: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(data)) + data


def real(place: int, value: float) -> bytes:
    return varint(place << 3 | 5) + struct.pack("<f", value)


def tensor_desc(dtype: str, shape: Sequence[int]) -> bytes:
    return number(1, TYPES[dtype]) + b"".join(number(2, length) for length in shape)


def variable(name: str, type_: bytes, *, persistable: bool = False) -> bytes:
    return delimited(1, name) + delimited(2, type_) + (number(3, 1) if persistable else b"")


def tensor_variable(
    name: str, shape: Sequence[int], dtype: str = "float32", *, persistable: bool = False
) -> bytes:
    lod_tensor = delimited(1, tensor_desc(dtype, shape))
    return variable(name, number(1, LOD_TENSOR) + delimited(3, lod_tensor), persistable=persistable)


def attribute(name: str, value: Any) -> bytes:
    if isinstance(value, bool):
        type_, content = 6, number(10, value)
    elif isinstance(value, int):
        type_, content = 0, number(3, value)
    elif isinstance(value, float):
        type_, content = 1, real(4, value)
    elif isinstance(value, str):
        type_, content = 2, delimited(5, value)
    else:
        type_, content = 3, b"".join(number(6, each) for each in value)
    return delimited(1, name) + number(2, type_) + content


def operation(kind: str, inputs: Slots, outputs: Slots, **attributes: Any) -> bytes:
    parts = [delimited(1, _slot(*each)) for each in inputs.items()]
    parts += [delimited(2, _slot(*each)) for each in outputs.items()]
    parts += [delimited(3, kind)]
    return b"".join(parts + [delimited(4, attribute(*each)) for each in attributes.items()])


def _slot(name: str, variables: str | Sequence[str]) -> bytes:
    names = variables.split() if isinstance(variables, str) else variables
    return delimited(1, name) + b"".join(delimited(2, each) for each in names)


def stream(array: NDArray[Any]) -> bytes:
    """A tensor as it lies in a .pdiparams file."""
    description = tensor_desc(array.dtype.name, array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(description)) + description + array.tobytes()


@dataclass
class Model:
    """A program of one input `x` and one output; operations are added between feed and fetch."""

    parameters: dict[str, NDArray[Any]]
    operations: list[bytes]
    shapes: dict[str, Sequence[int]] = field(default_factory=dict)
    output: str = "y"

    def block(self) -> bytes:
        variables = [variable("feed", number(1, FEED), persistable=True)]
        variables += [variable("fetch", number(1, FETCH), persistable=True)]
        variables += [tensor_variable(name, shape) for name, shape in self.shapes.items()]
        # The order in which a program declares its variables does not matter.
        variables += [
            tensor_variable(name, array.shape, array.dtype.name, persistable=True)
            for name, array in reversed(self.parameters.items())
        ]
        operations = [
            operation("feed", {"X": "feed"}, {"Out": "x"}, col=0),
            *self.operations,
            operation("fetch", {"X": self.output}, {"Out": "fetch"}, col=0),
        ]
        parts = [delimited(3, each) for each in variables] + [delimited(4, each) for each in operations]
        return number(1, 0) + number(2, -1) + b"".join(parts)

    def program(self) -> bytes:
        return delimited(1, self.block()) + delimited(4, number(1, 0))

    def weights(self) -> bytes:
        return b"".join(stream(self.parameters[name]) for name in sorted(self.parameters))

    def save(self, folder: Path) -> Path:
        path = folder / "inference.pdmodel"
        path.write_bytes(self.program())
        path.with_suffix(".pdiparams").write_bytes(self.weights())
        return path


def matrix(shape: tuple[int, ...], seed: int = 5) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def classifier(rank: int = 2, *before: bytes, features: str = "x", **shapes: Sequence[int]) -> Model:
    """x W + b and a softmax, as PaddleOCR's recogniser ends, behind operations that give `features`."""
    declared = [-1] * (rank - 1)
    return Model(
        {"w": matrix((FEATURES, CLASSES)), "b": matrix((CLASSES,), 6), "a": matrix((3,), 7)},
        [
            *before,
            operation("matmul_v2", {"X": features, "Y": "w"}, {"Out": "xw"}, trans_x=False, trans_y=False),
            operation("elementwise_add", {"X": "xw", "Y": "b"}, {"Out": "z"}, axis=rank - 1),
            operation("softmax", {"X": "z"}, {"Out": "y"}, axis=rank - 1),
        ],
        {
            "x": [*declared, FEATURES],
            **{name: [*declared, CLASSES] for name in ("xw", "z", "y")},
            **shapes,
        },
    )
