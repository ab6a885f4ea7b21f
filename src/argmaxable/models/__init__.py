"""Files in and out: a head read out of a model, whatever its format, and written back.

Only the output layer is read; no model is instantiated and nothing in the file is executed.
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
