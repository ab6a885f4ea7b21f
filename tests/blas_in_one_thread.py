"""Imported before NumPy: BLAS takes one thread in tests and in the processes they start.

Several workers of pytest share the cores. Threads of BLAS that wait for each other spin: that made some files
four times as dear. Tests of threads ask for more themselves.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
