"""Linear layers in which every class can be predicted, each over the domain it states (Grivas et al. 2022,
appendix D).

Equal norms: no bias, all rows on a sphere, so every distinct row is a vertex of the hull; needs 0 in the
interior of the domain. Voronoi: b = −‖w‖²/2 makes s_i(x) = ‖x‖²/2 − ‖x − w_i‖²/2, so class c wins at x =
w_c; needs the rows in the domain. Behind a norm x = γ∘z + β neither holds of w, but both hold of what z sees
of it, v = Π(γ∘w) (Π removes the mean, for LayerNorm), once the bias takes w·β off.

All this is so in exact arithmetic, for rows that differ by more than their rounding; `guarantees` proves the
stored numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from argmaxable.core.balls import Ball, RMSNorm
from argmaxable.core.boxes import Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.layers.norms import Norm, as_array, norm_of

# Rows meant to lie inside a ball stay inside it by this, more than rounding can add.
_INSIDE = 1 - 1e-6


class Prevention(nn.Module, ABC):
    """Turns free rows into rows of which none is unargmaxable, as `torch.nn.utils.parametrize` does."""

    needs: str  # what the guarantee asks of the features

    def __init__(self, features: int, behind: nn.Module | Norm | None) -> None:
        super().__init__()
        self.features = features
        self.behind = None if behind is None else norm_of(behind, features)

    @abstractmethod
    def forward(self, raw: Tensor) -> Tensor:
        """The rows used, from the free ones (classes × features)."""

    @abstractmethod
    def bias_of(self, rows: Tensor) -> Tensor | None:
        """The bias that goes with the rows."""

    @abstractmethod
    def domain_of(self, rows: Tensor) -> Domain:
        """A domain over which every class with a distinct row is argmaxable."""

    @abstractmethod
    def holds_over(self, rows: Tensor, domain: Domain) -> bool:
        """Whether the guarantee covers this domain. False means only that nothing is promised."""

    def right_inverse(self, rows: Tensor) -> Tensor:
        """Any rows may be assigned: they are what `forward` starts from."""
        return rows

    def seen(self, rows: Tensor) -> Tensor:
        """v = Π(γ∘w), the rows as the normalised vector z sees them; without a norm the rows themselves."""
        if self.behind is None:
            return rows
        gain = self.behind.gain()
        if gain is not None:
            rows = rows * gain
        return rows - rows.mean(1, keepdim=True) if self.behind.removes_mean else rows

    def shift(self) -> Tensor | None:
        """β of the norm."""
        return None if self.behind is None else self.behind.shift()

    def norm_domain(self) -> Domain | None:
        """What the norm can put out, with the gain and shift it has now."""
        return None if self.behind is None else self.behind.domain()


@final
class EqualNorms(Prevention):
    """Rows of one norm, and no bias but the one that takes off the shift of a LayerNorm."""

    needs = "0 in the interior of the domain; behind a norm, the output of that norm"

    def __init__(self, features: int, *, radius: float, behind: nn.Module | Norm | None = None) -> None:
        super().__init__(features, behind)
        if not (math.isfinite(radius) and radius > 0):
            raise InputError(f"the rows' norm is a finite number above 0, found {radius}.")
        self.radius = radius

    def forward(self, raw: Tensor) -> Tensor:
        return raw * (self.radius / _norms(self.seen(raw), of_zero=self.radius))

    def bias_of(self, rows: Tensor) -> Tensor | None:
        shift = self.shift()
        return None if shift is None else -(rows @ shift)

    def domain_of(self, rows: Tensor) -> Domain:
        # Without a bias, all domains with 0 in their interior give the same verdicts.
        return self.norm_domain() or Everywhere()

    def holds_over(self, rows: Tensor, domain: Domain) -> bool:
        if not bool(self.seen(rows).any(1).all()):
            return False  # a row of zeros lies inside the sphere
        if self.behind is not None:
            return domain == self.norm_domain()
        if domain.is_identity:
            return domain.surrounds_origin
        if isinstance(domain, RMSNorm):
            gain, shift = domain.gains(self.features), domain.shifts(self.features)
            return bool((gain != 0).all() and ((shift / gain) ** 2).sum() < _INSIDE * self.features)
        return False


@final
class Voronoi(Prevention):
    """Rows within a radius, and the bias −‖v‖²/2 (minus w·β), so that each class wins at its own row."""

    needs = "the rows in the domain; behind a norm, the output of that norm"

    def __init__(
        self, features: int, *, radius: float | None = None, behind: nn.Module | Norm | None = None
    ) -> None:
        super().__init__(features, behind)
        if radius is not None and not (math.isfinite(radius) and radius > 0):
            raise InputError(f"the rows' largest norm is a finite number above 0, found {radius}.")
        if behind is not None:  # z lies in the ball of radius √features
            radius = min(math.inf if radius is None else radius, math.sqrt(features))
        self.radius = radius

    def forward(self, raw: Tensor) -> Tensor:
        if self.radius is None:
            return raw
        return raw * (_INSIDE * self.radius / _norms(self.seen(raw), of_zero=self.radius)).clamp(max=1.0)

    def bias_of(self, rows: Tensor) -> Tensor:
        bias = -self.seen(rows).square().sum(1) / 2
        shift = self.shift()
        return bias if shift is None else bias - rows @ shift

    def domain_of(self, rows: Tensor) -> Domain:
        longest = float(_norms(rows.detach().double(), of_zero=1e-300).max()) / _INSIDE
        return self.norm_domain() or Ball(longest if self.radius is None else self.radius)

    def holds_over(self, rows: Tensor, domain: Domain) -> bool:
        if self.behind is not None:
            return domain == self.norm_domain()
        return domain.is_identity and bool(domain.contains(as_array(rows)).all())


# ---------------------------------------------------------------------- layers


def make_spherical(
    layer: nn.Linear, *, radius: float | None = None, behind: nn.Module | Norm | None = None
) -> nn.Linear:
    """Give the layer rows of equal norm (default: their mean norm now) in place; its bias goes.

    `behind` is the norm in front of the layer, an nn.LayerNorm or any RMS norm. Returns the layer.
    """
    _require_linear(layer)
    prevention = EqualNorms(layer.in_features, radius=1.0 if radius is None else radius, behind=behind)
    if radius is None:
        prevention.radius = float(_norms(prevention.seen(layer.weight.detach()), of_zero=1.0).mean())
    return _prevent(layer, prevention)


def make_voronoi(
    layer: nn.Linear, *, radius: float | None = None, behind: nn.Module | Norm | None = None
) -> nn.Linear:
    """Give the layer the bias −‖w‖²/2 in place of its own, and rows within `radius` (behind a norm
    √features).

    `behind` is the norm in front of the layer, an nn.LayerNorm or any RMS norm. Returns the layer.
    """
    _require_linear(layer)
    return _prevent(layer, Voronoi(layer.in_features, radius=radius, behind=behind))


def prevention_of(layer: nn.Module) -> Prevention:
    """How a layer keeps every class argmaxable; raises InputError when it doesn't."""
    if parametrize.is_parametrized(layer, "weight"):
        for step in layer.parametrizations.weight:  # type: ignore[union-attr]
            if isinstance(step, Prevention):
                return step
    raise InputError(
        f"{type(layer).__name__} does not constrain its rows. Build a SphericalLinear or VoronoiLinear, or "
        "call make_spherical or make_voronoi on an nn.Linear."
    )


