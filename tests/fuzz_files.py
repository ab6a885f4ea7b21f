"""Small model files, changed at random: as bytes, and in the ways that make programs disagree.

Each maker takes a random generator and gives the bytes of a file, most of them readable: two things of one
name, sizes and places that contradict each other, data before, between and after.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import fuzz_programs
import keras_writer
import numpy as np
import onnx_writer
from gguf import GGMLQuantizationType as Type
from gguf import quants
from numpy.typing import NDArray

from argmaxable.models.protobuf import fields, varint

CLASSES, FEATURES = 5, 4
Maker = Callable[[random.Random], bytes]
SPECIAL = (0, 1, 2, 3, 127, 128, 255, 2**16 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def matrix(rng: random.Random, rows: int = CLASSES, columns: int = FEATURES) -> NDArray[np.float32]:
    """Numbers of which no two are equal, so that no two files agree by chance."""
    return np.array([rng.uniform(-9, 9) for _ in range(rows * columns)], np.float32).reshape(rows, columns)


def disturbed(rng: random.Random, data: bytes) -> bytes:
    """The bytes with one to three random changes, or as they are."""
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        place = rng.randrange(len(changed) + 1)
        length = rng.choice((1, 1, 2, 4, 8, 64))
        action = rng.randrange(7)
        if action == 0:
            changed[place : place + 1] = bytes([rng.choice((0, 1, 8, 127, 128, 255, rng.randrange(256)))])
        elif action == 1:
            del changed[place : place + length]
        elif action == 2:
            source = rng.randrange(len(changed) + 1)
            changed[place:place] = changed[source : source + length]
        elif action == 3:
            source = rng.randrange(len(changed) + 1)
            changed[place : place + length] = changed[source : source + length]
        elif action == 4:
            size = rng.choice((2, 4, 8))
            number = int.from_bytes(changed[place : place + size], "little") + rng.choice((-8, -1, 1, 4, 32))
            changed[place : place + size] = (number % 256**size).to_bytes(size, "little")
        elif action == 5:
            size = rng.choice((2, 4, 8))
            changed[place : place + size] = (rng.choice(SPECIAL) % 256**size).to_bytes(size, "little")
        else:
            changed += rng.randbytes(length)
    return bytes(changed)


def _sometimes(rng: random.Random, data: bytes) -> bytes:
    return disturbed(rng, data) if rng.random() < 0.4 else data


# ---------------------------------------------------------------------- ONNX


_INSIDE = {
    "model": {7: "graph", 14: "entry", 8: "operator set"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor"},
    "tensor": {13: "entry"},
}
Tree = list[tuple[int, int, Any]]  # number, wire type, bytes or a message's kind and tree


def onnx(rng: random.Random) -> bytes:
    weight, bias = matrix(rng, FEATURES, CLASSES), matrix(rng, 1, CLASSES).reshape(-1)
    if rng.random() < 0.3:  # the weight's place is noted, as it is for large ones
        weight = matrix(rng, FEATURES, 80)
        bias = matrix(rng, 1, 80).reshape(-1)
    nodes = [onnx_writer.node("MatMul", "x W", "xW"), onnx_writer.node("Add", "xW b", "y")]
    constants = {"W": weight, "b": bias}
    if rng.random() < 0.3:
        nodes = [onnx_writer.constant_node("W", weight), *nodes]
        del constants["W"]
    data = onnx_writer.build(nodes, constants, rows=FEATURES).SerializeToString()
    tree = _parsed(data, "model")
    for _ in range(rng.choice((0, 1, 1, 2))):
        _change(rng, *rng.choice([("model", tree), *_messages(tree), *_tensors(tree), *_tensors(tree)]))
    return _sometimes(rng, _written(tree))


def _parsed(data: bytes, message: str) -> Tree:
    tree: Tree = []
    for field in fields(data):
        kind = data[field.begin] & 7
        inside = _INSIDE.get(message, {}).get(field.number)
        value = data[field.start : field.end]
        tree.append((field.number, kind, (inside, _parsed(value, inside)) if inside and kind == 2 else value))
    return tree


def _written(tree: Tree) -> bytes:
    parts = []
    for number, kind, value in tree:
        data = _written(value[1]) if isinstance(value, tuple) else value
        parts.append(varint(number << 3 | kind) + (varint(len(data)) if kind == 2 else b"") + data)
    return b"".join(parts)


def _messages(tree: Tree) -> list[tuple[str, Tree]]:
    inside = [value for _, _, value in tree if isinstance(value, tuple)]
    return [*inside, *(each for _, below in inside for each in _messages(below))]


def _tensors(tree: Tree) -> list[tuple[str, Tree]]:
    return [each for each in _messages(tree) if each[0] == "tensor"]


def _change(rng: random.Random, message: str, tree: Tree) -> None:
    """One change to a message: a field twice, gone, moved or of another value; a tensor's data elsewhere."""
    place = rng.randrange(len(tree)) if tree else 0
    if message == "tensor" and rng.random() < 0.6:
        size = sum(len(value) for number, _, value in tree if number == 9)
        other = bytes(np.frombuffer(rng.randbytes(size), "u1") & 0x3F)
        entry = ("entry", [(1, 2, rng.choice((b"location", b"argmaxable.place"))), (2, 2, b"0 80")])
        added = [(9, 2, other), (4, 2, other), (14, 0, b"\x01"), (14, 0, b"\x00"), (13, 2, entry)]
        added += [(8, 2, rng.choice((b"W", b"b"))), (2, 0, rng.choice((b"\x01", b"\x0a", b"\x06")))]
        tree.insert(rng.randrange(len(tree) + 1), rng.choice(added))
    elif not tree:
        return
    elif (action := rng.randrange(4)) == 0:
        number, kind, value = tree[place]
        copied = value if isinstance(value, tuple) else _sometimes(rng, value)
        tree.insert(rng.randrange(len(tree) + 1), (number, kind, copied))
    elif action == 1:
        del tree[place]
    elif action == 2:
        tree.insert(rng.randrange(len(tree)), tree.pop(place))
    else:
        number, kind, value = tree[place]
        if not isinstance(value, tuple):
            tree[place] = (number, kind, disturbed(rng, value) if kind == 2 else value)


