"""Keras files, made with h5py in every layout that versions of Keras have used."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def listed(layers: Mapping[str, Arrays], config: Any = None, *, names: str = "fixed") -> bytes:
    """An HDF5 file as Keras 1 and 2 write it: layers and weights are listed by name in attributes."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        root = file if config is None else file.create_group("model_weights")
        if config is not None:
            file.attrs["model_config"] = json.dumps(config)
        put_names(root, "layer_names", list(layers), names)
        for layer, arrays in layers.items():
            group = root.create_group(layer)
            put_names(group, "weight_names", list(arrays), names)
            for name, array in arrays.items():
                group[name] = array
    return stream.getvalue()


def put_names(group: Any, key: str, values: list[str], how: str) -> None:
    if how == "split":  # what does not fit into one attribute is continued in numbered ones
        for number, value in enumerate(values):
            group.attrs[f"{key}{number}"] = np.array([value.encode()])
    elif how == "fixed":
        group.attrs[key] = np.array([value.encode() for value in values])
    else:
        group.attrs[key] = values


def numbered(layers: Mapping[str, tuple[str, Sequence[NDArray[Any]]]]) -> bytes:
    """An HDF5 file as Keras 3 writes it; an empty name is not stored, as in its first versions."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for path, (name, arrays) in layers.items():
            group = file.create_group(f"{path}/vars")
            if name:
                group.attrs["name"] = name
            for number, array in enumerate(arrays):
                group[str(number)] = array
    return stream.getvalue()


def archive(hdf5: bytes, config: Any, compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr("metadata.json", "{}")
        file.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
        file.writestr("model.weights.h5", hdf5)
    return stream.getvalue()


def layer(kind: str, name: str, **config: Any) -> dict[str, Any]:
    return {"class_name": kind, "config": {"name": name, **config}}


def dense(name: str, units: int = 5, activation: Any = "linear") -> dict[str, Any]:
    return layer("Dense", name, units=units, activation=activation)


def sequential(*layers: dict[str, Any]) -> dict[str, Any]:
    return {"class_name": "Sequential", "config": {"name": "sequential", "layers": list(layers)}}


def functional(layers: Mapping[str, tuple[dict[str, Any], list[str]]], outputs: Any, *, version: int) -> Any:
    """A graph of layers with the names of their inputs, in the notation of Keras 2 or 3."""
    records = []
    for name, (record, inputs) in layers.items():
        if version == 2:
            nodes: list[Any] = [[[each, 0, 0, {}] for each in inputs]]
        else:
            tensors = [
                {"class_name": "__keras_tensor__", "config": {"keras_history": [each, 0, 0]}}
                for each in inputs
            ]
            nodes = [{"args": tensors if len(inputs) == 1 else [tensors], "kwargs": {}}]
        records.append({**record, "name": name, "inbound_nodes": nodes if inputs else []})
    return {"class_name": "Functional", "config": {"layers": records, "output_layers": outputs}}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
