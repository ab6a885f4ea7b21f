"""Files in and out: reading the head of a model, whatever its format, and writing a changed one back.

Only the output layer is read; no model is instantiated and nothing in a file is executed.

A new format is one folder here and one line in `registry.BUILT_IN`. Its `reader.py` has a function
`find(path, options) -> Finding`, which says which tensors are the head and reads their values later. An
optional `writer.py` writes a changed head back; `write/` calls it. What several formats share has its own
folder: `checkpoint` for named tensors, `graph` for computation graphs, `aten` for PyTorch's operations,
`labels` for names of classes.

Files are untrusted, so all parsers follow one policy: a file may cost memory and time in proportion to its
own size, whatever sizes it declares, and it must not be able to crash this process.

* Our own code parses a container where that is short: npz, safetensors, GGUF, whisper.cpp's GGML, TFLite,
  fastText, CTranslate2, PaddlePaddle, Tesseract, spaCy's MessagePack, OpenVINO (its XML with Python's expat,
  without document types), TorchScript (its code with Python's parser, never compiled; its pickles with a
  machine of our own) and torch.export. Archives are read with Python's zipfile and tarfile.
* A native library gets a file only after our own code has checked its structure. For ONNX, `onnx/outline.py`
  walks the messages, checks lengths and nesting, and leaves out the weights before protobuf sees the rest.
  For PyTorch, `pytorch/tensors.py` checks the archive and the size of the pickles; then the restricted
  unpickler of a version without known holes reads it.
* A library whose format we can't check runs in a child process with limits on memory and time. That is HDF5,
  which believes every length in a file (`keras/hdf5.py`).

A file in which two programs could read different weights is refused (`ambiguity.py`, `zip_archive.py`): what
is proven must be about what runs.
"""

from __future__ import annotations

from argmaxable.core.head import Head
from argmaxable.models.finding import Finding
from argmaxable.models.model_ref import ModelRef, PathLike, model_name

__all__ = ["ModelRef", "find_head", "load_head", "model_name", "read_head"]


def find_head(
    model: PathLike,
    *,
    tensor: str | None = None,
    bias_tensor: str | None = None,
    transpose: bool = False,
    labels: PathLike | None = None,
    revision: str | None = None,
    subfolder: str | None = None,
    cache_dir: PathLike | None = None,
) -> Finding:
    """What a model says about its output layer: which tensors, labels, and what feeds it. Arguments as for
    `ModelRef`. Raises LoadError when the model can't be read or holds no head.
    """
    return ModelRef(
        model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose, labels=labels,
        revision=revision, subfolder=subfolder, cache_dir=cache_dir,
    ).find()  # fmt: skip


def load_head(
    model: PathLike,
    *,
    tensor: str | None = None,
    bias_tensor: str | None = None,
    transpose: bool = False,
    labels: PathLike | None = None,
    revision: str | None = None,
    subfolder: str | None = None,
    cache_dir: PathLike | None = None,
) -> Head:
    """The head of a model: weight (classes × features), bias and labels. Arguments as for `ModelRef`."""
    return ModelRef(
        model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose, labels=labels,
        revision=revision, subfolder=subfolder, cache_dir=cache_dir,
    ).load()  # fmt: skip


def read_head(finding: Finding, model: PathLike) -> Head:
    """Read what was found, named after the model."""
    return ModelRef(model).read(finding)
