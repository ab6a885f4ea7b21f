"""Small .skops archives, as `skops.io.dump` writes them: a description in JSON and the arrays it names."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES, FEATURES = 5, 4


class Archive:
    """Nodes of the description; arrays are put into the archive as they are described."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}

    def array(self, values: NDArray[Any]) -> dict[str, Any]:
        stream = io.BytesIO()
        np.save(stream, values, allow_pickle=False)
        name = f"{100 + len(self.members)}.npy"
        self.members[name] = stream.getvalue()
        return node("numpy.ndarray", "NdArrayNode", type="numpy", file=name, __id__=100 + len(self.members))

    def save(self, path: Path, root: dict[str, Any]) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in self.members.items():
                archive.writestr(name, data)
            archive.writestr("schema.json", json.dumps({**root, "protocol": 2, "_skops_version": "0.16.0"}))
        return path


def node(kind: str, loader: str, **more: Any) -> dict[str, Any]:
    module, _, name = kind.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": loader, **more}


def value(content: Any) -> dict[str, Any]:
    return node("builtins.str", "JsonNode", content=json.dumps(content), is_json=True)


def items(*each: dict[str, Any], loader: str = "ListNode") -> dict[str, Any]:
    return node("builtins.list", loader, content=list(each))


def described(kind: str, **attributes: dict[str, Any]) -> dict[str, Any]:
    return node(kind, "ObjectNode", content=node("builtins.dict", "DictNode", content=attributes))


def weights(rows: int = CLASSES, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(rows, FEATURES)).astype(dtype), rng.normal(size=rows).astype(dtype)


NAMES = np.array(list("abcde"))
LOGISTIC = "sklearn.linear_model._logistic.LogisticRegression"


def logistic(
    archive: Archive, kind: str = LOGISTIC, names: NDArray[Any] = NAMES, rows: int = CLASSES
) -> dict[str, Any]:
    weight, bias = weights(rows)
    return described(
        kind, classes_=archive.array(names), coef_=archive.array(weight), intercept_=archive.array(bias)
    )


def pipeline(*steps: dict[str, Any]) -> dict[str, Any]:
    pairs = [items(value(f"step {place}"), each, loader="TupleNode") for place, each in enumerate(steps)]
    return described("sklearn.pipeline.Pipeline", steps=items(*pairs))


def network(archive: Archive, *, activation: str = "relu", output: str = "softmax") -> dict[str, Any]:
    weight, bias = weights()
    return described(
        "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
        activation=value(activation), out_activation_=value(output), classes_=archive.array(NAMES),
        coefs_=items(archive.array(np.eye(FEATURES)), archive.array(np.ascontiguousarray(weight.T))),
        intercepts_=items(archive.array(np.ones(FEATURES)), archive.array(bias)),
    )  # fmt: skip
