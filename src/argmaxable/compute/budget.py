"""How much memory a run may take, and what that means for the float32 copy of the rows."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass

from argmaxable.core.errors import InputError

# What a process takes before it holds anything of a head: the interpreter, its libraries and the blocks
# of products (measured: 0.25 GB, with room).
PROCESS_BYTES = 400 * 2**20
# What a solve takes at most, in bytes for each feature squared (measured at 1,024 and 2,048 features).
SOLVE_BYTES = 180
# Without a limit, rows are held while they take no more than this share of the memory that is free.
_SHARE_OF_FREE = 0.4
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}


@dataclass(frozen=True)
class Compute:
    """Where the batched products run and how many bytes this process may hold for them (None: its choice)."""

    device: str = "numpy"
    memory: int | None = None

    def bytes_for_rows(self) -> int:
        """How much the float32 copy of the rows may take."""
        return self.memory if self.memory is not None else int(_SHARE_OF_FREE * free_memory())


def parse_bytes(text: str) -> int:
    """A number of bytes such as 4GB, 800M or 6GiB; raises InputError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", text.lower())
    if match is None or (match[2] or "") not in _UNITS:
        raise InputError(f"can't read '{text}' as an amount of memory. Write for example 4GB or 800MB.")
    size = float(match[1]) * _UNITS[match[2] or ""]
    if not math.isfinite(size):
        raise InputError(
            f"'{text[:20]}…' is more memory than can be counted. Write for example 4GB or 800MB."
        )
    return int(size)


def free_memory() -> int:
    """Bytes that programs can still take on this machine, roughly."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 * 2**30
