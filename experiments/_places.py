"""Where experiments read and write."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "experiments"
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "results.md"
FIGURES = ROOT / "docs" / "results"
