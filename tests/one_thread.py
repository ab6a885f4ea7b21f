"""Imported before NumPy and PyTorch: both take one thread in tests and in the processes they start.

Several workers of pytest share the cores, and threads that wait for each other spin: that made some files
four times as slow. Tests of threads ask for more themselves.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
