"""Examples in an .npz file: the features that reached an output layer, and what should have been read there.

For a classifier `features` has a row for each input and `labels` a string for each row, "" for an ordinary
input. For sequences `ends` says where each input's rows end (from 0 on), `spans` has first row and end of
each occurrence and `labels` its label. `source`, a string for each input, is optional.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids
from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.models.npz.reader import as_labels, read_arrays


def read_examples(path: Path) -> Examples:
    """The examples in a file; raises InputError, with the file's name, for what is missing or does not
    fit."""
    if not path.is_file():
        raise InputError(f"--features {path}: no such file.")
    try:
        return _examples(read_arrays(path))
    except InputError as error:
        raise InputError(f"--features {path}: {error}") from error


def _examples(arrays: dict[str, NDArray[Any]]) -> Examples:
    for name in ("features", "labels"):
        if name not in arrays:
            raise InputError(f"no array {name!r} (found: {', '.join(sorted(arrays)) or 'none'}).")
    features, labels = arrays["features"], as_labels(arrays["labels"])
    if features.dtype.kind not in "fiu":
        raise InputError(f"features have dtype {features.dtype}; expected numbers.")
    if features.ndim != 2:
        raise InputError(f"features have shape {features.shape}; expected rows × features.")
    if not len(features):
        raise InputError("no examples: the array 'features' has no rows.")
    is_sequential = "spans" in arrays or "ends" in arrays
    if is_sequential:
        ends, spans = _integers(arrays, "ends"), _integers(arrays, "spans").reshape(-1, 2)
    else:
        if len(labels) != len(features):
            raise InputError(
                f"{len(labels):,} labels for {len(features):,} rows of features; expected one for each, or "
                "the arrays 'ends' and 'spans'."
            )
        ends = np.arange(len(features) + 1)
        rows = np.array([row for row, label in enumerate(labels) if label], np.intp)
        spans, labels = np.stack([rows, rows + 1], axis=1), [label for label in labels if label]
    inputs = len(ends) - 1
    sources = as_labels(arrays["source"]) if "source" in arrays else [""] * inputs
    if len(sources) != inputs:
        raise InputError(f"{len(sources):,} sources for {inputs:,} inputs; expected one for each.")
    with np.errstate(over="ignore"):  # what float32 can't hold is found to be infinite
        small = features.astype(np.float32)
    return Examples(small, ends, tuple(sources), tuple(labels), spans)


def _integers(arrays: dict[str, NDArray[Any]], name: str) -> Ids:
    if name not in arrays:
        raise InputError("sequences need both arrays 'ends' and 'spans'; one of them is missing.")
    if arrays[name].dtype.kind not in "iu":
        raise InputError(f"{name!r} has dtype {arrays[name].dtype}; expected whole numbers.")
    return arrays[name].astype(np.intp)
