"""Which values an activation function can put out, whatever it is given: a box around features.

Names are in lower case with underscores. A bound that is not a round number is rounded outwards, by more than
float32 arithmetic can err.
"""

from __future__ import annotations

import math

Range = tuple[float, float]

ANYTHING: Range = (-math.inf, math.inf)

RANGES: dict[str, Range] = {
    "elu": (-1.0, math.inf),  # with α = 1
    "exponential": (0.0, math.inf),
    "gelu": (-0.1701, math.inf),  # minimum −0.16997, of the tanh form −0.17004
    "hard_sigmoid": (0.0, 1.0),
    "hard_swish": (-0.375, math.inf),  # x·relu6(x + 3)/6, at x = −3/2
    "mish": (-0.3089, math.inf),  # minimum −0.30884
    "relu": (0.0, math.inf),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
    "selu": (-1.7581, math.inf),  # −1.6733 · 1.0507
    "sigmoid": (0.0, 1.0),
    "silu": (-0.27847, math.inf),  # minimum −0.278465
    "softmax": (0.0, 1.0),
    "softplus": (0.0, math.inf),
    "softsign": (-1.0, 1.0),
    "tanh": (-1.0, 1.0),
}


def intersection(first: Range, second: Range) -> Range:
    return max(first[0], second[0]), min(first[1], second[1])
