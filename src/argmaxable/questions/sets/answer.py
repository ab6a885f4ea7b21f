"""What is found about one set, before it becomes a claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argmaxable.core.arrays import Vector
from argmaxable.core.label_sets import SetMethod
from argmaxable.core.verdict import Certificate


@dataclass(frozen=True, eq=False)
class SetAnswer:
    """A checked point or certificate for one set, with the margin that it proves; or neither, and why."""

    point: Vector | None = None
    lower: float = -np.inf
    certificate: Certificate | None = None
    upper: float = np.inf
    method: SetMethod = SetMethod.NONE
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        return self.point is not None or self.certificate is not None
