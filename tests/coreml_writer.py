"""Small Core ML models: packages of a program with its weights beside it, and neural networks in one file."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow_writer import delimited, number

CLASSES, FEATURES = 6, 4
TYPES = {"bool": 1, "text": 2, "float16": 10, "float32": 11, "int32": 23}
BLOBS = {"float16": 1, "float32": 2, "uint8": 3}


def type_of(dtype: str, shape: Sequence[int]) -> bytes:
    """A ValueType; −1 is a length that is not known."""
    lengths = (delimited(1, number(1, each)) if each >= 0 else delimited(2, b"") for each in shape)
    return delimited(1, number(1, TYPES[dtype]) + b"".join(delimited(3, each) for each in lengths))


def named(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    return delimited(1, name) + delimited(2, type_of(dtype, shape))


def immediate(value: Any) -> bytes:
    """A value that stands in the program: numbers, truth values, a text, an array or a list of texts."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return delimited(3, delimited(3, b"".join(delimited(1, immediate(each)) for each in value)))
    if isinstance(value, str):
        kind, dtype, shape = delimited(4, delimited(1, value)), "text", ()
    elif isinstance(value, bool):
        kind, dtype, shape = delimited(3, delimited(1, bytes([value]))), "bool", ()
    elif isinstance(value, np.ndarray):
        dtype, shape = value.dtype.name, value.shape
        kind = delimited(1 if dtype == "float32" else 7, delimited(1, value.tobytes()))
    elif isinstance(value, float):
        kind, dtype, shape = delimited(1, delimited(1, struct.pack("<f", value))), "float32", ()
    else:
        numbers = [value] if isinstance(value, int) else value
        dtype, shape = "int32", () if isinstance(value, int) else (len(numbers),)
        packed = b"".join(number(1, each)[1:] for each in numbers)
        kind = delimited(2, delimited(1, packed))
    return delimited(2, type_of(dtype, shape)) + delimited(3, delimited(1, kind))


@dataclass
class Package:
    """Operations are added one after the other; each gives the name of its first output."""

    operations: list[bytes] = field(default_factory=list)
    weights: bytes = bytes(64)
    outputs: Sequence[str] = ()
    dtype: str = "float32"
    kind: int = 502

    def blob(self, values: NDArray[Any], mark: int = 0xDEADBEEF) -> int:
        """The values behind their entry; where that is."""
        offset, raw = len(self.weights), values.tobytes()
        entry = struct.pack("<IIQQ", mark, BLOBS[values.dtype.name], len(raw), offset + 64)
        self.weights += entry.ljust(64, b"\0") + raw + bytes(-len(raw) % 64)
        return offset

    def constant(self, name: str, values: NDArray[Any], **more: Any) -> str:
        place = delimited(1, "@model_path/weights/weight.bin") + number(2, self.blob(values, **more))
        value = delimited(2, type_of(values.dtype.name, values.shape)) + delimited(5, place)
        self.operations.append(
            delimited(1, "const")
            + delimited(3, named(name, values.dtype.name, values.shape))
            + delimited(5, delimited(1, "val") + delimited(2, value))
        )
        return name

    def add(
        self, kind: str, name: str, shape: Sequence[int], inputs: Mapping[str, Any], dtype: str = ""
    ) -> str:
        """An operation; an input is a name, a value in a list of one, or, in a tuple, both."""
        arguments = []
        for key, value in inputs.items():
            binding = delimited(1, value) if isinstance(value, str) else delimited(2, immediate(value[-1]))
            binding += delimited(1, value[0]) if isinstance(value, tuple) else b""
            arguments.append(delimited(1, key) + delimited(2, delimited(1, binding)))
        self.operations.append(
            delimited(1, kind)
            + b"".join(delimited(2, each) for each in arguments)
            + delimited(3, named(name, dtype or self.dtype, shape))
        )
        return name

    def model(self, given: Sequence[int] = (-1, FEATURES)) -> bytes:
        block = b"".join(delimited(2, each) for each in self.outputs)
        block += b"".join(delimited(3, each) for each in self.operations)
        function = delimited(1, named("x", "float32", given)) + delimited(2, "CoreML5")
        function += delimited(3, delimited(1, "CoreML5") + delimited(2, block))
        program = number(1, 1) + delimited(2, delimited(1, "main") + delimited(2, function))
        return number(1, 6) + delimited(self.kind, program)

    def save(self, folder: Path, given: Sequence[int] = (-1, FEATURES)) -> Path:
        package = folder / "model.mlpackage"
        inside = package / "Data" / "com.apple.CoreML"
        (inside / "weights").mkdir(parents=True)
        (inside / "model.mlmodel").write_bytes(self.model(given))
        (inside / "weights" / "weight.bin").write_bytes(self.weights)
        (package / "Manifest.json").write_text("{}", encoding="utf-8")
        return package


