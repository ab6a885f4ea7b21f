"""Files that are recognised by their first bytes or names but can't be read, and what to use instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions


@dataclass(frozen=True)
class UnreadFormat:
    """What a file is, what to do instead, the suffixes of such files and a pattern of their first bytes."""

    name: str
    advice: str
    suffixes: tuple[str, ...] = ()
    magic: bytes | None = None


_ORIGINAL = (
    "This format is not supported. Use the model it was converted from, such as ONNX, PyTorch or Keras."
)
_UNPACK = "Unpack it and pass the model inside."
_TREES = "Trees have no output layer, so there is nothing to verify."
_COUNTS = "It counts words and has no output layer."
_KALDI = (
    "This format is not supported. Write its output layer as text with nnet3-copy --binary=false, and save "
    "that with numpy.savez('head.npz', W=weight, b=bias)."
)
_GGUF = "Use a GGUF file, or the model on the Hugging Face hub that it was converted from."
_KERAS = "Use the Keras model it was converted from, or convert it with tensorflowjs_converter."

# Whatever they are called, these are not models.
_NOT_MODELS = (
    UnreadFormat(
        "a Git LFS pointer, not the file itself",
        "Fetch the file with git lfs pull.",
        (),
        rb"version https://git-lfs",
    ),
    UnreadFormat(
        "a web page, not a model",
        "The download probably failed or needs you to sign in. Fetch the file again.",
        (".html", ".htm"),
        rb"(?i:\s*<!doctype html|\s*<html)",
    ),
)
_FORMATS = (
    UnreadFormat("a GGML model from before GGUF", _GGUF, (), rb"fmgg|tjgg|algg"),
    UnreadFormat("an ONNX Runtime model", "Use the .onnx file it was made from.", (".ort",), rb".{4}ORTM"),
    UnreadFormat(
        "an ExecuTorch program",
        "Use the .pt2 file of torch.export it was made from.",
        (".pte",),
        rb".{4}ET\d\d",
    ),
    UnreadFormat("a TensorRT engine", _ORIGINAL, (".engine", ".plan", ".trt"), rb"ftrt|ptrt"),
    UnreadFormat("an MNN model", _ORIGINAL, (".mnn",)),
    UnreadFormat("an RKNN model", _ORIGINAL, (".rknn",), rb"RKNN"),
    UnreadFormat("a Paddle Lite model", "Use the PaddlePaddle model it was made from.", (".nb",)),
    UnreadFormat("an Ascend model", _ORIGINAL, (".om",), rb"IMOD"),
    UnreadFormat("a Hailo model", _ORIGINAL, (".hef",), rb"\x01HEF"),
    UnreadFormat("a Qualcomm SNPE model", _ORIGINAL, (".dlc",)),
    UnreadFormat("a TNN model", _ORIGINAL, (".tnnproto", ".tnnmodel")),
    UnreadFormat("Caffe weights", "Convert them to ONNX.", (".caffemodel",)),
    UnreadFormat(
        "a Caffe network without its weights", "Convert it to ONNX with its weights.", (".prototxt",)
    ),
    UnreadFormat("a Darknet model", "Convert it to ONNX.", (".weights",)),
    UnreadFormat("Torch 7 data", "Convert it to ONNX.", (".t7",)),
    UnreadFormat("MXNet parameters", "Export the model to ONNX.", (".params",), rb"\x12\x01\0{6}"),
    UnreadFormat(
        "an MXNet network", "Export the model to ONNX.", (), rb'\s*\{\s*"nodes"\s*:\s*\[\s*\{\s*"op"'
    ),
    UnreadFormat(
        "a TensorFlow.js model", _KERAS, (), rb'\s*\{\s*"(format"\s*:\s*"(layers|graph)-model|modelTopology)"'
    ),
    UnreadFormat(
        "a binary Marian model",
        "Use the .npz file it was made from.",
        (),
        rb"\x01\0{7}[^\0].\0{6}.{2}\0{6}.\x01\0{6}",
    ),
    UnreadFormat("a Kaldi model", _KALDI, (".mdl", ".raw"), rb"\0B(<|Trans|Nnet)"),
    UnreadFormat(
        "an OpenFst graph",
        "It has no output layer. Pass the acoustic model.",
        (".fst",),
        rb"\xd6\xfd\xb2\x7e",
    ),
    UnreadFormat("an n-gram language model", _COUNTS, (".arpa",), rb"\\data\\|mmap lm http"),
    UnreadFormat("a PMML document", "Save the model with skops, or the layer as .npz.", (".pmml",)),
    UnreadFormat("a LightGBM model", _TREES, (), rb"tree\nversion="),
    UnreadFormat("an XGBoost model", _TREES, (".ubj",), rb'binf|\{L\0{7}\x07learner|\s*\{\s*"learner"'),
    UnreadFormat("a CatBoost model", _TREES, (".cbm",), rb"CBM1"),
    UnreadFormat("a MediaPipe task", "Unpack it and pass the .tflite inside.", (".task",)),
    UnreadFormat("a LiteRT-LM bundle", _ORIGINAL, (".litertlm",), rb"LITERTLM"),
    UnreadFormat(
        "an Argos Translate package", "Unpack it and pass the folder model inside.", (".argosmodel",)
    ),
    UnreadFormat("a TorchServe archive", _UNPACK, (".mar",)),
    UnreadFormat(
        "a MATLAB file",
        "Save the matrix with numpy.savez('head.npz', W=weight, b=bias).",
        (".mat",),
        rb"MATLAB 5",
    ),
    UnreadFormat("an Arrow file", "Save it as Parquet.", (".arrow", ".feather"), rb"ARROW1"),
    UnreadFormat(
        "a compressed file",
        _UNPACK,
        (".gz", ".bz2", ".xz", ".zst"),
        rb"\x1f\x8b|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd",
    ),
    UnreadFormat("an archive", _UNPACK, (".tar", ".7z", ".rar"), rb"7z\xbc\xaf|Rar!"),
)
# Archives that no format claims: asked last.
_ZIP = (UnreadFormat("a zip archive", _UNPACK, (".zip",), rb"PK\x03\x04"),)
_ALL = (*_NOT_MODELS, *_FORMATS, *_ZIP)
_LOOKED_AT = 64


def _magic_of(found: tuple[UnreadFormat, ...]) -> bytes:
    return b"|".join(b"(" + each.magic + b")" for each in found if each.magic is not None)


NOT_MODELS = _magic_of(_NOT_MODELS)
MAGIC, ZIP_MAGIC = _magic_of(_FORMATS), _magic_of(_ZIP)
SUFFIXES = tuple(suffix for each in _ALL for suffix in each.suffixes)


def find(path: Path, options: ReadOptions) -> Finding:
    """Always raises LoadError, which says what the file is and what to do."""
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    by_name = [each for each in _ALL if path.name.lower().endswith(each.suffixes or ("\0",))]
    by_bytes = [each for each in _ALL if each.magic is not None and re.match(each.magic, start, re.DOTALL)]
    # A zip archive's first bytes say less than its name.
    known = sorted((*by_bytes, *by_name), key=lambda each: each in _ZIP)[0]
    raise LoadError(f"is {known.name}. {known.advice}")


def find_orbax(path: Path, options: ReadOptions) -> Finding:
    """The same for a checkpoint of Orbax."""
    raise LoadError(
        "is an Orbax checkpoint. This format is not supported. Load it and save the weights as one file: "
        "tree = orbax.checkpoint.PyTreeCheckpointer().restore(path); "
        "open('model.msgpack', 'wb').write(flax.serialization.to_bytes(tree))."
    )
