"""What a user can reach: x = base + moves·v, with v in a box or a ball.

A recommender's user who may edit some ratings is of this kind (Dean, Rich & Recht 2020): for least-squares
factors the user's vector is affine in the ratings edited. A point is v itself, and x is defined by it, so
membership is the box's or the ball's own test; the support function is u·base + h_V(movesᵀu).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.balls import Ball
from argmaxable.core.boxes import Box
from argmaxable.core.domain import Domain, as_dyadic, finite_vector, from_hex, hex_of
from argmaxable.core.errors import DomainError
from argmaxable.core.matrices import finite_matrix, matrix_from_record, matrix_record, read_arrays
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, gamma

_ARRAYS = "an .npz file with base, moves, and lo and hi or radius"


@final
@dataclass(frozen=True, eq=False)
class Reach(Domain):
    """x = base + Σ_j v_j · moves[:, j], v in `within`: a box with finite bounds, or a ball."""

    base: Vector
    moves: Matrix
    within: Box | Ball

    kind: ClassVar[str] = "reach"
    is_identity: ClassVar[bool] = False
    has_features: ClassVar[bool] = False

    def __init__(self, base: ArrayLike, moves: ArrayLike, within: Box | Ball) -> None:
        object.__setattr__(self, "base", finite_vector(base, "reach base"))
        object.__setattr__(self, "moves", finite_matrix(np.transpose(moves), "reach moves", "move").T)
        object.__setattr__(self, "within", within)
        if self.base.ndim != 1 or len(self.base) != len(self.moves):
            raise DomainError(
                f"reach needs a base vector with an entry for each row of moves ({len(self.moves)}), found "
                f"shape {self.base.shape}: moves has a row for each feature and a column for each move."
            )
        if not isinstance(within, Box | Ball) or not within.is_bounded:
            raise DomainError(f"moves of a reach need finite bounds or a radius, found {within}.")
        within.require_features(self.moves.shape[1])

    @classmethod
    def read(cls, path: str) -> Self:
        """base, moves (features × moves), and lo and hi or radius of an .npz file; raises DomainError."""
        found = read_arrays(path, _ARRAYS)
        names = set(getattr(found, "files", ()))
        if names not in ({"base", "moves", "lo", "hi"}, {"base", "moves", "radius"}):
            listed = ", ".join(sorted(names)) or "one array without a name"
            raise DomainError(f"{path} is not {_ARRAYS}: found {listed}.")
        with found as arrays:
            try:
                given = {name: arrays[name] for name in names}
            except (ValueError, OSError, EOFError) as error:
                raise DomainError(f"{path} is not {_ARRAYS}: {error}") from error
        if "radius" not in given:
            return cls(given["base"], given["moves"], Box(given["lo"], given["hi"]))
        if given["radius"].size != 1:
            raise DomainError(f"{path}: radius should be one number, found shape {given['radius'].shape}.")
        return cls(given["base"], given["moves"], Ball(float(given["radius"].reshape(()))))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Reach)
            and self.within.as_record() == other.within.as_record()
            and np.array_equal(self.base, other.base)
            and np.array_equal(self.moves, other.moves)
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.moves.shape, self.base.tobytes(), self.moves.tobytes()))

    def require_features(self, features: int) -> None:
        if len(self.base) != features:
            raise DomainError(f"the reach's base has {len(self.base)} features but the head has {features}.")

    @property
    def _count(self) -> int:
        return int(self.moves.shape[1])

    def describe(self) -> str:
        return f"reach of {self._count:,} move{'' if self._count == 1 else 's'}"

    def in_words(self) -> str:
        return (
            "The inputs are those that one user can reach: a given vector plus "
            f"{self._count:,} given move{'' if self._count == 1 else 's'}, each within its limits."
        )

    def scope(self) -> str:
        return f"within reach of {'this one move' if self._count == 1 else f'these {self._count:,} moves'}"

    def as_record(self) -> dict[str, Any]:
        record = {"kind": self.kind, "base": hex_of(self.base), "within": self.within.as_record()}
        return record | matrix_record(self.moves, "moves")

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        within = record["within"]
        kinds: dict[str, type[Box | Ball]] = {Box.kind: Box, Ball.kind: Ball}
        moves = matrix_from_record(record, "moves")
        return cls(from_hex(record["base"]), moves, kinds[within["kind"]].from_record(within))

    # ------------------------------------------------------------------ points v

    def point_size(self, features: int) -> int:
        return self._count

    @property
    def has_origin(self) -> bool:
        return False  # v = 0 is not x = 0, and v can't be scaled at will

    def bounds(self, features: int) -> tuple[Vector, Vector]:
        return self.within.bounds(self._count)

    def ball_radius(self, features: int) -> float:
        return self.within.ball_radius(self._count)

    def contains(self, points: Matrix) -> Mask:
        return self.within.contains(points)

    def contains_exactly(self, z: Dyadic) -> bool:
        return self.within.contains_exactly(z)

    def nearest(self, points: Matrix) -> Matrix:
        return self.within.nearest(points)

    def place(self, points: Matrix) -> tuple[Matrix, Matrix]:
        """base + v·movesᵀ: m products and sums and one more sum round by γ_{m+4} of all sizes, and each
        product may underflow by TINY. The sizes are rounded themselves: γ_{m+8}."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = points @ self.moves.T + self.base
            sizes = np.abs(points) @ np.abs(self.moves).T + np.abs(self.base)
            error = gamma(self._count + 8) * sizes + (self._count + 1) * TINY
        return x, np.where(np.isfinite(sizes), error, np.inf)

    def place_exactly(self, point: Vector | Dyadic) -> tuple[Dyadic, int]:
        return Dyadic.of(self.moves) @ as_dyadic(point) + Dyadic.of(self.base), 1

    # ------------------------------------------------------------------ the support function

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        """u·base + h_V(u·moves), each part from above.

        Products with d terms round by γ_{d+4} of their sizes; u off by `error` moves them by error·|base|
        and error·|moves|, sums of d terms that round as well. The last sum: γ_4 of both parts.
        """
        relative, underflow = gamma(len(self.base) + 4), 2 * len(self.base) * TINY
        size, sizes = np.abs(self.base), np.abs(self.moves)
        with np.errstate(over="ignore", invalid="ignore"):
            doubt = relative * np.abs(u) + error
            linear = u @ self.base + (doubt @ size) * (1 + 2 * relative) + underflow
            astray = (doubt @ sizes) * (1 + 2 * relative) + underflow
            moved = self.within.support_bound(u @ self.moves, astray)
            upper = linear + moved + gamma(4) * (np.abs(linear) + np.abs(moved) + doubt @ size)
        return np.where(np.isnan(upper), np.inf, upper)

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        return self.within.support_is_at_most(self.rows_seen_exactly(u), limit - u @ Dyadic.of(self.base))

    def support_exactly(self, u: Dyadic) -> Dyadic | None:
        moved = self.within.support_exactly(self.rows_seen_exactly(u))
        return None if moved is None else moved + u @ Dyadic.of(self.base)

    # ------------------------------------------------------------------ for search: coordinates are v

    def fixed_part(self, features: int) -> Vector:
        fixed = ~self.within.free_features(self._count)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.base + self.moves[:, fixed] @ self.bounds(features)[0][fixed])

    def fixed_part_exactly(self, features: int) -> Dyadic:
        fixed = ~self.within.free_features(self._count)
        moved = Dyadic.of(self.moves[:, fixed]) @ Dyadic.of(self.bounds(features)[0][fixed])
        return Dyadic.of(self.base) + moved

    def free_features(self, features: int) -> Mask:
        """The moves that have room and lead somewhere."""
        return self.within.free_features(self._count) & self.moves.any(axis=0)

    def rows_seen(self, rows: Matrix) -> Matrix:
        return np.asarray(rows @ self.moves)

    def rows_seen_exactly(self, rows: Dyadic) -> Dyadic:
        return rows @ Dyadic.of(self.moves)