def weights(dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[Any]]:
    """A weight (classes × features) and a bias."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(CLASSES, FEATURES)).astype(dtype), rng.normal(size=CLASSES).astype(dtype)


def classifier(dtype: str = "float32", before: str = "relu") -> Package:
    """An activation, a linear layer with its bias in the program, a softmax."""
    package = Package(outputs=["p"], dtype=dtype)
    weight, bias = weights(dtype)
    package.constant("w", weight)
    package.add(before, "h", (-1, FEATURES), {"x": "x"})
    package.add("linear", "z", (-1, CLASSES), {"x": "h", "weight": "w", "bias": [bias]})
    package.add("softmax", "p", (-1, CLASSES), {"x": "z", "axis": [-1]})
    return package


# ---------------------------------------------------------------------- neural networks

KINDS = {
    **{"convolution": 100, "pooling": 120, "activation": 130, "innerProduct": 140, "softmax": 175},
    **{"bias": 250, "flatten": 301, "biDirectionalLSTM": 430, "custom": 500, "softmaxND": 950, "slice": 350},
}
ACTIVATIONS = {"linear": 5, "relu": 10, "tanh": 30, "sigmoid": 40}


def floats(values: NDArray[Any]) -> bytes:
    """WeightParams of float32 or float16."""
    return delimited(1 if values.dtype == np.float32 else 2, values.tobytes())


def activation(kind: str) -> bytes:
    return delimited(ACTIVATIONS[kind], b"")


@dataclass
class NeuralNetwork:
    """Layers are added one after the other."""

    layers: list[bytes] = field(default_factory=list)
    labels: Sequence[str] = ()
    scores: str = ""
    is_exact: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    output: str = "p"

    def add(self, kind: str, source: str, output: str, fields: bytes = b"", rank: int = 0) -> str:
        layer = delimited(1, output) + delimited(2, source) + delimited(3, output)
        layer += delimited(5, number(1, rank)) if rank else b""
        self.layers.append(layer + delimited(KINDS[kind], fields))
        return output

    def product(self, source: str, output: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        rows, columns = weight.shape
        fields = number(1, columns) + number(2, rows) + number(10, 1)
        return self.add(
            "innerProduct",
            source,
            output,
            fields + delimited(20, floats(weight)) + delimited(21, floats(bias)),
        )

    def convolution(self, source: str, output: str, weight: NDArray[Any], fields: bytes = b"") -> str:
        rows, columns = weight.shape
        start = number(1, rows) + number(2, columns) + number(20, 1) + number(20, 1)
        return self.add("convolution", source, output, start + fields + delimited(90, floats(weight)))

    def model(self, given: Sequence[int] = (FEATURES,)) -> bytes:
        array = delimited(5, b"".join(number(1, each) for each in given))
        description = delimited(1, delimited(1, "x") + delimited(3, array))
        description += delimited(10, delimited(1, self.output))
        entries = (delimited(1, key) + delimited(2, value) for key, value in self.metadata.items())
        description += delimited(100, b"".join(delimited(100, each) for each in entries))
        network = b"".join(delimited(1, each) for each in self.layers) + number(5, int(self.is_exact))
        if self.labels:
            network += delimited(100, b"".join(delimited(1, each) for each in self.labels))
        network += delimited(200, self.scores) if self.scores else b""
        return number(1, 4) + delimited(2, description) + delimited(403 if self.labels else 500, network)

    def save(self, folder: Path, given: Sequence[int] = (FEATURES,)) -> Path:
        path = folder / "model.mlmodel"
        path.write_bytes(self.model(given))
        return path


def dense_network(dtype: str = "float32", **more: Any) -> NeuralNetwork:
    """A ReLU, an inner product, a softmax over the channels."""
    network = NeuralNetwork(**more)
    network.add("activation", "x", "h", activation("relu"))
    network.product("h", "z", *weights(dtype))
    network.add("softmax", "z", "p")
    return network
