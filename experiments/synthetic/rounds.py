"""How a long run of the synthetic bottleneck begins and ends.

Every head first tries multiples of the learning rates on the first seed of each problem, with the first
number of visits; the lowest KL chooses. Then visits are doubled, each time from a fresh start, until twice as
many have taken less than half a percent off the lowest KL two times in a row (once happens by chance), or
there are 800.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.synthetic.learning import Judged, Learned

RATES = (0.3, 1.0, 3.0)
UNTIL = 0.005
IN_A_ROW = 2
MOST_VISITS = 800


def until_converged(
    attempt: Callable[[int], tuple[Learned, Judged]], visits: int, until: float
) -> tuple[Learned, Judged, list[list[float]]]:
    """Attempts with ever more visits; returns that of the lowest KL, and the KL of all. More visits may end
    higher: no loss here is convex in the weights and the vectors together."""
    learned, judged = attempt(visits)
    by_visits = [[visits, round(judged.divergence, 5)]]
    while not _is_over(by_visits, until):
        visits *= 2
        longer, now = attempt(visits)
        by_visits.append([visits, round(now.divergence, 5)])
        if now.divergence < judged.divergence:
            learned, judged = longer, now
    return learned, judged, by_visits


def _is_over(by_visits: Sequence[Sequence[float]], until: float) -> bool:
    return by_visits[-1][0] >= MOST_VISITS or gains_end(by_visits, until)


def gains_end(by_visits: Sequence[Sequence[float]], until: float) -> bool:
    """Whether none of the last rounds took that share off the lowest KL before it."""
    kl = [each for _, each in by_visits]
    gains = [1 - kl[place] / min(kl[:place]) for place in range(1, len(kl))]
    return len(gains) >= IN_A_ROW and max(gains[-IN_A_ROW:]) < until