# ---------------------------------------------------------------------- zip archives


def zipped(rng: random.Random, members: list[tuple[str, bytes]], compressible: str = "") -> bytes:
    """An archive of these members, with a change where the two headers, or two members, contradict.

    Those whose names contain `compressible` may be compressed.
    """
    change = rng.choice(
        ("", "", "", "", "again", "name", "local", "central", "gap", "before", "after", "end", "large")
    )
    victim = rng.randrange(len(members))
    if change == "again":
        name, data = members[victim]
        name = rng.choice((name, name.upper(), name.removesuffix(".npy"), f"{name}.npy", name + "\0x"))
        members = [*members]
        members.insert(rng.randrange(len(members) + 1), (name, _other(rng, data)))
    out, central = bytearray(), bytearray()
    if change == "before":
        out += rng.randbytes(rng.choice((1, 16, 100)))
    for number, (name, data) in enumerate(members):
        hit = number == victim
        method = rng.choice((0, 0, 8)) if compressible in name else 0
        packed = zlib.compress(data, 6, -15) if method else data
        start = len(out) if not (change == "before" and rng.random() < 0.5) else len(out) - 1
        numbers = [method, zlib.crc32(data), len(packed), len(data)]
        local, listed = list(numbers), list(numbers)
        if hit and change in ("local", "central"):
            which, at = (local if change == "local" else listed), rng.randrange(4)
            which[at] = max(0, which[at] + rng.choice((-8, -1, 1, 8)))
        raw = name.encode()
        local_name = _other(rng, raw) if hit and change == "name" else raw
        out += struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, local[0], 0, 33, *local[1:], len(local_name), 0)
        out += local_name + packed
        if hit and change == "gap":
            out += rng.randbytes(rng.choice((1, 12, 40)))
        header = struct.pack(
            "<4s6H3L5H2L",
            *(b"PK\1\2", 20, 20, 0, listed[0], 0, 33, *listed[1:], len(raw), 0, 0, 0, 0, 0, start),
        )
        central += header + raw
    return _ended(rng, out, central, len(members), change)


def _ended(rng: random.Random, out: bytearray, central: bytearray, count: int, change: str) -> bytes:
    start, length = len(out), len(central)
    out += central
    if change == "large":
        place = len(out)
        shifted = start + rng.choice((0, 0, 1))
        out += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, shifted)
        out += struct.pack("<4sLQL", b"PK\6\7", 0, place + rng.choice((0, 0, 1)), 1)
    if change == "end":
        count, length, start = (max(0, each + rng.choice((-1, 0, 0, 1))) for each in (count, length, start))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, length, start, 0)
    if change == "end" and rng.random() < 0.5:
        end = end[:-2] + struct.pack("<H", len(end)) + end
    return bytes(out) + end + (rng.randbytes(rng.choice((1, 22))) if change == "after" else b"")


