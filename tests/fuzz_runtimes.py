"""Files for runtimes that the tests do without, changed at random, and how those runtimes read them.

`fuzz_readers` compares: TensorFlow Lite (ai-edge-litert), OpenVINO (openvino), faiss (faiss-cpu) and hnswlib.
Install the package of the one that you compare with.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_writer
import tflite_writer
from fuzz_files import CLASSES, FEATURES, disturbed, matrix
from numpy.typing import NDArray
from tflite_writer import Op, T

Array = NDArray[Any]
Files = dict[str, bytes]  # by suffix


def _sometimes(rng: random.Random, data: bytes, chance: float = 0.6) -> bytes:
    return disturbed(rng, data) if rng.random() < chance else data


# ---------------------------------------------------------------------- TensorFlow Lite


def tflite(rng: random.Random) -> Files:
    weight, bias = matrix(rng), matrix(rng, 1, CLASSES).reshape(-1)
    tensors = [
        T("x", (FEATURES, FEATURES)),
        tflite_writer.constant("W", weight),
        tflite_writer.constant("b", bias),
        T("z", (FEATURES, CLASSES)),
    ]
    operators = [tflite_writer.fully_connected("x", "W", "b")]
    if rng.random() < 0.3:  # stored in half the bytes
        tensors[1] = tflite_writer.constant("half", weight.astype(np.float16))
        tensors.insert(2, T("W", (CLASSES, FEATURES)))
        operators.insert(0, Op(tflite_writer.DEQUANTIZE, ("half",), ("W",)))
    change = rng.randrange(8)
    if change == 0:  # two tensors of one name, or one written twice
        tensors.append(tflite_writer.constant(rng.choice(("W", "x", "z")), matrix(rng)))
    elif change == 1:
        operators.append(operators[-1])
    elif change == 2:
        tensors[1] = T(
            tensors[1].name, rng.choice(((FEATURES, CLASSES), (CLASSES, FEATURES, 1), (20,), (5, 2, 2))),
            tensors[1].type, tensors[1].data,
        )  # fmt: skip
    elif change == 3:
        tensors.append(tflite_writer.constant("c", matrix(rng, 1, CLASSES).reshape(-1)))
        tensors.append(T("y", (FEATURES, CLASSES)))
        operators.append(Op(tflite_writer.ADD, ("z", "c"), ("y",), (("Int8", 0),)))
    outputs = ("y",) if change == 3 and rng.random() < 0.8 else ("z",)
    data = tflite_writer.model_bytes(tensors, operators, outputs, rng.choice((("x",), ("x",), ("x", "W"))))
    return {".tflite": _sometimes(rng, data)}


def by_litert(path: Path) -> dict[str, Array]:
    """The layer that TensorFlow Lite computes: what it makes of no features, and of each alone."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=path.read_bytes(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    given = {each["name"]: each["index"] for each in interpreter.get_input_details()}
    (taken,) = interpreter.get_output_details()

    def computed(x: Array) -> Array:
        interpreter.set_tensor(given["x"], x)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(taken["index"]))

    sums = computed(np.eye(FEATURES, dtype=np.float32))
    return {"": sums.T, "bias": computed(np.zeros((FEATURES, FEATURES), np.float32))[0]}


# ---------------------------------------------------------------------- OpenVINO


def openvino(rng: random.Random) -> Files:
    model = openvino_writer.Model()
    x = model.input("x", (FEATURES, FEATURES))
    is_turned = rng.random() < 0.3
    weight = model.constant("W", matrix(rng, FEATURES, CLASSES) if is_turned else matrix(rng))
    bias = model.constant("b", matrix(rng, 1, CLASSES))
    if rng.random() < 0.3:
        model.constant("unused", matrix(rng))
    turns = {"transpose_a": "false", "transpose_b": "false" if is_turned else "true"}
    product = model.layer("MatMul", "xw", [x, weight], (FEATURES, CLASSES), **turns)
    sums = model.layer("Add", "z", [product, bias], (FEATURES, CLASSES), auto_broadcast="numpy")
    model.layer("Result", "result", [sums], ())
    text, data = model.text(), model.data
    for _ in range(rng.choice((0, 1, 1, 2))):
        text = _other_network(rng, text)
    changed = _sometimes(rng, text.encode(), 0.2)
    return {".xml": changed, ".bin": _sometimes(rng, data, 0.2)}


