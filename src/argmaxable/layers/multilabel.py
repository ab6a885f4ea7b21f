"""DFTLinear: a multi-label output layer that can switch on every set of at most k labels (Grivas, Vergari &
Lopez, AAAI 2024).

Its first 2k + 1 columns are rows of the discrete Fourier transform, points on the trigonometric curve, for
which a set is feasible exactly when it changes sign at most 2k times around the circle. Positive factors of
rows and other angles in the same order change nothing about that, so both may be learned. Further features
and a bias can't take a set away either: x may leave the former at 0 and outgrow the latter.
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
    the angles (their order is kept) and the rows' lengths are too.
    """

    def __init__(
        self,
        features: int,
        labels: int,
        *,
        active: int,
        learned: bool = False,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if active < 1 or features < 2 * active + 1:
            raise InputError(
                f"every set of at most {active} labels takes {2 * active + 1} features (active at "
                "least 1), found "
                f"{features}. Use more features, or fewer active labels."
            )
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        nn.Module.__init__(self)  # not nn.Linear's, which makes a weight of its own
        self.in_features, self.out_features = features, labels
        self.active, self.learned = active, learned
        self.curve: Tensor
        self.free = nn.Parameter(torch.zeros(labels, features - 2 * active - 1, **place))
        nn.init.uniform_(self.free, -1 / math.sqrt(features), 1 / math.sqrt(features))
        self.bias = nn.Parameter(torch.zeros(labels, **place)) if bias else None  # type: ignore[assignment]  # as nn.Linear does
        if learned:
            self.gaps = nn.Parameter(torch.zeros(labels, **place))
            self.lengths = nn.Parameter(torch.zeros(labels, **place))
        else:
            self.register_buffer("curve", self._curve(torch.zeros(labels, **place)))

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
            self.free.copy_(rows[:, 2 * self.active + 1 :])

    def _curve(self, gaps: Tensor) -> Tensor:
        """Points on the curve: the angles grow by shares of the circle, in float64, which rounds least."""
        shares = torch.softmax(gaps.double(), dim=0)
        angles = 2 * math.pi * (torch.cumsum(shares, dim=0) - shares)
        multiples = angles[:, None] * torch.arange(
            1, self.active + 1, device=gaps.device, dtype=torch.float64
        )
        pairs = torch.stack([multiples.cos(), multiples.sin()], dim=2).flatten(1)
        return torch.cat([torch.ones_like(angles)[:, None], pairs], dim=1).to(gaps.dtype)

    def forward(self, features: Tensor) -> Tensor:
        return functional.linear(features, self.weight, self.bias)

    @property
    def proven_active(self) -> int:
        """The largest m for which every set of at most m labels is proven feasible for the numbers as stored,
        over all of feature space. Rounding takes something off: where labels are many, neighbouring rows are
        closer than float32, and in time float64, can tell."""
        # Late: layers are trained without proofs far more often than with them.
        from argmaxable.exact.trigonometric import proven_active

        return proven_active(as_array(self.weight)[:, : 2 * self.active + 1])

    def guarantees(self, active: int | None = None) -> bool:
        """Whether every set of at most `active` labels (default: the layer's own) is proven feasible for
        the numbers as stored. False means only that it is not proven: a set at a time, `argmaxable sets`
        decides."""
        return self.proven_active >= (self.active if active is None else active)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, active={self.active}, learned={self.learned}"
