"""Formats that are not read are named, with the shortest way to a file that is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from argmaxable import LoadError, find_head


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("ggml-alpaca-7b.bin", b"tjgg" + bytes(99), r"is a GGML model from before GGUF.*GGUF"),
        ("model.ort", b"\x1c\0\0\0ORTM", r"is an ONNX Runtime model.*\.onnx"),
        ("model.pte", b"\x1c\0\0\0ET12", r"is an ExecuTorch program.*\.pt2"),
        ("model.engine", b"ftrt" + bytes(60), r"is a TensorRT engine.*not supported"),
        ("final.mdl", b"\0B<TransitionModel> ", r"is a Kaldi model.*nnet3-copy"),
        ("HCLG.fst", b"\xd6\xfd\xb2\x7e" + bytes(60), r"is an OpenFst graph.*acoustic model"),
        ("lm.binary", b"mmap lm http://kheafield.com/code", r"is an n-gram language model"),
        ("model.onnx.gz", b"\x1f\x8b\x08\0", r"is a compressed file.*Unpack"),
        ("models.zip", b"PK\x03\x04" + bytes(60), r"is a zip archive.*Unpack"),
        ("en_fr.argosmodel", b"PK\x03\x04" + bytes(60), r"is an Argos Translate package.*folder model"),
        ("hand.task", b"PK\x03\x04" + bytes(60), r"is a MediaPipe task.*\.tflite"),
        ("model.caffemodel", b"\n\x03net" + bytes(60), r"is Caffe weights.*ONNX"),
        ("net.params", b"\x12\x01" + bytes(60), r"is MXNet parameters.*ONNX"),
        ("net-symbol.json", b'{\n  "nodes": [\n    {\n      "op": "null"', r"is an MXNet network.*ONNX"),
        ("model.json", b'{"format": "layers-model", "generatedBy"', r"is a TensorFlow\.js model.*Keras"),
        ("yolo.weights", bytes(60), r"is a Darknet model.*ONNX"),
        ("model.pmml", b"<?xml version='1.0'?>", r"is a PMML document"),
        ("model.txt", b"tree\nversion=v4", r"is a LightGBM model\. Trees have no output layer"),
        ("model.json", b'{"learner":{"attributes"', r"is an XGBoost model\. Trees"),
        ("model.cbm", b"CBM1" + bytes(60), r"is a CatBoost model\. Trees"),
        (
            "model.bin",
            struct.pack("<QQQQQQ", 1, 200, 14, 0x104, 2, 4096),
            r"is a binary Marian model.*\.npz",
        ),
        ("model.safetensors", b"<!DOCTYPE html><html>", r"is a web page, not a model.*sign in"),
        ("model.pb", b"version https://git-lfs.github.com/spec/v1\n", r"is a Git LFS pointer.*git lfs pull"),
    ],
)
def test_a_file_is_named_by_its_first_bytes_or_its_name(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(LoadError, match=message):
        find_head(path)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("manifest.ocdbt", r"is an Orbax checkpoint.*to_bytes"),
    ],
)
def test_a_folder_is_named_by_what_is_in_it(tmp_path: Path, inside: str, message: str) -> None:
    (tmp_path / inside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / inside).write_bytes(b"\x08\x07")
    with pytest.raises(LoadError, match=message):
        find_head(tmp_path)