def _other_network(rng: random.Random, text: str) -> str:
    """One element twice, gone or moved, or one attribute twice, gone or of another value."""
    elements = re.findall(
        r"<(?:layer .*?</layer>|edge [^>]*>|data [^>]*>|port .*?</port>|dim>.*?</dim>)", text
    )
    element = rng.choice(elements)
    attributes = re.findall(r' [-a-z_]+="[^"]*"', element)
    action = rng.randrange(7)
    if action == 0:
        return text.replace(element, element + element, 1)
    if action == 1:
        return text.replace(element, "", 1)
    if action == 2:
        other = rng.choice(elements)
        return text.replace(element, "\0", 1).replace(other, element, 1).replace("\0", other, 1)
    if not attributes:
        return text.replace(element, element.replace(">4<", rng.choice((">5<", "> 4 <", ">04<", ">-1<"))), 1)
    attribute = rng.choice(attributes)
    name, _, value = attribute.partition("=")
    if action == 3:
        return text.replace(element, element.replace(attribute, attribute + attribute, 1), 1)
    if action == 4:
        return text.replace(element, element.replace(attribute, "", 1), 1)
    inside = value.strip('"')
    number = str(int(inside) + rng.choice((-4, -1, 1, 4, 16))) if inside.isdigit() else inside.upper()
    other = rng.choice(
        (number, number, f" {inside}", f"0{inside}", f"+{inside}", f"{inside} ", f"{inside}.0")
    )
    return text.replace(element, element.replace(attribute, f'{name}="{other}"', 1), 1)


def by_openvino(path: Path) -> dict[str, Array]:
    """The layer that OpenVINO computes, by its reference operations."""
    import openvino as ov

    model = ov.Core().read_model(path)
    (taken,) = model.outputs

    def computed(x: Array) -> Array:
        result = ov.Tensor(taken.get_element_type(), taken.get_shape())
        if not model.evaluate([result], [ov.Tensor(x)]):
            raise ValueError("not evaluated")
        return np.array(result.data)

    sums = computed(np.eye(FEATURES, dtype=np.float32))
    return {"": sums.T, "bias": computed(np.zeros((FEATURES, FEATURES), np.float32))[0]}


# ---------------------------------------------------------------------- indices


def faiss(rng: random.Random) -> Files:
    rows, metric = matrix(rng), rng.randrange(2)
    header = struct.pack("<iqqqBi", FEATURES, CLASSES, 1 << 20, 1 << 20, 1, metric)
    kind = rng.choice((b"IxFI", b"IxF2", b"IxFl")) if rng.random() < 0.2 else (b"IxFI", b"IxF2")[metric]
    data = kind + header + struct.pack("<Q", rows.size) + rows.tobytes()
    if rng.random() < 0.4:
        ids = [rng.randrange(9) for _ in range(CLASSES)]
        data = rng.choice((b"IxMp", b"IxM2")) + header + data + struct.pack(f"<Q{CLASSES}q", CLASSES, *ids)
    if rng.random() < 0.4:  # a number of the header or a count
        place = rng.choice((4, 8, 16, 24, 32, 33, 37, 41))
        old = int.from_bytes(data[place : place + 4], "little")
        number = (old + rng.choice((-20, -1, 1, 4, 20))) % 2**32
        data = data[:place] + number.to_bytes(4, "little") + data[place + 4 :]
    return {".faiss": _sometimes(rng, data, 0.4)}


def by_faiss(path: Path) -> dict[str, Array]:
    import faiss as library

    index = library.read_index(str(path))
    inner = library.downcast_index(index.index) if hasattr(index, "id_map") else index
    return {"vectors": inner.reconstruct_n(0, inner.ntotal)}


def hnswlib(rng: random.Random) -> Files:
    rows, links, size = matrix(rng), 36, 4 * FEATURES
    stride, most = links + size + 8, rng.choice((CLASSES, 8))
    numbers = [0, most, CLASSES, stride, links + size, links, 0, 0, 4, 8, 4, 0.72, 10]
    if rng.random() < 0.3:
        place = rng.randrange(6)
        numbers[place] = max(0, numbers[place] + rng.choice((-8, -4, -1, 1, 4, 8)))
    data = struct.pack("<6QiI3QdQ", *numbers)
    for number, row in enumerate(rows):
        mark = bytearray(links)
        mark[2] = rng.random() < 0.1
        label = rng.randrange(9) if rng.random() < 0.1 else 7 + number
        data += bytes(mark) + row.tobytes() + struct.pack("<Q", label)
    return {".hnsw": _sometimes(rng, data + bytes(4 * CLASSES), 0.5)}


def by_hnswlib(path: Path) -> dict[str, Array]:
    """Vectors by label. Whoever opens a file says how long they are, and the library believes it."""
    import hnswlib as library

    label, data = struct.unpack_from("<2Q", path.read_bytes(), 32)
    if label - data != 4 * FEATURES:
        raise ValueError("vectors of another length")
    index = library.Index("l2", FEATURES)
    index.load_index(str(path))
    labels = index.get_ids_list()
    alive = []
    for label in labels:
        try:
            alive.append((label, index.get_items([label])[0]))
        except RuntimeError:  # deleted
            continue
    return {str(label): np.array(vector, np.float32) for label, vector in alive}


MAKERS: dict[str, Callable[[random.Random], Files]] = {
    "tflite": tflite,
    "openvino": openvino,
    "faiss": faiss,
    "hnswlib": hnswlib,
}
READERS: dict[str, tuple[Callable[[Path], dict[str, Array]], ...]] = {
    "tflite": (by_litert,),
    "openvino": (by_openvino,),
    "faiss": (by_faiss,),
    "hnswlib": (by_hnswlib,),
}
LIBRARIES = {"tflite": "ai_edge_litert", "openvino": "openvino", "faiss": "faiss", "hnswlib": "hnswlib"}
