"""What a mixture proves about a class's largest probability: weights λ on other classes, Σλ = 1, whose
combination bounds the margin of c by t prove P(c) ≤ 1/(1 + exp(H(λ) − t/T)) everywhere, H the entropy.

By Jensen: log Σ exp(v_i) ≥ Σ λ_i v_i + H(λ), with v_i = (s_i − s_c)/T and Σ λ_i (s_i − s_c) ≥ −t.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from argmaxable.check.solutions import exact_weights
from argmaxable.exact.dyadic import Dyadic

if TYPE_CHECKING:
    import flint

    from argmaxable.check.checker import Checker
    from argmaxable.core.ceiling import Mixture

# Precision of the balls: their radii bound every rounding, so that more bits only make the bound tighter.
_BITS = 128


def mixture_bound(checker: Checker, class_id: int, mixture: Mixture, *, temperature: float) -> float:
    """The upper bound on the class's probability that a mixture proves; 1 when it proves nothing.

    The weights of a basis are the only solution of their equations (or `exact_weights` gives none): those for
    which the checker proves the margin.
    """
    certificate = mixture.certificate
    if not checker.proves(class_id, certificate, mixture.margin):
        return 1.0
    weights: Dyadic | None = Dyadic.of(certificate.weights)
    if certificate.basis:
        weights = exact_weights(checker.head, checker.domain, class_id, certificate)
    if weights is None:
        return 1.0
    import flint  # late: few ask about probabilities

    with flint.ctx.workprec(_BITS):
        log_odds = _entropy(weights) - flint.arb(mixture.margin) / flint.arb(temperature)
        probability = 1 / (1 + log_odds.exp())
        # The ball's upper end, and one step more for its conversion to a float.
        upper = math.nextafter(float(probability.upper()), math.inf)
    return min(upper, 1.0) if upper >= 0 else 1.0  # NaN proves nothing


def _entropy(weights: Dyadic) -> flint.arb:
    """H = log Σk − Σ k log k / Σk of weights proportional to the integers k."""
    import flint

    integers = [flint.fmpz(int(k)) for k in weights.integers if k]
    total = sum(integers, flint.fmpz(0))
    parts = [flint.arb(k) * flint.arb(k).log() for k in integers]
    return flint.arb(total).log() - sum(parts, flint.arb(0)) / flint.arb(total)
