"""The tutorial runs at toy size, on any text, and draws its picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_tutorial_trains_four_heads_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "curves.png"
    toy = ["--steps", "4", "--every", "2", "--words", "60", "--features", "3", "--width", "8"]
    script, text = ROOT / "examples" / "train_language_model.py", ROOT / "docs" / "method.md"
    done = subprocess.run(
        [sys.executable, script, text, *toy, "--output", picture], capture_output=True, text=True, check=True
    )
    assert "the curves of 4 layers" in done.stdout
    lines = done.stderr.splitlines()
    for name in ("linear", "mixture of softmaxes", "PLIF", "spherical"):
        assert [line.split(",")[0] for line in lines if line.startswith(f"{name}: ")] == [
            f"{name}: step 2",
            f"{name}: step 4",
        ]
    assert all("0 words can never" in line for line in lines if line.startswith("spherical"))
    assert picture.read_bytes().startswith(b"\x89PNG")
