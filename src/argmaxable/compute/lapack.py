"""LAPACK, by way of SciPy; the one module that knows how to reach it quickly.

`scipy.linalg` takes 0.3 s to load, nearly all of it for things that nobody here calls. Its extension module
with LAPACK itself takes 0.02 s, so that one is loaded alone. NumPy's own solves are no substitute: a Newton
step takes three times as long with them.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix

_EXTENSION = "scipy.linalg._flapack"


def _load() -> ModuleType:
    """SciPy's LAPACK functions without the package around them; with it where SciPy is built otherwise."""
    if "scipy.linalg" not in sys.modules:
        try:
            return _extension_alone()
        except ImportError:
            pass
    return importlib.import_module("scipy.linalg.lapack")


def _extension_alone() -> ModuleType:
    scipy = importlib.import_module("scipy")  # prepares the search for shared libraries on some systems
    spec = PathFinder.find_spec(_EXTENSION, [f"{folder}/linalg" for folder in scipy.__path__])
    if spec is None or spec.loader is None:
        raise ImportError(f"this SciPy has no {_EXTENSION}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Python has listed it. Whoever imports scipy.linalg later finds it the usual way, bound to its package.
    sys.modules.pop(_EXTENSION, None)
    if not hasattr(module, "dpotrf"):
        raise ImportError(f"{_EXTENSION} has no dpotrf")
    return module


_lapack = _load()
dpotrf, dpotrs, dtrtrs, strtrs = _lapack.dpotrf, _lapack.dpotrs, _lapack.dtrtrs, _lapack.strtrs


def pivoted_triangle(matrix: Matrix) -> tuple[Matrix, Ids]:
    """R and the order of the columns of the QR decomposition with column pivoting: matrix[:, order] = Q R."""
    packed, order, _ = _pivoted(matrix)
    return np.triu(packed), order


def pivoted_qr(matrix: Matrix) -> tuple[Matrix, Matrix, Ids]:
    """Q (as many columns as there are pivots), R and the order: matrix[:, order] = Q R."""
    packed, order, reflectors = _pivoted(matrix)
    size = min(packed.shape)
    room = int(_lapack.dorgqr(packed[:, :size], reflectors, lwork=-1)[1][0])
    orthogonal = _lapack.dorgqr(packed[:, :size], reflectors, lwork=room)[0]
    return orthogonal, np.triu(packed[:size]), order


def _pivoted(matrix: Matrix) -> tuple[Matrix, Ids, Matrix]:
    """Householder reflectors and R packed into one matrix, the order of the columns, reflectors' factors."""
    room = int(_lapack.dgeqp3(matrix, lwork=-1)[3][0])
    packed, pivots, factors, _, _ = _lapack.dgeqp3(matrix, lwork=room)
    return packed, pivots.astype(np.intp) - 1, factors
