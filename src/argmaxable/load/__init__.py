"""Reading a head out of a model file, whatever its format.

Only the output layer is read; no model is instantiated and nothing in the file is executed.
"""

from __future__ import annotations

import os
from pathlib import Path

from argmaxable.errors import HeadError, LoadError
from argmaxable.head import Head
from argmaxable.load.registry import ReadOptions, find_format

__all__ = ["load_head"]


def load_head(
    path: str | os.PathLike[str],
    *,
    tensor: str | None = None,
    bias_tensor: str | None = None,
    transpose: bool = False,
) -> Head:
    """The head in a model file: weight (classes × features), bias and labels, named after the file.

    `tensor` and `bias_tensor` name the arrays to take instead of those the format's module finds by
    itself; `transpose` flips the weight for files that store it the other way round.
    Raises LoadError when the file can't be read or holds no head.
    """
    file = Path(path)
    options = ReadOptions(tensor=tensor, bias_tensor=bias_tensor, transpose=transpose)
    try:
        return find_format(file).find(file, options).head(file.name)
    except (LoadError, HeadError) as error:
        raise LoadError(f"{file}: {error}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LoadError(f"{file}: can't be read ({reason}). Check the file and its permissions.") from error
