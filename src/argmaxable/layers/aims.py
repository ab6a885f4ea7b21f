"""What the loss of each token aims at: a class, or weights a_c of all classes in −Σ_c a_c log P(c).

One class is the usual case and has short formulas. Smoothed labels, probabilities as targets, and class
weights together with either make the general one. All means what `torch.nn.functional.cross_entropy` means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Aims:
    """`targets` are n classes or n × classes of probabilities, `class_weights` one for each class.

    `z_loss` times the square of log Σ exp(logits) is added to each token's loss.
    """

    targets: Tensor
    class_weights: Tensor | None = None
    smoothing: float = 0.0
    z_loss: float = 0.0

    @property
    def is_one_class(self) -> bool:
        return self.targets.ndim == 1 and not self.smoothing

    def part(self, part: slice | Tensor) -> Aims:
        """Of some tokens."""
        return replace(self, targets=self.targets[part])

    def token_weights(self, dtype: torch.dtype) -> Tensor | None:
        """The weight of each token's class; None where all count 1 (n)."""
        if self.class_weights is None or self.targets.ndim == 2:
            return None
        return self.class_weights.to(dtype)[self.targets]

    def count(self, dtype: torch.dtype) -> float:
        """What a mean divides by: the tokens, or the sum of their classes' weights."""
        weights = self.token_weights(dtype)
        return float(len(self.targets)) if weights is None else float(weights.sum())

    def dense(self, classes: int, dtype: torch.dtype) -> Tensor:
        """a_c of these tokens (n × classes)."""
        everywhere = self.smoothing / classes
        if self.targets.ndim == 2:
            wanted = self.targets.to(dtype) * (1 - self.smoothing) + everywhere
        else:
            own = torch.full_like(self.targets, 1 - self.smoothing, dtype=dtype)[:, None]
            base = own.new_full((1, 1), everywhere).expand(len(self.targets), classes)
            wanted = base.scatter_add(1, self.targets[:, None], own)
        return wanted if self.class_weights is None else wanted * self.class_weights.to(dtype)
