"""The exact algorithm of Grivas, Bogoychev & Lopez 2022: the Chebyshev centre of a class's region.

Maximise the radius r of a ball in which the class wins: (w_i − w_c)·x + r ‖w_i − w_c‖ ≤ b_c − b_i
for every rival i, x in the box. r > 0 means argmaxable; otherwise the multipliers are a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.boxes import Box
from argmaxable.core.errors import DomainError
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.highs import SolverStatus
from argmaxable.prove.lazy import without

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.domain import Domain


@dataclass(frozen=True, eq=False)
class Centre:
    """The region's radius as HiGHS found it, and the evidence that passed the check."""

    radius: float
    point: NDArray[np.float64] | None
    certificate: Certificate | None
    reason: str = ""


def is_finite_box(domain: Domain) -> bool:
    """Whether the Chebyshev programme is a bounded linear one over this domain."""
    return isinstance(domain, Box) and domain.is_bounded


def require_box(domain: Domain) -> None:
    """Raise DomainError unless the programme is bounded."""
    if not is_finite_box(domain):
        raise DomainError(
            f"the Chebyshev programme needs a box with finite bounds, found {domain}. "
            "Pass --domain box:100, or another method."
        )


def chebyshev_centre(
    coordinates: Coordinates, checker: Checker, class_id: int, *, tied: bool = False
) -> Centre:
    """Radius and checked evidence for one class, by one linear programme over all rivals."""
    from argmaxable.prove.highs import maximise  # loads HiGHS, which few runs need

    rivals = without(coordinates.usable, class_id)
    require_box(coordinates.domain)
    lo, hi = coordinates.domain_bounds()
    if not len(rivals):
        middle = coordinates.to_point(((lo + hi) / 2)[None])[0]
        return Centre(math.inf, middle, None)
    normals = coordinates.rows(rivals) - coordinates.rows(np.array([class_id]))
    lengths = np.sqrt((normals * normals).sum(axis=1))
    limits = coordinates.biases[class_id] - coordinates.biases[rivals]
    cost = np.append(np.zeros(coordinates.size), 1.0)
    solution = maximise(
        cost,
        np.hstack([normals, lengths[:, None]]),
        limits,
        np.append(lo, -math.inf),
        np.append(hi, math.inf),
    )
    if solution.status is not SolverStatus.OPTIMAL:
        return Centre(math.nan, None, None, f"HiGHS says {solution.status.name.lower()}")
    radius = float(solution.x[-1])
    point = coordinates.to_point(np.clip(solution.x[None, :-1], lo, hi))
    if checker.gaps(np.array([class_id]), point).settle(np.array([tied]))[0]:
        return Centre(radius, point[0], None)
    certificate = _certificate(coordinates, checker, class_id, rivals, solution.multipliers)
    reason = "" if certificate else f"HiGHS's radius of {radius:.3g} came without evidence that checks"
    return Centre(radius, None, certificate, reason)


def _certificate(
    coordinates: Coordinates,
    checker: Checker,
    class_id: int,
    rivals: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> Certificate | None:
    used = weights > 0
    if not used.any():
        return None
    literal = Certificate(rivals[used], weights[used] / weights[used].sum())
    solved = basis_certificate(coordinates, class_id, literal.classes, literal.weights)
    differences = coordinates.rows(np.array([class_id])) - coordinates.rows(literal.classes)
    u, size = literal.weights @ differences, literal.weights @ np.abs(differences)
    partly = basis_certificate(
        coordinates, class_id, literal.classes, literal.weights, np.flatnonzero(np.abs(u) <= 1e-9 * size)
    )
    for certificate in (literal, solved, partly):
        if certificate is not None and checker.bound(class_id, certificate).upper <= 0:
            return certificate
    return None
