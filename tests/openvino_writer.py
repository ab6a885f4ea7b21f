"""Small OpenVINO models: an .xml of layers and edges, and the constants beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

CLASSES, FEATURES = 6, 4
TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "int64": "i64"}
TYPES |= {"uint8": "u8", "int8": "i8"}
# What ports call these types; OpenVINO itself asks for it.
PRECISIONS = {
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "bf16": "BF16",
    "i64": "I64",
    "u8": "U8",
    "i8": "I8",
}


def _port(number: int, shape: Sequence[int], precision: str, names: str = "") -> str:
    lengths = "".join(f"<dim>{length}</dim>" for length in shape)
    named = f" names={quoteattr(names)}" if names else ""
    return f'<port id="{number}" precision="{precision}"{named}>{lengths}</port>'


@dataclass
class Model:
    """Layers are added one after the other; each gives the name of its only output."""

    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    data: bytes = b""
    metadata: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    precisions: dict[str, str] = field(default_factory=dict)
    version: str = "11"

    def input(self, name: str, shape: Sequence[int]) -> str:
        lengths = ",".join("?" if length < 0 else str(length) for length in shape)
        return self.layer("Parameter", name, [], shape, element_type="f32", shape=lengths)

    def constant(self, name: str, values: NDArray[Any]) -> str:
        start, raw = len(self.data), values.tobytes()
        self.data += raw
        return self.layer(
            "Const", name, [], values.shape, element_type=TYPES[values.dtype.name],
            shape=", ".join(map(str, values.shape)), offset=start, size=len(raw),
        )  # fmt: skip

    def integers(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, np.int64))

    def layer(self, kind: str, name: str, inputs: Sequence[str], size: Sequence[int], /, **data: Any) -> str:
        number = len(self.layers)
        for place, source in enumerate(inputs):
            layer, port = self.places[source]
            self.edges.append(
                f'<edge from-layer="{layer}" from-port="{port}" to-layer="{number}" to-port="{place}"/>'
            )
        type_ = data.get("element_type", data.get("destination_type"))
        usual = self.precisions[inputs[0]] if inputs else "FP32"
        precision = self.precisions[name] = PRECISIONS[type_] if type_ else usual
        ports = "".join(
            _port(place, self.shapes[source], self.precisions[source]) for place, source in enumerate(inputs)
        )
        attributes = " ".join(
            f"{key.replace('__', '-')}={quoteattr(str(value))}" for key, value in data.items()
        )
        output = "" if kind == "Result" else f"<output>{_port(len(inputs), size, precision, name)}</output>"
        self.layers.append(
            f'<layer id="{number}" name={quoteattr(name)} type="{kind}" version="opset1">'
            f"<data {attributes}/><input>{ports}</input>{output}</layer>"
        )
        self.shapes[name], self.places[name] = tuple(size), (number, len(inputs))
        return name

    def text(self) -> str:
        metadata = "".join(f"<{key} value={quoteattr(value)}/>" for key, value in self.metadata.items())
        metadata = metadata.replace("\n", "&#10;")
        return (
            f'<?xml version="1.0"?><net name="model" version="{self.version}"><layers>{"".join(self.layers)}'
            f"</layers><edges>{''.join(self.edges)}</edges>"
            f"<rt_info><framework>{metadata}</framework></rt_info></net>"
        )

    def save(self, folder: Path, name: str = "model") -> Path:
        path = folder / f"{name}.xml"
        path.write_text(self.text(), "utf8")
        path.with_suffix(".bin").write_bytes(self.data)
        return path


def weights(dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[Any]]:
    """A weight (classes × features) and a bias."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(CLASSES, FEATURES)).astype(dtype), rng.normal(size=CLASSES).astype(dtype)


def classifier(dtype: Any = np.float32) -> Model:
    """A ReLU, a linear layer and a softmax."""
    model, (weight, bias) = Model(), weights(dtype)
    x = model.layer("ReLU", "relu", [model.input("x", (-1, FEATURES))], (-1, FEATURES))
    return with_head(model, x, model.constant("w", weight), model.constant("b", bias.reshape(1, -1)))


def with_head(model: Model, features: str, weight: str, bias: str, **product: Any) -> Model:
    """The model with its linear layer, softmax and result."""
    shape = (*model.shapes[features][:-1], CLASSES)
    product = {"transpose_a": "false", "transpose_b": "true", **product}
    xw = model.layer("MatMul", "xw", [features, weight], shape, **product)
    z = model.layer("Add", "z", [xw, bias], shape, auto_broadcast="numpy")
    y = model.layer("SoftMax", "y", [z], shape, axis=len(shape) - 1)
    model.layer("Result", "result", [y], ())
    return model
