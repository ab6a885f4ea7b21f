"""Names for the arrays that everything is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Vector32 = NDArray[np.float32]
Matrix32 = NDArray[np.float32]
Ids = NDArray[np.intp]  # numbers of classes, features or positions
Mask = NDArray[np.bool_]
