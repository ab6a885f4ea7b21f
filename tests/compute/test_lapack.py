"""LAPACK without the rest of `scipy.linalg`: the same functions and numbers, and nobody is disturbed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.lapack

from argmaxable.compute import lapack


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("shape", [(121, 300), (30, 10), (5, 5), (1, 3)])
def test_pivoted_qr_is_scipys(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).standard_normal(shape)
    triangle, order = lapack.pivoted_triangle(matrix)
    orthogonal, economic, same_order = lapack.pivoted_qr(matrix)
    theirs, expected, pivots = scipy.linalg.qr(matrix, mode="economic", pivoting=True)
    assert np.array_equal(order, pivots)
    assert np.array_equal(same_order, pivots)
    assert np.array_equal(triangle[: len(expected)], expected)
    assert np.array_equal(economic, expected)
    assert np.array_equal(orthogonal, theirs)


def test_the_functions_solve_what_they_are_for() -> None:
    rng = np.random.default_rng(1)
    rows, target = rng.standard_normal((30, 7)), rng.standard_normal(7)
    gram = rows.T @ rows
    factor, failed = lapack.dpotrf(gram, lower=1, clean=1)
    assert failed == 0
    assert np.allclose(gram @ lapack.dpotrs(factor, target, lower=1)[0], target)
    assert np.allclose(factor @ lapack.dtrtrs(factor, target, lower=1)[0], target)
    single = lapack.strtrs(factor.astype(np.float32), target.astype(np.float32), lower=1)[0]
    assert single.dtype == np.float32
    assert np.allclose(factor @ single, target, atol=1e-4)


def test_the_package_around_lapack_is_not_loaded() -> None:
    program = "import sys, argmaxable.compute.lapack; print([n for n in sys.modules if 'scipy.linalg' in n])"
    assert run(program) == "[]"


def test_scipy_linalg_loads_as_usual_afterwards() -> None:
    program = (
        "from argmaxable.compute import lapack; import scipy.linalg, scipy.linalg.lapack as theirs; "
        "print(scipy.linalg._flapack.dpotrf is not None, theirs.dpotrf([[4.0]])[0][0, 0], "
        "lapack.dpotrf([[4.0]])[0][0, 0])"
    )
    assert run(program) == "True 2.0 2.0"


def test_a_scipy_built_otherwise_is_reached_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scipy.linalg")
    monkeypatch.setattr(lapack, "_EXTENSION", "scipy.linalg._no_such_extension")
    assert lapack._load() is scipy.linalg.lapack
