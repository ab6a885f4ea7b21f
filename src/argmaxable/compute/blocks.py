"""Slices for work on many rows at a time, so that temporaries stay small."""

from __future__ import annotations

# Scores held at a time: 64 MB in float32, small enough for any laptop, large enough for BLAS.
BLOCK_SCORES = 1 << 24
# Entries of rows held at a time as float64: 1 MB, so that a handful of temporaries stays in the cache.
_BLOCK_ENTRIES = 1 << 17
# The same of points that meet all rows, which may have to be converted anew for each block of points: 8 MB.
_POINT_ENTRIES = 1 << 20


def row_blocks(count: int, features: int) -> list[slice]:
    """Slices for work on rows of the head in float64, which needs several copies of a block."""
    return blocks(count, features, _BLOCK_ENTRIES)


def point_blocks(count: int, features: int) -> list[slice]:
    """Slices of points that are set against all rows of the head."""
    return blocks(count, features, _POINT_ENTRIES)


def blocks(count: int, width: int, most: int = BLOCK_SCORES) -> list[slice]:
    """Slices of rows, each small enough to hold at most `most` numbers at a time."""
    step = max(1, most // max(1, width))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
