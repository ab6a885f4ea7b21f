"""Small TensorFlow files: graphs with functions, SavedModels and checkpoints, written field by field."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.models.protobuf import varint

CLASSES, FEATURES = 6, 4
TYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "bool": 10, "bfloat16": 14, "float16": 19}
TEXT, RESOURCE = 7, 20


def number(place: int, value: int) -> bytes:
    return varint(place << 3) + varint(value % 2**64)


def delimited(place: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(data)) + data


def shape(lengths: Sequence[int]) -> bytes:
    return b"".join(delimited(2, number(1, length)) for length in lengths)


def tensor(values: NDArray[Any] | Sequence[str]) -> bytes:
    """A TensorProto with its values as bytes, or with texts."""
    if isinstance(values, np.ndarray):
        content = delimited(4, values.tobytes())
        return number(1, TYPES[values.dtype.name]) + delimited(2, shape(values.shape)) + content
    return (
        number(1, TEXT) + delimited(2, shape([len(values)])) + b"".join(delimited(8, each) for each in values)
    )


@dataclass(frozen=True)
class Raw:
    """An attribute's value as it is in the file."""

    data: bytes


def attribute(value: Any) -> bytes:
    if isinstance(value, Raw):
        return value.data
    if isinstance(value, bool):
        return number(5, int(value))
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, float):
        return varint(4 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        return delimited(2, value)
    if isinstance(value, tuple):
        return delimited(1, delimited(3, b"".join(varint(each % 2**64) for each in value)))
    raise TypeError(value)


def type_of(dtype: str) -> Raw:
    return Raw(number(6, TYPES[dtype]))


def calling(function: str) -> Raw:
    return Raw(delimited(10, delimited(1, function)))


def node(name: str, op: str, *inputs: str, **attributes: Any) -> bytes:
    entries = (delimited(1, key) + delimited(2, attribute(value)) for key, value in attributes.items())
    return (
        delimited(1, name)
        + delimited(2, op)
        + b"".join(delimited(3, each) for each in inputs)
        + b"".join(delimited(5, each) for each in entries)
    )


def constant(name: str, values: NDArray[Any] | Sequence[str]) -> bytes:
    return node(name, "Const", value=Raw(delimited(8, tensor(values))))


def placeholder(name: str, *lengths: int) -> bytes:
    return node(name, "Placeholder", dtype=type_of("float32"), shape=Raw(delimited(7, shape(lengths))))


def variable(name: str, lengths: Sequence[int], shared_name: str = "") -> bytes:
    return node(name, "VarHandleOp", shape=Raw(delimited(7, shape(lengths))), shared_name=shared_name or name)


def function(name: str, arguments: Sequence[str], returns: Mapping[str, str], *nodes: bytes) -> bytes:
    signature = (
        delimited(1, name)
        + b"".join(delimited(2, delimited(1, each)) for each in arguments)
        + b"".join(delimited(3, delimited(1, each)) for each in returns)
    )
    results = (delimited(1, key) + delimited(2, value) for key, value in returns.items())
    return (
        delimited(1, signature)
        + b"".join(delimited(3, each) for each in nodes)
        + b"".join(delimited(4, each) for each in results)
    )


def graph(*nodes: bytes, functions: Sequence[bytes] = ()) -> bytes:
    library = delimited(2, b"".join(delimited(1, each) for each in functions)) if functions else b""
    return b"".join(delimited(1, each) for each in nodes) + library


def weights(dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[Any]]:
    """A weight (features × classes) and a bias."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(FEATURES, CLASSES)).astype(dtype), rng.normal(size=CLASSES).astype(dtype)


def head(features: str, weight: str = "w", bias: str = "b") -> list[bytes]:
    """A product, its bias and a softmax."""
    return [
        node("xw", "MatMul", features, weight, transpose_a=False, transpose_b=False),
        node("logits", "BiasAdd", "xw", bias, data_format="NHWC"),
        node("probabilities", "Softmax", "logits"),
    ]


def frozen(*between: bytes, features: str = "relu") -> bytes:
    """A graph of constants: a ReLU, whatever is put in, and the head."""
    weight, bias = weights()
    first = [
        placeholder("x", -1, FEATURES),
        node("relu", "Relu", "x"),
        constant("w", weight),
        constant("b", bias),
    ]
    return graph(*first, *between, *head(features))


# ---------------------------------------------------------------------- checkpoints


def _block(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A block in which each key shares with the last what it can."""
    data, last = b"", b""
    for key, value in entries:
        shared = next(
            (place for place, pair in enumerate(zip(key, last, strict=False)) if pair[0] != pair[1]),
            min(len(key), len(last)),
        )
        data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return data + struct.pack("<II", 0, 1)


def table(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A table with one block of entries, each block followed by "not compressed" and a checksum."""
    data, handles = b"", list[bytes]()
    for block in (_block(entries), _block([])):
        handles.append(varint(len(data)) + varint(len(block)))
        data += block + b"\0" + bytes(4)
    index = _block([(entries[-1][0] + b"\xff", handles[0])])
    footer = handles[1] + varint(len(data)) + varint(len(index))
    return data + index + b"\0" + bytes(4) + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def save_checkpoint(index: Path, tensors: Mapping[str, NDArray[Any] | bytes]) -> Path:
    """A checkpoint with one file of values; bytes are stored as one text."""
    data, entries = b"", [(b"", number(1, 1))]
    for name, values in sorted(tensors.items()):
        if isinstance(values, bytes):
            raw, described = varint(len(values)) + bytes(4) + values, number(1, TEXT)
        else:
            raw = values.tobytes()
            described = number(1, TYPES[values.dtype.name]) + delimited(2, shape(values.shape))
        entries.append((name.encode(), described + number(4, len(data)) + number(5, len(raw))))
        data += raw
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(table(entries))
    index.with_name(f"{index.name.removesuffix('.index')}.data-00000-of-00001").write_bytes(data)
    return index


# ---------------------------------------------------------------------- SavedModels

KERNEL, BIAS = "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", "layer/bias/.ATTRIBUTES/VARIABLE_VALUE"


def restoring(**keys: str) -> bytes:
    """The function that restores variables: each argument from its key."""
    names = list(keys)
    nodes = [
        constant("names", list(keys.values())),
        constant("slices", [""] * len(keys)),
        node("RestoreV2", "RestoreV2", "prefix", "names:output:0", "slices:output:0"),
    ]
    for place, name in enumerate(names):
        nodes.append(node(f"copy_{place}", "Identity", f"RestoreV2:tensors:{place}"))
        nodes.append(node(f"assign_{place}", "AssignVariableOp", name, f"copy_{place}:output:0"))
    returns = {"done": "prefix"}
    return function("restore", ["prefix", *names], returns, *nodes)


def serving(*between: bytes, features: str = "relu:activations:0") -> bytes:
    """The function that answers, with its variables as arguments."""
    return function(
        "serve", ["x", "kernel", "bias"], {"answer": "probabilities:softmax:0"},
        node("relu", "Relu", "x"),
        *between,
        node("w", "ReadVariableOp", "kernel"),
        node("b", "ReadVariableOp", "bias"),
        node("xw", "MatMul", features, "w:value:0"),
        node("logits", "BiasAdd", "xw:product:0", "b:value:0"),
        node("probabilities", "Softmax", "logits:output:0"),
    )  # fmt: skip


def objects(*children: Mapping[str, int], bound: Sequence[int] = ()) -> bytes:
    """A graph of objects; of a SavedModel with what its functions are bound to."""
    nodes = b"".join(delimited(1, _object(each)) for each in children)
    concrete = delimited(1, "wrapper") + delimited(2, delimited(2, bytes(bound)))
    return nodes + (delimited(2, concrete) if bound else b"")


def _object(children: Mapping[str, int]) -> bytes:
    return b"".join(delimited(1, number(1, place) + delimited(2, name)) for name, place in children.items())


def stored_objects(keys: Sequence[str], *children: Mapping[str, int]) -> bytes:
    """The graph of objects in a checkpoint; "" has no value."""
    values = [
        delimited(2, delimited(1, "VARIABLE_VALUE") + delimited(3, key)) if key else b"" for key in keys
    ]
    return b"".join(delimited(1, _object(each) + value) for each, value in zip(children, values, strict=True))


@dataclass
class Saved:
    """A SavedModel, of which tests change what they want."""

    functions: Sequence[bytes] = (serving(), restoring(w="layer/kernel", b="layer/bias"))
    restored: tuple[str, str] = ("kernel", "bias")
    saved_objects: bytes = b""
    tags: tuple[str, ...] = ("serve",)
    signatures: tuple[str, ...] = ("serving_default",)
    more: Sequence[bytes] = ()
    initialiser: str = ""

    def message(self) -> bytes:
        wrapper = function(
            "wrapper", ["x", "k", "b"], {"y": "call:output:0"},
            node("call", "StatefulPartitionedCall", "x", "k", "b", f=calling("serve")),
        )  # fmt: skip
        nodes = [
            placeholder("x", -1, FEATURES),
            variable("kernel", (FEATURES, CLASSES)),
            variable("bias", (CLASSES,)),
            variable("other", (FEATURES, CLASSES)),
            node("answer", "StatefulPartitionedCall", "x", "kernel", "bias", f=calling("wrapper")),
            node("prefix", "Placeholder"),
            node("restore", "StatefulPartitionedCall", "prefix", *self.restored, f=calling("restore")),
            *self.more,
        ]
        outputs = delimited(1, "scores") + delimited(2, delimited(1, "answer:0"))
        signatures = (delimited(1, name) + delimited(2, delimited(2, outputs)) for name in self.signatures)
        first = delimited(1, "init") + delimited(2, delimited(1, self.initialiser))
        initialisers = delimited(1, "__saved_model_init_op") + delimited(2, delimited(2, first))
        meta = (
            delimited(1, b"".join(delimited(4, tag) for tag in self.tags))
            + delimited(2, graph(*nodes, functions=[wrapper, *self.functions]))
            + delimited(3, delimited(3, "restore"))
            + b"".join(delimited(5, each) for each in signatures)
            + (delimited(5, initialisers) if self.initialiser else b"")
        )
        return number(1, 1) + delimited(
            2, meta + (delimited(7, self.saved_objects) if self.saved_objects else b"")
        )

    def save(self, folder: Path, **tensors: NDArray[Any] | bytes) -> Path:
        weight, bias = weights()
        stored = {"layer/kernel": weight, "layer/bias": bias, **tensors}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "saved_model.pb").write_bytes(self.message())
        (folder / "fingerprint.pb").write_bytes(b"\x08\x01")
        save_checkpoint(folder / "variables" / "variables.index", stored)
        return folder
