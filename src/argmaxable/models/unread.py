"""Formats that are told by their first bytes or names but are not read, and the way to a file that is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

_ORIGINAL = "Use the model that it was converted from: ONNX, PyTorch, Keras and others are read."
_UNPACK = "Unpack it, and pass the model inside."
_NO_LAYER = "A tree has no output layer."
_OF_KALDI = (
    "Write its output layer as text with nnet3-copy --binary=false, and save that with "
    "numpy.savez('head.npz', W=weight, b=bias)."
)
_GGUF = "Use a GGUF file, or the model on the Hugging Face hub that it was converted from."
_COMPRESSED = rb"\x1f\x8b|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd"
# What a format is called, the suffixes of its files, their first bytes (a regular expression), and advice.
_FORMATS: tuple[tuple[str, tuple[str, ...], bytes | None, str], ...] = (
    ("a Git LFS pointer", (), rb"version https://git-lfs", "Fetch the file itself with git lfs pull."),
    ("a model of GGML's from before GGUF", (), rb"fmgg|tjgg|algg", _GGUF),
    ("a model of ONNX Runtime's own format", (".ort",), rb".{4}ORTM", "Use the .onnx it was made from."),
    ("a program of ExecuTorch", (".pte",), rb".{4}ET\d\d", "Use the .pt2 of torch.export it was made from."),
    ("an engine of TensorRT", (".engine", ".plan"), rb"ftrt|ptrt", _ORIGINAL),
    ("a model of MNN", (".mnn",), None, _ORIGINAL),
    ("a model of RKNN", (".rknn",), rb"RKNN", _ORIGINAL),
    ("weights of Caffe", (".caffemodel",), None, "Convert it to ONNX."),
    ("a model of Kaldi", (".mdl", ".raw"), rb"\0B(<|Trans|Nnet)", _OF_KALDI),
    ("a model of LightGBM, which is made of trees", (), rb"tree\nversion=", _NO_LAYER),
    ("a model of XGBoost, which is made of trees", (".ubj",), rb"binf", _NO_LAYER),
    ("a compressed file", (".gz", ".bz2", ".xz", ".zst"), _COMPRESSED, _UNPACK),
    ("an archive", (".tar", ".7z", ".rar"), rb"7z\xbc\xaf|Rar!", _UNPACK),
)
SUFFIXES = tuple(suffix for _, suffixes, _, _ in _FORMATS for suffix in suffixes)
MAGIC = b"|".join(b"(" + magic + b")" for _, _, magic, _ in _FORMATS if magic is not None)
_LOOKED_AT = 64


def find(path: Path, options: ReadOptions) -> Finding:
    """Always raises LoadError, which says what the file is and what to do."""
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    by_bytes = [each for each in _FORMATS if each[2] is not None and re.match(each[2], start, re.DOTALL)]
    by_name = [each for each in _FORMATS if path.suffix.lower() in each[1]]
    name, _, _, advice = (by_bytes or by_name)[0]
    raise LoadError(f"is {name}, which is not read here. {advice}")


def find_orbax(path: Path, options: ReadOptions) -> Finding:
    """The same for a checkpoint of Orbax."""
    raise LoadError(
        "is a checkpoint of Orbax, which is not read here. Load it and save the weights as one file: "
        "open('model.msgpack', 'wb').write(flax.serialization.to_bytes(params))."
    )
