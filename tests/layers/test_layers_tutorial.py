"""The tutorial runs at toy size, on any text, and draws its picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_the_tutorial_trains_four_heads_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "curves.png"
    toy = ["--steps", "4", "--every", "2", "--words", "60", "--features", "3", "--width", "8"]
    script, text = ROOT / "examples" / "train_language_model.py", ROOT / "docs" / "method.md"
    monkeypatch.setattr("sys.argv", [str(script), str(text), *toy, "--output", str(picture)])
    runpy.run_path(str(script), run_name="__main__")
    done = capsys.readouterr()
    assert "the curves of 4 layers" in done.out
    lines = done.err.splitlines()
    for name in ("linear", "mixture of softmaxes", "PLIF", "spherical"):
        assert [line.split(",")[0] for line in lines if line.startswith(f"{name}: ")] == [
            f"{name}: step 2",
            f"{name}: step 4",
        ]
    assert all("0 words can never" in line for line in lines if line.startswith("spherical"))
    assert picture.read_bytes().startswith(b"\x89PNG")
