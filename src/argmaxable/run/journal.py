"""Where a run is stored while it works, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.result import Cost
from argmaxable.core.verdict import Verdict


class Journal(Protocol):
    """What an earlier part of the run left, and where this part's verdicts go as they come in."""

    @property
    def known(self) -> Mapping[int, Verdict]:
        """Verdicts of the earlier part, by class."""

    @property
    def centre(self) -> NDArray[np.float64] | None:
        """The centre that the earlier part's witnesses refer to; it may have been computed elsewhere,
        in another order of summation."""

    @property
    def spent(self) -> Cost:
        """What the earlier part took."""

    def record(self, verdicts: Sequence[Verdict], cost: Cost) -> None:
        """Store these verdicts for good, and what the run has cost so far, the earlier part included.

        Called again with the same verdicts after an interruption: a verdict stored already stays.
        """


class NoJournal:
    """The journal of a run that is stored nowhere."""

    known: Mapping[int, Verdict] = {}
    centre = None
    spent = Cost()

    def record(self, verdicts: Sequence[Verdict], cost: Cost) -> None:
        pass


NO_JOURNAL = NoJournal()
