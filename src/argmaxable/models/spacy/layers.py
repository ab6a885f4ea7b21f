"""The layers of a thinc model, as `Model.to_bytes` writes them: lists of names, references and parameters.

spaCy builds the layers from config.cfg and then fills them from these lists, in their order (breadth first).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import read_array
from argmaxable.models.message_pack import DAMAGED, StoredBytes, read_message

_LISTS = ("nodes", "attrs", "params", "shims")
_DTYPES = ("<f2", "<f4", "<f8")


@dataclass(frozen=True)
class StoredArray:
    """An array of floats in a file."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int

    def read(self) -> NDArray[Any]:
        return read_array(self.path, self.dtype, self.start, self.shape, DAMAGED)


@dataclass(frozen=True)
class ThincLayer:
    """A layer: its name, the numbers of layers it refers to, its settings and parameters as stored."""

    path: Path
    name: str
    refs: Mapping[str, object]
    attrs: Mapping[str, object]
    params: Mapping[str, object]

    def setting(self, name: str) -> bytes:
        """A setting, itself a MessagePack value, of at most 9 bytes; b"" if there is none of the name."""
        stored = self.attrs.get(name)
        if not isinstance(stored, StoredBytes) or stored.size > 9:
            return b""
        return read_array(self.path, "u1", stored.start, (stored.size,), DAMAGED).tobytes()

    def array(self, name: str) -> StoredArray:
        """A parameter, as srsly stores arrays of NumPy; raises LoadError."""
        stored = self.params.get(name)
        if not isinstance(stored, dict) or stored.get(b"nd") is not True:
            raise LoadError(f"the layer {self.name!r} has no array {name!r}. {DAMAGED}")
        dtype, shape, data = stored.get(b"type"), stored.get(b"shape"), stored.get(b"data")
        if (
            dtype not in _DTYPES
            or not isinstance(shape, list)
            or not all(type(size) is int and size > 0 for size in shape)
            or not isinstance(data, StoredBytes)
            or data.size != math.prod(shape) * np.dtype(dtype).itemsize
        ):
            raise LoadError(
                f"the array {name!r} of the layer {self.name!r} is not an array of little-endian floats with "
                f"as many bytes as its shape needs. {DAMAGED}"
            )
        return StoredArray(self.path, dtype, tuple(shape), data.start)


def read_layers(path: Path) -> Sequence[ThincLayer]:
    """The layers of a thinc model; raises LoadError."""
    message = read_message(path, "a model of thinc")
    if not isinstance(message, dict) or set(message) != set(_LISTS):
        raise LoadError(f"is not a model of thinc, which holds the lists {', '.join(_LISTS)}. {DAMAGED}")
    nodes, attrs, params, shims = (message[name] for name in _LISTS)
    for each in (nodes, attrs, params, shims):
        if not isinstance(each, list) or len(each) != len(nodes):
            raise LoadError(f"its lists {', '.join(_LISTS)} are not of one length. {DAMAGED}")
    return [_layer(path, *each) for each in zip(range(len(nodes)), nodes, attrs, params, strict=True)]


def _layer(path: Path, number: int, node: object, attrs: object, params: object) -> ThincLayer:
    if not isinstance(node, dict) or not isinstance(attrs, dict) or not isinstance(params, dict):
        raise LoadError(f"layer {number} is not a dictionary. {DAMAGED}")
    name, refs = node.get("name"), node.get("refs")
    if not isinstance(name, str) or not isinstance(refs, dict):
        raise LoadError(f"layer {number} has no name or no references. {DAMAGED}")
    if node.get("index") != number:
        raise ambiguous(f"layer {number} says that it is number {node.get('index')!r:.20}")
    return ThincLayer(path, name, refs, attrs, params)