class _Guarded(nn.Linear):
    """What both layers say about themselves."""

    def reset_parameters(self) -> None:
        """Fresh rows, brought to their kind; the bias follows from them."""
        if not parametrize.is_parametrized(self, "weight"):  # nn.Linear's constructor calls this
            super().reset_parameters()
            return
        rows = torch.empty_like(self.weight)
        nn.init.kaiming_uniform_(rows, a=math.sqrt(5))  # as nn.Linear starts
        self.weight = rows

    def extra_repr(self) -> str:
        prevention = prevention_of(self)
        radius, behind = getattr(prevention, "radius", None), prevention.behind
        norm = None if behind is None else type(behind.module).__name__
        return f"features={self.in_features}, classes={self.out_features}, radius={radius}, behind={norm}"

    @property
    def domain(self) -> Domain:
        """A domain over which every class with a distinct row is argmaxable, for the current weights."""
        return prevention_of(self).domain_of(self.weight.detach())

    def guarantees(self, domain: Domain) -> bool:
        """Whether every class is argmaxable over this domain: by theory, and proven of the stored numbers.

        Rounding, above all to half precision, can put a row onto another one or inside the hull. So the
        weights are verified as they are; that takes about one product of all rows with all rows.
        """
        if not prevention_of(self).holds_over(self.weight.detach(), domain):
            return False
        # Late: layers are trained without the prover far more often than with it.
        from argmaxable.core.head import Head
        from argmaxable.questions.argmax import verify
        from argmaxable.run.plan import Engine

        result = verify(Head.from_module(self), domain, engine=Engine(workers=1))
        return len(result.argmaxable) == result.verified


@final
class SphericalLinear(_Guarded):
    """An nn.Linear without bias whose rows have equal norms."""

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        radius: float = 1.0,
        behind: nn.Module | Norm | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(features, classes, bias=False, device=device, dtype=dtype)
        make_spherical(self, radius=radius, behind=behind)


@final
class VoronoiLinear(_Guarded):
    """An nn.Linear whose bias is −‖w‖²/2: the nearest row wins."""

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        radius: float | None = None,
        behind: nn.Module | Norm | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(features, classes, bias=False, device=device, dtype=dtype)
        make_voronoi(self, radius=radius, behind=behind)


class _BiasOfRows(nn.Module):
    """The bias as a function of the layer's weight; what is stored under its name is not used."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self._layer = (layer,)  # not a submodule: the layer already contains this one

    def forward(self, stored: Tensor) -> Tensor:
        layer = self._layer[0]
        bias = prevention_of(layer).bias_of(layer.weight)
        assert bias is not None
        return bias

    def right_inverse(self, bias: Tensor) -> Tensor:
        """An assigned bias has no effect: the rows decide."""
        return torch.zeros_like(bias)


def _prevent(layer: nn.Linear, prevention: Prevention) -> nn.Linear:
    parametrize.register_parametrization(layer, "weight", prevention)
    del layer.bias
    if prevention.bias_of(layer.weight) is None:
        layer.register_parameter("bias", None)
    else:
        # A buffer: the layer has a bias, but none to learn.
        layer.register_buffer("bias", layer.weight.new_zeros(layer.out_features))
        parametrize.register_parametrization(layer, "bias", _BiasOfRows(layer))
    return layer


def _require_linear(layer: nn.Module) -> None:
    if not isinstance(layer, nn.Linear):
        raise InputError(f"expected an nn.Linear, found {type(layer).__name__}.")
    if parametrize.is_parametrized(layer):
        raise InputError(f"{type(layer).__name__} is parametrized already; remove that first.")


def _norms(rows: Tensor, *, of_zero: float) -> Tensor:
    """Of each row (classes × 1). A row of zeros has no direction: divided by the norm given for it, it stays
    zero, and its gradient an ordinary one, so that learning gives it a direction."""
    norms: Tensor = rows.norm(dim=1, keepdim=True)
    return torch.where(norms > 0, norms, of_zero)
