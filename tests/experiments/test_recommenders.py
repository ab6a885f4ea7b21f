"""What a user of a trained recommender can reach by editing ratings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from experiments import recommenders
from experiments.harness.cells import Scale
from experiments.models.recommender import _ALPHA, Factors, _implicit, ratings_of, reach_of


@pytest.fixture(autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """implicit warns when BLAS has more; the harness gives every cell one."""
    with threadpool_limits(1, "blas"):
        yield


@pytest.mark.parametrize("user", [3, 7])
def test_a_user_who_edits_nothing_has_the_vector_that_als_solves_for(user: int) -> None:
    ratings = 2 * ratings_of("synthetic")
    model = _implicit("als", 4, 0)
    model.fit(_ALPHA * ratings, show_progress=False)
    expected = model.recalculate_user(user, _ALPHA * ratings[user])
    factors = Factors(model.item_factors.astype(np.float64), model.user_factors, None)
    reach = reach_of(factors, ratings, user, edits=3)
    unedited = reach.base + reach.moves.sum(axis=1)
    assert unedited == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_only_users_of_als_edit() -> None:
    edited = [cell for cell in recommenders.cells(Scale.COMMITTED) if cell["part"] == recommenders.REACH]
    assert {cell["model"] for cell in edited} == {"als"}
