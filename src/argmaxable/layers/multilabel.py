"""DFTLinear: a multi-label output layer that can switch on every set of at most k labels (Grivas, Vergari &
Lopez, AAAI 2024).

Its first 2k + 1 columns are rows of the discrete Fourier transform, points on the trigonometric curve, for
which a set is feasible exactly when it changes sign at most 2k times around the circle. Positive factors of
rows and other angles in the same order change nothing about that, so both may be learned. Further features
and a bias can't take a set away either: x may leave the former at 0 and outgrow the latter.

With thousands of labels neighbours on the circle are closer than floats can tell. On several circles each
label stands at one of about √N places, no two labels at more than one common place (two lines meet in one
point), and q = k + 1 circles of degree k, 2kq + 1 features, serve every set of at most k labels with room for
rounding.
"""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from argmaxable.core.errors import InputError
from argmaxable.layers.norms import as_array


@final
class DFTLinear(nn.Linear):
    """An nn.Linear with a logit for each label, to be trained with BCEWithLogitsLoss.

    `active` is k; features must be at least 2k + 1, and columns beyond are learned as usual. With `learned`
    the angles (their order is kept) and the rows' lengths are too. With `circles` q > k, which take 2kq + 1
    features, the promise survives rounding for more labels.
    """

    def __init__(
        self,
        features: int,
        labels: int,
        *,
        active: int,
        learned: bool = False,
        circles: int = 1,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        needed = 2 * active * circles + 1
        if active < 1 or circles < 1 or features < needed:
            raise InputError(
                f"every set of at most {active} labels takes {needed} features on {circles} "
                f"{'circle' if circles == 1 else 'circles'} (both at least 1), found {features}. Use more "
                "features, or fewer active labels."
            )
        if 1 < circles <= active:
            raise InputError(
                f"every set of at most {active} labels takes more than {active} circles, or one, found "
                f"{circles}."
            )
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        nn.Module.__init__(self)  # not nn.Linear's, which makes a weight of its own
        self.in_features, self.out_features = features, labels
        self.active, self.learned, self.circles = active, learned, circles
        self.curve: Tensor
        self.places: Tensor
        self.register_buffer(
            "places", torch.tensor(places_of(labels, circles), device=device), persistent=False
        )
        size = int(self.places.max()) + 1 if circles > 1 else labels
        self.free = nn.Parameter(torch.zeros(labels, features - needed, **place))
        nn.init.uniform_(self.free, -1 / math.sqrt(features), 1 / math.sqrt(features))
        self.bias = nn.Parameter(torch.zeros(labels, **place)) if bias else None  # type: ignore[assignment]  # as nn.Linear does
        if learned:
            self.gaps = nn.Parameter(torch.zeros(*(() if circles == 1 else (circles,)), size, **place))
            self.lengths = nn.Parameter(torch.zeros(labels, **place))
        else:
            self.register_buffer("curve", self._curve(torch.zeros(circles, size, **place)))

    @property
    def weight(self) -> Tensor:
        """The rows (labels × features) as they are now: what nn.Linear stores, this layer computes."""
        if not self.learned:
            return torch.cat([self.curve, self.free], dim=1)
        return torch.cat([self._curve(self.gaps) * self.lengths.exp()[:, None], self.free], dim=1)

    @weight.setter
    def weight(self, rows: Tensor) -> None:
        """Rows may be assigned, as when a trained layer is replaced; of them the free columns are taken."""
        with torch.no_grad():
            self.free.copy_(rows[:, 2 * self.active * self.circles + 1 :])

    def _curve(self, gaps: Tensor) -> Tensor:
        """Points on the curves: angles grow by shares of the circle, in float64, which rounds least."""
        shares = torch.softmax(gaps.reshape(self.circles, -1).double(), dim=1)
        angles = 2 * math.pi * (torch.cumsum(shares, dim=1) - shares)
        own = torch.stack([angles[k][self.places[:, k]] for k in range(self.circles)], dim=1)
        multiples = own[:, :, None] * torch.arange(
            1, self.active + 1, device=gaps.device, dtype=torch.float64
        )
        pairs = torch.stack([multiples.cos(), multiples.sin()], dim=3).flatten(1)
        return torch.cat([torch.ones_like(own[:, :1]), pairs], dim=1).to(gaps.dtype)

    def forward(self, features: Tensor) -> Tensor:
        return functional.linear(features, self.weight, self.bias)

    @property
    def proven_active(self) -> int:
        """The largest m for which every set of at most m labels is proven feasible for the numbers as stored,
        over all of feature space. Rounding takes something off: where labels are many, neighbouring rows are
        closer than float32, and in time float64, can tell."""
        # Late: layers are trained without proofs far more often than with them.
        from argmaxable.exact.trigonometric import proven_active

        rows = as_array(self.weight)[:, : 2 * self.active * self.circles + 1]
        return proven_active(rows, self.places.cpu().numpy())

    def guarantees(self, active: int | None = None) -> bool:
        """Whether every set of at most `active` labels (default: the layer's own) is proven feasible for
        the numbers as stored. False means only that it is not proven: a set at a time, `argmaxable sets`
        decides."""
        return self.proven_active >= (self.active if active is None else active)

    def extra_repr(self) -> str:
        more = f", circles={self.circles}" if self.circles > 1 else ""
        return f"{super().extra_repr()}, active={self.active}, learned={self.learned}{more}"


def places_of(labels: int, circles: int) -> list[list[int]]:
    """Where each label stands on each circle: on one, at a place of its own; on several, at x + k·y modulo a
    prime p on circle k, with x + p·y the label's number."""
    if circles == 1:
        return [[label] for label in range(labels)]
    prime = max(circles, math.isqrt(max(labels - 1, 0)) + 1)
    while any(prime % divisor == 0 for divisor in range(2, math.isqrt(prime) + 1)):
        prime += 1
    return [
        [(label % prime + k * (label // prime)) % prime for k in range(circles)] for label in range(labels)
    ]
