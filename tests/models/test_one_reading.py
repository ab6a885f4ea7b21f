"""A file in which two programs could read different weights is refused, and the error says why.

Each refused file here is read by some program, with weights that another would not see. `fuzz_readers`
compares many more with the formats' own libraries; here a few of them.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fuzz_files
import fuzz_readers
import gguf_writer
import keras_writer
import numpy as np
import onnx
import onnx_writer
import openvino_writer
import pytest
import tflite_writer
import torch
from onnx import TensorProto, helper, numpy_helper
from tflite_writer import FULLY_CONNECTED, Op, T

from argmaxable import AmbiguousError, LoadError, load_head
from argmaxable.models.labels.vocabulary import labels_from_file, search_beside

WEIGHT = np.arange(20, dtype=np.float32).reshape(5, 4)
OTHER = WEIGHT + 1
BIAS = np.zeros(5, np.float32)
Maker = Callable[[], bytes]


# ---------------------------------------------------------------------- ONNX


def model() -> onnx.ModelProto:
    nodes = [onnx_writer.node("MatMul", "x W", "xW"), onnx_writer.node("Add", "xW b", "y")]
    return onnx_writer.build(nodes, {"W": WEIGHT.T.copy(), "b": BIAS})


def with_tensor(change: Callable[[TensorProto], object]) -> Maker:
    def make() -> bytes:
        made = model()
        change(made.graph.initializer[0])
        return made.SerializeToString()

    return make


def external(tensor: TensorProto, *keys: str, location: int = TensorProto.EXTERNAL) -> None:
    for key in keys:
        tensor.external_data.add(key=key, value="0 80")
    tensor.data_location = location


def inside(tensor: bytes) -> bytes:
    """The model with more fields in its weight: protobuf puts together what comes in two pieces."""
    name, graph = b"\x42\x01W", model().graph
    del graph.initializer[0]
    first = numpy_helper.from_array(WEIGHT.T.copy(), "W").SerializeToString()
    assert first.count(name) == 1
    body = b"\x2a" + bytes([len(first + tensor)]) + first + tensor
    graph_bytes = graph.SerializeToString() + body
    rest = onnx_writer.build([], {})
    rest.ClearField("graph")
    length = struct.pack("<H", (len(graph_bytes) & 0x7F | 0x80) | len(graph_bytes) >> 7 << 8)
    return rest.SerializeToString() + b"\x3a" + length + graph_bytes


def twice_named() -> bytes:
    made = model()
    made.graph.initializer.append(numpy_helper.from_array(OTHER.T.copy(), "W"))
    return made.SerializeToString()


def computed_twice() -> bytes:
    made = model()
    made.graph.node.append(onnx_writer.node("Identity", "x", "xW"))
    return made.SerializeToString()


def with_two_values() -> bytes:
    node = onnx_writer.constant_node("W", WEIGHT.T.copy())
    node.attribute.append(helper.make_attribute("value_float", 1.0))
    made = onnx_writer.build([node, onnx_writer.node("MatMul", "x W", "y")], {})
    return made.SerializeToString()


def with_attribute_twice() -> bytes:
    made = onnx_writer.build([onnx_writer.node("Gemm", "x W", "y", transB=1)], {"W": WEIGHT})
    made.graph.node[0].attribute.append(helper.make_attribute("transB", 0))
    return made.SerializeToString()


def with_metadata_twice() -> bytes:
    made = model()
    for value in ("a\nb\nc\nd\ne", "e\nd\nc\nb\na"):
        made.metadata_props.add(key="character", value=value)
    return made.SerializeToString()


def with_attribute_of(kind: int) -> Maker:
    def make() -> bytes:
        made = onnx_writer.build([onnx_writer.node("Gemm", "x W", "y", transB=1)], {"W": WEIGHT})
        made.graph.node[0].attribute[0].type = kind
        return made.SerializeToString()

    return make


def with_two_opsets() -> bytes:
    made = model()
    made.opset_import.append(helper.make_opsetid("ai.onnx", 11))
    return made.SerializeToString()


ONNX: dict[str, tuple[Maker, str]] = {
    "raw_data and EXTERNAL": (
        with_tensor(lambda each: external(each)),
        "'W' has its values in raw_data, but its data_location is EXTERNAL",
    ),
    "raw_data and external_data": (
        with_tensor(lambda each: external(each, "location")),
        "'W' has values in raw_data and in external_data",
    ),
    "external_data without EXTERNAL": (
        with_tensor(lambda each: (each.ClearField("raw_data"), external(each, "location", location=0))),
        "'W' has its values in external_data, but its data_location is DEFAULT",
    ),
    "float_data beside raw_data": (
        with_tensor(lambda each: each.float_data.extend([1.0] * 20)),
        "'W' has values in float_data and in raw_data",
    ),
    "two raw_data": (lambda: inside(b"\x4a\x04abcd"), "the tensor at byte .* has the field raw_data twice"),
    "two names": (lambda: inside(b"\x42\x01b"), "the tensor at byte .* has the field name twice"),
    "an initializer's name twice": (twice_named, "two tensors of a graph are called 'W'"),
    "a computed tensor twice": (computed_twice, "two tensors of a graph are called 'xW'"),
    "our own key": (
        with_tensor(lambda each: (each.ClearField("raw_data"), external(each, "argmaxable.place"))),
        "external_data has the key 'argmaxable.place', by which argmaxable notes places",
    ),
    "a location twice": (
        with_tensor(lambda each: (each.ClearField("raw_data"), external(each, "location", "location"))),
        "external_data has the key 'location' twice",
    ),
    "an external key that onnx leaves out": (
        with_tensor(lambda each: (each.ClearField("raw_data"), external(each, "location", "Offset"))),
        "external_data has the key 'Offset', which only some programs heed",
    ),
    "a zero byte in a file's name": (
        with_tensor(
            lambda each: (
                each.ClearField("raw_data"),
                external(each),
                each.external_data.add(key="location", value="w.bin\0x"),
            )
        ),
        "external_data has a zero byte",
    ),
    "an attribute without its type": (
        with_attribute_of(onnx.AttributeProto.UNDEFINED),
        "the attribute 'transB' is of type UNDEFINED and has a value of type INT",
    ),
    "an attribute of another type": (
        with_attribute_of(onnx.AttributeProto.FLOAT),
        "the attribute 'transB' is of type FLOAT and has a value of type INT",
    ),
    "a Constant of two values": (with_two_values, "the Constant 'W' has 2 values"),
    "an attribute twice": (with_attribute_twice, "a Gemm has the attribute 'transB' twice"),
    "two sets of operations": (with_two_opsets, "two versions of the operations of 'ai.onnx'"),
    "metadata twice": (with_metadata_twice, "metadata has the key 'character' twice"),
}


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_an_operation_that_the_file_defines_anew_is_not_taken_for_onnx_s_own(
    tmp_path: Path, domain: str
) -> None:
    made = model()
    body = [onnx_writer.node("Neg", "b", "n"), onnx_writer.node("MatMul", "a n", "c")]
    made.functions.append(
        helper.make_function(domain, "MatMul", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)])
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(LoadError, match="the trace ends at :MatMul"):
        load_head(path)


# ---------------------------------------------------------------------- archives


def npy(array: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def zipped(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


PLAIN = zipped(("W.npy", npy(WEIGHT)))
DIRECTORY = PLAIN.index(b"PK\1\2")


def patched(place: int, value: bytes) -> bytes:
    return PLAIN[:place] + value + PLAIN[place + len(value) :]


def header_twice() -> bytes:
    data = npy(WEIGHT)
    end = data.index(b"}")
    key = b"'shape': (4, 5), "
    return zipped(("W.npy", data[:end] + key + data[end:].replace(b" " * len(key), b"", 1)))


NPZ: dict[str, tuple[Maker, str]] = {
    "W and W.npy": (
        lambda: zipped(("W", npy(OTHER)), ("W.npy", npy(WEIGHT))),
        "two arrays are called 'W', with and without the ending .npy",
    ),
    "a name twice": (
        lambda: zipped(("W.npy", npy(WEIGHT)), ("W.npy", npy(OTHER))),
        "two members of the archive are called 'W.npy'",
    ),
    "another name in the header": (
        lambda: patched(PLAIN.index(b"W.npy"), b"V"),
        "the header and the directory of the archive contradict each other about 'W.npy'",
    ),
    "data before": (lambda: b"PK\3\4" + PLAIN, "the directory of the archive is not where its end says"),
    "data after": (lambda: PLAIN + b"more", "data follows the end of the archive"),
    "two ends": (
        lambda: PLAIN[:-2] + struct.pack("<H", 22) + PLAIN[-22:],
        "two end records|is not where its end says",
    ),
    "a member that is not listed": (
        lambda: patched(len(PLAIN) - 14, struct.pack("<2H", 2, 2)),
        "the archive declares 2 members and lists 1",
    ),
    "bytes of a folder": (
        lambda: patched(DIRECTORY + 38, b"\x10"),
        "the member 'W.npy' of the archive is marked as a folder, but has bytes",
    ),
    "another disk": (lambda: patched(DIRECTORY + 34, b"\x01"), "'W.npy' of the archive is on another disk"),
    "a header with a key twice": (header_twice, "the header of 'W' has the key 'shape' twice"),
}


def keras_zip(config: str = "", *more: tuple[str, bytes]) -> bytes:
    layers = {"layers/d": ("d", [WEIGHT.T.copy(), BIAS])}
    text = config or json.dumps(keras_writer.sequential(keras_writer.dense("d")))
    return zipped(("config.json", text.encode()), ("model.weights.h5", keras_writer.numbered(layers)), *more)


KERAS: dict[str, tuple[Maker, str]] = {
    "a name twice": (
        lambda: keras_zip("", ("model.weights.h5", b"")),
        "two members of the archive are called 'model.weights.h5'",
    ),
    "a key twice": (
        lambda: keras_zip('{"class_name": "Model", "class_name": "Sequential"}'),
        "configuration can be read in two ways: the key 'class_name' occurs twice",
    ),
    "weights in two forms": (
        lambda: keras_zip("", ("model.weights.npz", b"")),
        "weights in model.weights.h5 and in another form",
    ),
}


def listed_twice() -> bytes:
    stream = io.BytesIO(keras_writer.listed({"d": {"kernel:0": WEIGHT.T.copy(), "bias:0": BIAS}}))
    import h5py

    with h5py.File(stream, "r+") as file:
        keras_writer.put_names(file["d"], "weight_names", ["kernel:0", "bias:0", "kernel:0"], "fixed")
    return stream.getvalue()


def listed_in_two_places() -> bytes:
    config = keras_writer.sequential(keras_writer.dense("d"))
    stream = io.BytesIO(keras_writer.listed({"d": {"kernel:0": WEIGHT.T.copy(), "bias:0": BIAS}}, config))
    import h5py

    with h5py.File(stream, "r+") as file:
        keras_writer.put_names(file, "layer_names", ["d"], "fixed")
    return stream.getvalue()


def layer_listed_twice() -> bytes:
    stream = io.BytesIO(keras_writer.listed({"d": {"kernel:0": WEIGHT.T.copy(), "bias:0": BIAS}}))
    import h5py

    with h5py.File(stream, "r+") as file:
        keras_writer.put_names(file, "layer_names", ["d", "d"], "fixed")
    return stream.getvalue()


HDF5: dict[str, tuple[Maker, str]] = {
    "a layer twice": (layer_listed_twice, "layer_names lists 'd' twice"),
    "layers in two places": (listed_in_two_places, "layers are listed both in the file and in its group"),
    "a weight twice": (listed_twice, "weight_names of layer 'd' lists 'kernel' twice"),
}


def saved(value: object) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def repacked(*more: tuple[str, bytes]) -> bytes:
    data = saved({"fc.weight": torch.from_numpy(WEIGHT), "fc.bias": torch.from_numpy(BIAS)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return zipped(*((name, archive.read(name)) for name in archive.namelist()), *more)


STATE = {"fc.weight": torch.from_numpy(WEIGHT), "fc.bias": torch.from_numpy(BIAS)}
PYTORCH: dict[str, tuple[Maker, str]] = {
    "a record twice": (
        lambda: repacked(("archive/data/0", OTHER.tobytes())),
        "two members of the archive are called 'archive/data/0'",
    ),
    "a record in capitals": (
        lambda: repacked(("archive/DATA.pkl", b"")),
        "two members of the archive are called 'archive/data.pkl'",
    ),
    "two folders": (
        lambda: repacked(("other/data.pkl", b"")),
        "the archive holds 2 folders, .*: 'archive', 'other'",
    ),
    "two dictionaries": (
        lambda: saved({"model": STATE, "state_dict": {"fc.weight": torch.from_numpy(OTHER)}}),
        "it holds tensors under 'model', 'state_dict', each of which may be the model's weights",
    ),
    "a name with a dot": (
        lambda: saved({**STATE, "fc": {"weight": torch.from_numpy(OTHER)}}),
        "two tensors are called 'fc.weight'",
    ),
}


# ---------------------------------------------------------------------- safetensors, GGUF, TensorFlow Lite


def safetensors(*entries: tuple[str, int, int], room: int = 80) -> bytes:
    parts = [
        f'"{name}":{{"dtype":"F32","shape":[{(end - begin) // 16},4],"data_offsets":[{begin},{end}]}}'
        for name, begin, end in entries
    ]
    header = ("{" + ",".join(parts) + "}").encode()
    return struct.pack("<Q", len(header)) + header + bytes(room)


def test_a_header_in_another_encoding_is_refused_as_the_library_does(tmp_path: Path) -> None:
    header = '{"fc.weight":{"dtype":"F32","shape":[5,4],"data_offsets":[0,80]}}'.encode("utf-16-le")
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(80))
    with pytest.raises(LoadError, match="its header is not valid JSON"):
        load_head(path)


SAFETENSORS: dict[str, tuple[Maker, str]] = {
    "a name twice": (
        lambda: safetensors(("fc.weight", 0, 32), ("fc.weight", 32, 80)),
        "its header can be read in two ways: the key 'fc.weight' occurs twice",
    ),
    "an overlap": (
        lambda: safetensors(("fc.weight", 0, 64), ("other", 48, 80)),
        "'fc.weight' and 'other' lie in overlapping bytes",
    ),
    "a hole": (
        lambda: safetensors(("fc.weight", 0, 32), ("other", 48, 80)),
        "16 bytes between 'fc.weight' and 'other' belong to no tensor",
    ),
    "bytes before": (
        lambda: safetensors(("fc.weight", 16, 80)),
        "16 bytes between the header and 'fc.weight' belong to no tensor",
    ),
    "bytes after": (
        lambda: safetensors(("fc.weight", 0, 64)),
        "16 bytes after 'fc.weight' belong to no tensor",
    ),
}


def gguf(
    *tensors: tuple[str, int], keys: tuple[tuple[str, Any], ...] = (("general.architecture", "llama"),)
) -> bytes:
    kind = gguf_writer.Type.F32
    return fuzz_files._gguf_file(
        list(keys), [[name, (4, 8), kind, offset] for name, offset in tensors], [bytes(128)] * 2, 32
    )


GGUF: dict[str, tuple[Maker, str]] = {
    "a name twice": (
        lambda: gguf(("output.weight", 0), ("output.weight", 128)),
        "two tensors are called 'output.weight'",
    ),
    "an overlap": (
        lambda: gguf(("output.weight", 0), ("token_embd.weight", 64)),
        "'output.weight' and 'token_embd.weight' lie in overlapping bytes",
    ),
    "an odd offset": (
        lambda: gguf(("output.weight", 4), ("token_embd.weight", 160)),
        "'output.weight' begins at byte 4, not a multiple of its alignment, 32",
    ),
    "a key twice": (
        lambda: gguf(("output.weight", 0), keys=(("a", "llama"), ("a", "gpt2"))),
        "the key 'a' of its metadata occurs twice",
    ),
    "a zero byte": (
        lambda: gguf(("output.weight\0x", 0), ("output.weight", 128)),
        r"'output.weight\\x00x' has a zero byte",
    ),
}


@pytest.mark.parametrize(
    ("suffix", "make", "complaint"),
    [
        pytest.param(suffix, make, complaint, id=f"{suffix} {name}")
        for suffix, cases in (
            ("onnx", ONNX), ("npz", NPZ), ("keras", KERAS), ("h5", HDF5), ("pt", PYTORCH),
            ("safetensors", SAFETENSORS), ("gguf", GGUF),
        )
        for name, (make, complaint) in cases.items()
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_with_two_readings_is_refused(
    tmp_path: Path, suffix: str, make: Maker, complaint: str
) -> None:
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(make())
    with pytest.raises(AmbiguousError, match=rf"can be read in two ways: .*{complaint}|{complaint}"):
        load_head(path)


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        ("onnx", model().SerializeToString()),
        ("npz", PLAIN),
        ("keras", keras_zip()),
        ("pt", repacked()),
        ("safetensors", safetensors(("fc.weight", 0, 80))),
        ("gguf", gguf(("output.weight", 0), ("token_embd.weight", 128))),
    ],
)
def test_the_same_files_with_one_reading_are_read(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(data)
    assert load_head(path).features == 4


# ---------------------------------------------------------------------- vectors of items


def parquet(path: Path, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.Table.from_arrays([*columns.values()], names=[name.strip("_") for name in columns]), path
    )
    return path


def vectors(values: np.ndarray[Any, Any]) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def test_a_parquet_column_whose_name_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "items.parquet", v=vectors(WEIGHT), v_=vectors(OTHER))
    with pytest.raises(AmbiguousError, match="two columns are called 'v'"):
        load_head(path)


def test_a_parquet_column_is_not_taken_for_a_field_of_a_group(tmp_path: Path) -> None:
    import pyarrow as pa

    group = pa.StructArray.from_arrays([vectors(OTHER)], ["b"])
    path = parquet(tmp_path / "items.parquet", **{"a": group, "a.b": vectors(WEIGHT)})
    assert load_head(path, tensor="a.b").weight.tolist() == WEIGHT.tolist()


def test_a_parquet_column_of_labels_with_gaps_is_not_used(tmp_path: Path) -> None:
    import pyarrow as pa

    labels = pa.array(["a", None, "c", "d", "e"])
    assert load_head(parquet(tmp_path / "items.parquet", v=vectors(WEIGHT), label=labels)).labels is None


def test_word_vectors_that_are_text_and_binary_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    path.write_bytes(b"2 2\na 1.5 2.5\nb 3.5 4.5\n")
    with pytest.raises(AmbiguousError, match="its numbers are text, and its bytes float32 numbers too"):
        load_head(path)
    path.write_bytes(b"2 2\na 1.5 2.125\nb 3.5 4.5\n")
    assert load_head(path).weight.tolist() == [[1.5, 2.125], [3.5, 4.5]]


@pytest.mark.parametrize("old", ['id="0"', 'to-layer="1"', 'from-port="0"'])
def test_ids_of_openvino_that_are_not_plain_numbers_are_refused(tmp_path: Path, old: str) -> None:
    path = openvino_writer.classifier().save(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, old.replace('="', '="0'), 1))
    with pytest.raises(AmbiguousError, match=r"the id '0[01]' is not written as a whole number usually is"):
        load_head(path)


# ---------------------------------------------------------------------- several files, operators, labels


def test_a_tensor_in_two_parts_of_a_model_is_refused(tmp_path: Path) -> None:
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for name in names:
        (tmp_path / name).write_bytes(safetensors(("lm_head.weight", 0, 80)))
    index = {"weight_map": {"lm_head.weight": names[0], "other": names[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(AmbiguousError, match=r"'lm_head.weight' is in model-00001.* and in model-00002"):
        load_head(tmp_path)


def test_a_configuration_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(("lm_head.weight", 0, 80)))
    (tmp_path / "config.json").write_text('{"model_type": "llama", "model_type": "gpt2"}')
    with pytest.raises(AmbiguousError, match=r"config.json can be read in two ways: the key 'model_type'"):
        load_head(tmp_path)


TENSORS = [T("x", (1, 4)), T("w", (5, 4), data=WEIGHT.tobytes()), T("y", (1, 5))]
LAYER = Op(FULLY_CONNECTED, ("x", "w"), ("y",))


def tflite(
    folder: Path, tensors: list[T], operators: list[Op], change: Callable[[bytes], bytes] = bytes
) -> Path:
    path = tflite_writer.write(folder / "model.tflite", tensors, operators, ("y",))
    path.write_bytes(change(path.read_bytes()))
    return path


def test_a_tensor_of_two_operators_is_refused(tmp_path: Path) -> None:
    path = tflite(
        tmp_path, [*TENSORS, T("v", (5, 4), data=OTHER.tobytes())], [LAYER, replace(LAYER, inputs=("x", "v"))]
    )
    with pytest.raises(AmbiguousError, match="two operators produce tensor 2"):
        load_head(path)


def test_values_inside_and_behind_the_flatbuffer_are_refused(tmp_path: Path) -> None:
    tensors = [replace(each, start=16) if each.name == "w" else each for each in TENSORS]
    with pytest.raises(AmbiguousError, match="tensor 'w' has values inside the FlatBuffer and behind it"):
        load_head(tflite(tmp_path, tensors, [LAYER]))


def test_an_operator_with_two_numbers_is_refused(tmp_path: Path) -> None:
    path = tflite(tmp_path, TENSORS, [replace(LAYER, old=25)])
    with pytest.raises(AmbiguousError, match="is number 25 for old interpreters and 9 for new ones"):
        load_head(path)


def test_four_bit_numbers_of_another_length_than_their_shape_are_refused(tmp_path: Path) -> None:
    weight = T("w", (5, 4), tflite_writer.INT4, bytes(9), scale=(1.0,))
    with pytest.raises(LoadError, match=r"tensor 'w' of shape \(5, 4\) has 9 bytes of int4"):
        load_head(tflite(tmp_path, [TENSORS[0], weight, TENSORS[2]], [LAYER]))


INTEGERS = WEIGHT.astype(np.int8)


def hybrid(weight: np.ndarray, **how: Any) -> list[T]:
    """A layer of integers that takes floats."""
    return [TENSORS[0], tflite_writer.constant("w", weight, **how), TENSORS[2]]


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [
        # What LiteRT 2.3 computes: q · scale with q as int8, without zero points, by the first scale.
        (
            hybrid(WEIGHT.astype(np.uint8), scale=(0.5,), zero=(128,)),
            "for which interpreters take them as int8",
        ),
        (
            hybrid(WEIGHT.astype(np.uint8), scale=(0.5,), zero=(0,)),
            "for which interpreters take them as int8",
        ),
        (hybrid(INTEGERS, scale=(0.5,), zero=(5,)), "int8 with a zero point that is not 0"),
        (hybrid(INTEGERS, scale=(1.0,) * 5, zero=(0, 0, 0, 0, 3)), "int8 with a zero point that is not 0"),
        (hybrid(INTEGERS, scale=(1.0,) * 4, zero=(0,) * 4, axis=1), "with scales along axis 1"),
    ],
    ids=["uint8", "uint8-plain", "zero-point", "zero-points", "axis"],
)
def test_integers_that_interpreters_do_not_take_as_the_file_says_are_refused(
    tmp_path: Path, tensors: list[T], complaint: str
) -> None:
    with pytest.raises(AmbiguousError, match=complaint):
        load_head(tflite(tmp_path, tensors, [LAYER]))


def test_integers_that_are_dequantised_by_an_operator_may_have_a_zero_point(tmp_path: Path) -> None:
    tensors = [*hybrid(INTEGERS, scale=(0.5,), zero=(5,)), T("v", (5, 4))]
    operators = [Op(tflite_writer.DEQUANTIZE, ("w",), ("v",)), replace(LAYER, inputs=("x", "v"))]
    assert load_head(tflite(tmp_path, tensors, operators)).weight.tolist() == ((WEIGHT - 5) / 2).tolist()


def test_options_of_another_operator_are_refused(tmp_path: Path) -> None:
    """Interpreters ignore them, and with them the ReLU that they ask for."""
    layer = replace(LAYER, options=(("Int8", tflite_writer.FUSED_RELU),), kind=1)
    with pytest.raises(AmbiguousError, match=r"options of a FULLY_CONNECTED are said to be those of another"):
        load_head(tflite(tmp_path, TENSORS, [layer]))


@pytest.mark.parametrize(
    ("signature", "complaint"),
    [
        ((1, [2]), "its signature runs graph 1, programs without signatures run graph 0"),
        ((0, [0]), r"a signature takes outputs \[0\], the graph \[2\]"),
    ],
)
def test_a_signature_that_runs_something_else_is_refused(
    tmp_path: Path, signature: tuple[int, list[int]], complaint: str
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite_writer.model_bytes(TENSORS, [LAYER], ("y",), ("x",), [(0, [2])]))
    assert load_head(path).weight.tolist() == WEIGHT.tolist()
    path.write_bytes(tflite_writer.model_bytes(TENSORS, [LAYER], ("y",), ("x",), [signature]))
    with pytest.raises(AmbiguousError, match=complaint):
        load_head(path)


def test_a_label_of_two_elements_of_an_index_is_refused(tmp_path: Path) -> None:
    """hnswlib gives the last of them when asked for the label, and finds both."""
    path = tmp_path / "index.hnsw"
    header = struct.pack("<6QiI3QdQ", 0, 5, 5, 36 + 16 + 8, 36 + 16, 36, 0, 0, 4, 8, 4, 0.72, 10)

    def write(labels: list[int]) -> None:
        elements = [
            bytes(36) + row.tobytes() + struct.pack("<Q", label)
            for row, label in zip(WEIGHT, labels, strict=True)
        ]
        path.write_bytes(header + b"".join(elements) + bytes(20))

    write([1, 2, 3, 4, 5])
    assert load_head(path, tensor="ip").weight.tolist() == WEIGHT.tolist()
    write([1, 2, 3, 2, 5])
    with pytest.raises(AmbiguousError, match="two elements have the label 2"):
        load_head(path, tensor="ip")


def test_a_name_of_two_constants_is_refused(tmp_path: Path) -> None:
    path = tflite(
        tmp_path,
        [*TENSORS, T("v", (5, 4), data=OTHER.tobytes())],
        [LAYER],
        lambda data: data.replace(b"v\0", b"w\0"),
    )
    assert load_head(path).weight.tolist() == WEIGHT.tolist()
    with pytest.raises(AmbiguousError, match="tensors 1 and 3 are both called 'w'"):
        load_head(path, tensor="w")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("vocab.json", '{"a": 0, "b": 1, "a": 2}', "the key 'a' occurs twice"),
        ("vocab.json", '{"a": 0, "b": 1, "c": 1}', "'b' and 'c' have the same number, 1"),
        ("vocab.yml", "a: 0\nb: 1\na: 2\n", "the key 'a' occurs twice"),
        ("tokenizer.json", '{"model": {"vocab": {"a": 0, "b": 0}}}', "'a' and 'b' have the same number, 0"),
        ("config.json", '{"id2label": {"0": "a", "00": "b", "1": "c"}}', "class 0 has two labels"),
        ("inference.yml", "character_dict:\n- a\nlabel_list:\n- b\n", "it has 2 lists"),
        ("labels.txt", "a\rb\rc", "a carriage return without a line feed"),
        (
            "config.json",
            '{"id2label": {"0": "a", "1": "b", "2": "c"}, "labels": ["a", "c", "b"]}',
            "'id2label' and 'labels' list different labels",
        ),
    ],
)
def test_labels_with_two_readings_are_refused(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(AmbiguousError, match=complaint):
        labels_from_file(path, 3)


def added_tokens(*pairs: tuple[int, str]) -> list[dict[str, object]]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": number, "content": token, "special": True, **flags} for number, token in pairs]


def tokenizer_file(folder: Path, vocabulary: dict[str, int], *added: tuple[int, str]) -> Path:
    path = folder / "tokenizer.json"
    steps = dict.fromkeys(
        ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    )
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}
    path.write_text(
        json.dumps({"version": "1.0", **steps, "added_tokens": added_tokens(*added), "model": model})
    )
    return path


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ([(1, "X")], "'b' and 'X' have the same number, 1"),
        ([(1, "c")], "'b' and 'c' have the same number, 1"),
        ([(4, "X")], "the added token 'X' has the number 4, where tokenizers gives it 3"),
        ([(3, "X"), (4, "X")], "the added token 'X' has the number 4, where tokenizers gives it 3"),
        ([(4, "b")], "the added token 'b' has the number 4, where tokenizers gives it 1"),
    ],
)
def test_added_tokens_that_the_library_numbers_otherwise_are_refused(
    tmp_path: Path, added: list[tuple[int, str]], complaint: str
) -> None:
    path = tokenizer_file(tmp_path, {"a": 0, "b": 1, "c": 2}, *added)
    with pytest.raises(AmbiguousError, match=complaint):
        labels_from_file(path, 5)


def test_accepted_tokenizers_give_the_labels_of_the_library(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    rng, accepted = np.random.default_rng(3), 0
    for _ in range(300):
        tokens = "abcdef"[: rng.integers(1, 7)]
        vocabulary = {
            token: number for number, token in enumerate(tokens) if number == 0 or rng.random() < 0.9
        }
        added = [(int(rng.integers(8)), "abXYZ"[rng.integers(5)]) for _ in range(rng.integers(3))]
        path = tokenizer_file(tmp_path, vocabulary, *added)
        try:
            names = labels_from_file(path, 8).names
        except LoadError:
            continue
        theirs = [Tokenizer.from_file(str(path)).id_to_token(number) for number in range(len(names))]
        assert list(names) == [
            f"<unused {number}>" if name is None else name for number, name in enumerate(theirs)
        ]
        accepted += 1
    assert accepted > 50


def test_labels_beside_a_model_that_have_two_readings_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 1, "a": 2}')
    labels, notes = search_beside(tmp_path, 3)
    assert labels is None
    assert "the key 'a' occurs twice" in notes[0]


def test_a_sentencepiece_with_two_texts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(b"\x0a\x06\x0a\x01a\x0a\x01b")
    with pytest.raises(AmbiguousError, match="the piece at byte 2 has two texts"):
        labels_from_file(path, 1)


# ---------------------------------------------------------------------- many files, against the real readers


def test_what_both_accept_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty files of each format; `fuzz_readers.py FORMAT --cases 20000` makes more.

    One process reads all of them: importing the libraries takes longer than reading the files.
    """
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    found = fuzz_readers.compare(sorted(fuzz_files.MAKERS), 0, 40)
    assert found.keys() == fuzz_files.MAKERS.keys()
    assert {name: counts for name, counts in found.items() if counts["which differ"]} == {}
    assert {counts["cases"] for counts in found.values()} == {40}
    assert [name for name, counts in found.items() if not counts.get("same")] == []
    assert [name for name, counts in found.items() if not counts.get("refused by us")] == []


@pytest.mark.parametrize("names", [("W", "weight"), ("W", "bias"), ("weight", "b"), ("W", "b", "bias")])
def test_an_npz_with_names_of_two_kinds_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    arrays = {name: np.ones((3, 2) if name in ("W", "weight") else 3) for name in names}
    np.savez(tmp_path / "head.npz", **arrays)
    with pytest.raises(AmbiguousError, match="can be read in two ways: it has"):
        load_head(tmp_path / "head.npz")
    bias = next((name for name in names if name in ("b", "bias")), None)
    head = load_head(tmp_path / "head.npz", tensor=names[0], bias_tensor=bias)
    assert head.classes == 3
    assert (head.bias is None) == (bias is None)
