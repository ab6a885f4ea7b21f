"""The table of a solve's rows: what it holds after it has grown, and its Gram matrices."""

from __future__ import annotations

import numpy as np

from argmaxable.prove.row_table import RowTable

ROWS = np.random.default_rng(0).standard_normal((40, 5))


def grown() -> RowTable:
    table = RowTable(ROWS[:10])
    assert table.single.shape == (10, 6)  # converted before more rows come in
    for first in range(10, 40, 6):
        table.append(ROWS[first : first + 6])
    return table


def test_a_table_that_grew_is_the_table_of_all_rows() -> None:
    table = grown()
    assert table.double.tolist() == np.hstack([ROWS, np.ones((40, 1))]).tolist()
    assert table.single.tolist() == table.double.astype(np.float32).tolist()


def test_sizes_and_lengths_of_rows_follow_the_table_as_it_grows() -> None:
    table = RowTable(ROWS[:10])
    for count in (10, 40):
        if count > table.count:
            table.append(ROWS[table.count : count])
        np.testing.assert_allclose(table.sizes, np.abs(ROWS[:count]).sum(axis=1), rtol=1e-15)
        np.testing.assert_allclose(table.lengths, np.linalg.norm(ROWS[:count], axis=1), rtol=1e-15)


def test_gram_matrices_weight_the_rows() -> None:
    table, scale = grown(), np.linspace(0.1, 4.0, 40)
    expected = table.double.T @ (scale[:, None] * table.double)
    np.testing.assert_allclose(table.gram(scale), expected, rtol=1e-12, atol=1e-12)
    upper = np.triu_indices(6)  # all that is ever read
    single = table.gram_by_float32(scale)
    np.testing.assert_allclose(single[upper], expected[upper], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(single[:, -1], expected[:, -1], rtol=1e-12, atol=1e-12)


def test_a_view_taken_before_a_table_grows_stays_as_it_was() -> None:
    table = RowTable(ROWS[:10])
    before = table.double
    table.append(ROWS[10:])
    assert before.tolist() == table.double[:10].tolist()
