"""How often something happened in a sample, and what that says about the rest."""

from __future__ import annotations

from dataclasses import dataclass

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """`count` of `total` in a sample. `bound` is an upper bound on the rate among all inputs like them:
    one-sided, 95 %, by Clopper and Pearson (1 without a sample)."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The rate in the sample; 0 without one."""
        return self.count / self.total if self.total else 0.0

    @property
    def bound(self) -> float:
        if self.count >= self.total:
            return 1.0
        from scipy.special import betaincinv  # late: few need it

        return float(betaincinv(self.count + 1, self.total - self.count, _CONFIDENCE))

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,}"
