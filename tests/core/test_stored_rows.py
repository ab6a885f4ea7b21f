"""Quantised matrices that stay in their file: the same head, row by row."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf_writer import write

import argmaxable as am
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.gguf.header import read_header
from argmaxable.models.gguf.tensors import quantised_rows, read_matrix

ROWS, COLUMNS = 300, 32


@pytest.fixture(params=[Type.Q8_0, Type.Q4_0, Type.Q5_1])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> StoredRows:
    values = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    values[7] = values[9]
    packed = gguf.quants.quantize(values, request.param)
    path = write(tmp_path / "model.gguf", {"output.weight": (packed, request.param)})
    return quantised_rows(read_header(path, ()).tensors["output.weight"])


def test_every_way_to_ask_for_rows_gives_those_of_the_whole(stored: StoredRows) -> None:
    whole = np.asarray(stored)
    assert whole.shape == stored.shape == (ROWS, COLUMNS)
    ids = np.array([5, 299, 5, 0])
    for key in (
        slice(None),
        slice(3, 10),
        slice(-5, None),
        ids,
        17,
        -1,
        np.intp(4),
        ids > 4,
        (ids, slice(0, 3)),
    ):
        key = np.resize(key, ROWS) if isinstance(key, np.ndarray) and key.dtype == bool else key
        np.testing.assert_array_equal(stored[key], whole[key])
    np.testing.assert_array_equal(stored[4, 5], whole[4, 5])
    np.testing.assert_array_equal(stored.T, whole.T)
    np.testing.assert_array_equal(stored.astype(np.float64), whole.astype(np.float64))


def test_stored_rows_take_less_than_floats(stored: StoredRows) -> None:
    assert stored.nbytes < ROWS * COLUMNS * 2


def test_a_head_over_stored_rows_is_the_head_of_the_floats(stored: StoredRows) -> None:
    lazy, held = am.Head(stored), am.Head(np.asarray(stored))
    assert lazy.weight is stored
    assert lazy.sha256() == held.sha256()
    assert (lazy.classes, lazy.features) == (ROWS, COLUMNS)
    np.testing.assert_array_equal(lazy.rows(np.array([3, 1])), held.rows(np.array([3, 1])))


@pytest.mark.parametrize("workers", [1, 2])
def test_verdicts_over_stored_rows_are_those_over_floats(stored: StoredRows, workers: int) -> None:
    lazy = am.verify(am.Head(stored), am.Ball(3), engine=am.Engine(workers=workers))
    held = am.verify(am.Head(np.asarray(stored)), am.Ball(3), engine=am.Engine(workers=1))
    assert [v.status for v in lazy.verdicts] == [v.status for v in held.verdicts]
    assert any(verdict.tie_group for verdict in lazy.unargmaxable)


def test_small_matrices_become_floats_at_once(tmp_path: Path) -> None:
    packed = gguf.quants.quantize(np.ones((4, 32), np.float32), Type.Q8_0)
    path = write(tmp_path / "model.gguf", {"output.weight": (packed, Type.Q8_0)})
    tensor = read_header(path, ()).tensors["output.weight"]
    assert isinstance(read_matrix(tensor, transposed=False), np.ndarray)


def test_a_scale_that_is_no_number_is_refused(tmp_path: Path) -> None:
    packed = gguf.quants.quantize(np.ones((4, 32), np.float32), Type.Q8_0)
    packed[2, :2] = np.frombuffer(np.float16(np.nan).tobytes(), np.uint8)
    path = write(tmp_path / "model.gguf", {"output.weight": (packed, Type.Q8_0)})
    tensor = read_header(path, ()).tensors["output.weight"]
    with pytest.raises(am.HeadError, match="class 2"):
        am.Head(quantised_rows(tensor))