def _other(rng: random.Random, data: bytes) -> bytes:
    """As many bytes, of which some of the last differ."""
    changed = bytearray(data)
    for _ in range(min(3, len(changed))):
        changed[-rng.randrange(1, min(16, len(changed)) + 1)] ^= rng.choice((1, 2, 4))
    return bytes(changed)


def npz(rng: random.Random) -> bytes:
    dtype = rng.choice(("<f4", "<f4", ">f4", "<f8", "<f2"))
    arrays = {"W": matrix(rng).astype(dtype), "b": matrix(rng, 1, CLASSES).reshape(-1)}
    if rng.random() < 0.2:
        arrays["W"] = np.asfortranarray(arrays["W"])
    members = [(f"{name}.npy", _npy(rng, array)) for name, array in arrays.items()]
    return _sometimes(rng, zipped(rng, members))


def _npy(rng: random.Random, array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    data = stream.getvalue()
    if rng.random() < 0.2:  # a key twice, in the spaces at the header's end
        key = rng.choice((b"'shape': (4, 5), ", b"'descr': '<i4', ", b"'fortran_order': True, "))
        end = data.index(b"}")
        data = data[:end] + key + data[end:].replace(b" " * len(key), b"", 1)
    return data


def keras(rng: random.Random) -> bytes:
    layers = {"d": ("d", [matrix(rng, FEATURES, CLASSES), matrix(rng, 1, CLASSES).reshape(-1)])}
    hdf5 = keras_writer.numbered({f"layers/{key}": value for key, value in layers.items()})
    config = json.dumps(keras_writer.sequential(keras_writer.dense("d")))
    if rng.random() < 0.1:
        config = config.replace('"units"', '"units": 3, "units"')
    return zipped(
        rng, [("metadata.json", b"{}"), ("config.json", config.encode()), ("model.weights.h5", hdf5)]
    )


def hdf5(rng: random.Random) -> bytes:
    arrays = {"kernel:0": matrix(rng, FEATURES, CLASSES), "bias:0": matrix(rng, 1, CLASSES).reshape(-1)}
    names = [*arrays, "kernel:0"] if rng.random() < 0.05 else [*arrays]
    config = keras_writer.sequential(keras_writer.dense("d")) if rng.random() < 0.5 else None
    stream = io.BytesIO()
    import h5py

    with h5py.File(stream, "w") as file:
        root = file if config is None else file.create_group("model_weights")
        if config is not None:
            file.attrs["model_config"] = json.dumps(config)
        keras_writer.put_names(root, "layer_names", ["d", "d"] if rng.random() < 0.05 else ["d"], "fixed")
        group = root.create_group("d")
        keras_writer.put_names(group, "weight_names", names, "fixed")
        for name, array in arrays.items():
            chunked = {"chunks": array.shape, "compression": "gzip"} if rng.random() < 0.3 else {}
            group.create_dataset(name, data=array.astype(rng.choice(("<f4", ">f4", "<f8"))), **chunked)
    return disturbed(rng, stream.getvalue()) if rng.random() < 0.8 else stream.getvalue()


def pytorch(rng: random.Random) -> bytes:
    import torch

    weight, bias = torch.from_numpy(matrix(rng)), torch.from_numpy(matrix(rng, 1, CLASSES).reshape(-1))
    state: dict[str, Any] = {"fc.weight": weight, "fc.bias": bias}
    if rng.random() < 0.15:
        state = rng.choice(
            (
                {"state_dict": state, "model": {"fc.weight": weight + 1, "fc.bias": bias}},
                {**state, "fc": {"weight": weight + 1}},
                {"model": state, "epoch": 3},
            )
        )
    stream = io.BytesIO()
    torch.save(state, stream, _use_new_zipfile_serialization=rng.random() < 0.8)
    data = stream.getvalue()
    if data[:2] == b"PK" and rng.random() < 0.6:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        if rng.random() < 0.1:
            members.append(("other/data.pkl", dict(members)[members[0][0]]))
        return zipped(rng, members)
    return disturbed(rng, data)


# ---------------------------------------------------------------------- safetensors and GGUF


def safetensors(rng: random.Random) -> bytes:
    dtype, stored = rng.choice((("F32", "<f4"), ("F16", "<f2"), ("F64", "<f8")))
    arrays = {
        "fc.weight": matrix(rng).astype(stored),
        "fc.bias": matrix(rng, 1, CLASSES).reshape(-1).astype(stored),
    }
    entries, values = [], b""
    for name, array in arrays.items():
        begin = len(values)
        values += array.tobytes()
        entries.append([name, dtype, list(array.shape), begin, len(values)])
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        entry = rng.choice(entries)
        action = rng.randrange(6)
        if action == 0:
            entry[3 + rng.randrange(2)] += rng.choice((-4, -2, 2, 4))
        elif action == 1:
            shift = rng.choice((-8, 4, 16))
            entry[3], entry[4] = max(0, entry[3] + shift), max(0, entry[4] + shift)
        elif action == 2:
            entries.append([entry[0], entry[1], entry[2], *rng.choice(entries)[3:]])
        elif action == 3:
            entry[2] = rng.choice((entry[2][::-1], [*entry[2], 1], [math_prod(entry[2])]))
        elif action == 4:
            values += rng.randbytes(rng.choice((1, 4, 8)))
        else:
            entry[1] = rng.choice(("F32", "I32", "F16", "BF16"))
    return _sometimes(rng, _safetensors_file(rng, entries, values))


def math_prod(shape: list[int]) -> int:
    return int(np.prod(shape))


def _safetensors_file(rng: random.Random, entries: list[list[Any]], values: bytes) -> bytes:
    parts = [
        f'{json.dumps(name)}:{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'
        for name, dtype, shape, begin, end in entries
    ]
    if rng.random() < 0.2:
        parts.insert(rng.randrange(3), '"__metadata__":{"format":"pt"}')
    header = ("{" + ",".join(parts) + "}").encode() + b" " * rng.choice((0, 0, 3))
    if rng.random() < 0.05:
        header = b" " + header
    return struct.pack("<Q", len(header)) + header + values


def gguf(rng: random.Random) -> bytes:
    kind, stored = Type.F32, matrix(rng, 8, 32)
    data = {"output.weight": stored.tobytes(), "token_embd.weight": matrix(rng, 8, 32).tobytes()}
    if rng.random() < 0.4:
        kind = rng.choice((Type.Q8_0, Type.Q4_0, Type.F16))
        data["output.weight"] = quants.quantize(stored, kind).tobytes()
    alignment = rng.choice((32, 32, 64, 8))
    keys = [("general.architecture", "llama"), ("general.alignment", alignment)]
    tensors = []
    offset = 0
    for name, raw in data.items():
        tensors.append([name, (32, 8), kind if name == "output.weight" else Type.F32, offset])
        offset += -(-len(raw) // alignment) * alignment
    for _ in range(rng.choice((0, 1, 1, 2))):
        tensor = rng.choice(tensors)
        action = rng.randrange(6)
        if action == 0:
            tensor[3] = max(0, tensor[3] + rng.choice((-64, -32, -1, 1, 32, 64)))
        elif action == 1:
            tensors.append([tensor[0] + rng.choice(("", "", "\0x")), *rng.choice(tensors)[1:]])
        elif action == 2:
            keys.append((rng.choice(keys)[0], rng.choice((16, 64, "gpt2"))))
        elif action == 3:
            tensor[1] = rng.choice(((8, 32), (32, 4), (32, 8, 1), (64, 4)))
        elif action == 4:
            tensor[2] = rng.choice((Type.F16, Type.F32, Type.BF16, Type.I8))
        else:
            rng.shuffle(tensors)
    return _sometimes(rng, _gguf_file(keys, tensors, list(data.values()), alignment))


def _gguf_file(keys: list[Any], tensors: list[Any], data: list[bytes], alignment: int) -> bytes:
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys:
        out += _string(key)
        out += (
            struct.pack("<I", 8) + _string(value) if isinstance(value, str) else struct.pack("<II", 4, value)
        )
    for name, shape, kind, offset in tensors:
        out += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, int(kind), offset)
    for raw in data:
        out += bytes(-len(out) % alignment) + raw
    return out + bytes(-len(out) % alignment)


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


MAKERS: dict[str, tuple[str, Maker]] = {
    "onnx": (".onnx", onnx),
    "npz": (".npz", npz),
    "safetensors": (".safetensors", safetensors),
    "gguf": (".gguf", gguf),
    "hdf5": (".h5", hdf5),
    "keras": (".keras", keras),
    "pytorch": (".pt", pytorch),
    "torchscript": (".pt", fuzz_programs.torchscript),
    "torch.export": (".pt2", fuzz_programs.torch_export),
}
