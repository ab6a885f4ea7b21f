"""Files: written in each format, the same every time, with text as text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import argmaxable as am
from argmaxable.report.figures import decision_regions, plif, save
from argmaxable.report.figures.style import FORMATS, drawing, grouped, legible, require_format

MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
HEAD = am.Head([[1.0, 0.2], [-0.7, 0.9], [-0.4, -1.0], [-0.15, 0.1]], labels="abcd")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_figure_is_written_in_the_format_of_its_suffix(suffix: str, tmp_path: Path) -> None:
    save(plif([0, 1, 2], [1, 2]), tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes().startswith(MAGIC[suffix])


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_same_data_make_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        save(decision_regions(HEAD), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"first{suffix}").read_bytes() == (tmp_path / f"second{suffix}").read_bytes()


def test_text_in_an_svg_file_is_text(tmp_path: Path) -> None:
    save(decision_regions(HEAD, title="Findable words"), tmp_path / "figure.svg")
    page = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "Findable words</text>" in page


def test_an_svg_file_tells_no_date_and_no_version(tmp_path: Path) -> None:
    save(plif([0, 1], [1]), tmp_path / "figure.svg")
    page = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "dc:date" not in page
    assert "Matplotlib v" not in page


def test_the_users_own_settings_do_not_change_a_figure(tmp_path: Path) -> None:
    import matplotlib

    save(plif([0, 1], [1]), tmp_path / "before.svg")
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "black"}):
        save(plif([0, 1], [1]), tmp_path / "after.svg")
    assert (tmp_path / "before.svg").read_bytes() == (tmp_path / "after.svg").read_bytes()


def test_dollars_in_labels_are_no_formula(tmp_path: Path) -> None:
    head = am.Head(HEAD.weight, labels=["$x_{", "$\\frac$", "\\$", "$$"])
    save(decision_regions(head, title="$ and $"), tmp_path / "figure.png")


def test_characters_missing_in_the_font_are_written_as_escapes() -> None:
    assert legible("aé漢\n") == "aé\\u{6f22}\\u{a}"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (0.01, "0.01"), (1, "1"), (12345, "12,345")])
def test_ticks_have_their_thousands_set_apart(number: float, text: str) -> None:
    assert grouped(number) == text


def test_another_suffix_is_rejected_with_those_there_are() -> None:
    with pytest.raises(am.InputError, match=r"\.svg, \.png, \.pdf files, not 'figure\.gif'"):
        require_format(Path("figure.gif"))


def test_a_folder_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match=r"can't write .*No such file"):
        save(plif([0, 1], [1]), tmp_path / "nowhere" / "figure.png")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(am.InputError, match=r"argmaxable\[plot\]"), drawing(1, 1):
        pass
