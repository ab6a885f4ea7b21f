"""Where experiments read and write."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "experiments"
RESULTS = ROOT / "experiments" / "results"
PAGE = ROOT / "docs" / "results.md"
FIGURES = ROOT / "docs" / "results"
