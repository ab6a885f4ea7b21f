"""`make story` at toy size: a small recogniser is taught, and the page's marked parts are written from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_ocr import write_font, write_recogniser

from scripts.story_fonts import DEBIAN, StoryFonts, story_fonts
from scripts.tell_ocr_story import OCR, ROOT, Complaint, Story, put, tables, write

MARKS = ("readings", "proofs", "lesson", "others")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A story of a recogniser that can never read e and has no class for h."""
    folder = tmp_path_factory.mktemp("story")
    fonts = [
        str(write_font(folder / f"{name}.ttf", thin=thin)) for name, thin in (("A", 0), ("B", 20), ("C", 30))
    ]
    model = write_recogniser(folder / "small.onnx", Path(fonts[0]), hidden="e", letters="abcdefg ")
    story = Story(
        versions={"small": str(model)},
        complaints=(Complaint("bed", "e", "thread 1"), Complaint("hag", "h", "–")),
        unexplained="f",
        added="h",
        options=("--copies", "24", "--text-lines", "60", "--workers", "1"),
        preprocess="ctc-line,width=64",
    )
    page = "\n".join(f"About {mark}:\n<!-- {mark} -->\nold\n<!-- end of {mark} -->" for mark in MARKS)
    (folder / "ocr.md").write_text(page, encoding="utf-8")
    write(story, StoryFonts(tuple(fonts[:2]), (fonts[2],)), folder / "work", folder, [])
    return folder


def test_the_page_shows_what_was_read_before_and_after(folder: Path) -> None:
    page = (folder / "ocr.md").read_text(encoding="utf-8")
    assert "old" not in page
    assert "| ![bed](ocr/0.png) | thread 1 | b" in page
    told = json.loads((folder / "ocr.json").read_text(encoding="utf-8"))
    for line, letter in zip(told["lines"], "eh", strict=True):
        assert letter not in line["read"]["small"]
        assert letter in line["read"]["taught"]
    assert "| e | **can never be read** | can be read |" in page
    assert "| h | not in the dictionary | can be read |" in page
    assert "| f | can be read |" in page
    assert (folder / "ocr" / "1.png").is_file()


def test_the_figures_of_the_lesson_are_those_that_the_command_printed(folder: Path) -> None:
    said = json.loads((folder / "work" / "lesson.json").read_text(encoding="utf-8"))
    told = json.loads((folder / "ocr.json").read_text(encoding="utf-8"))
    lesson, page = told["lesson"], (folder / "ocr.md").read_text(encoding="utf-8")
    after, total = (said["measured"]["read_after"][name] for name in ("count", "total"))
    assert lesson["read"]["after"] + lesson["added_read"]["after"] == after
    assert lesson["read"]["occurrences"] + lesson["added_read"]["occurrences"] == total
    assert (lesson["read"]["before"], lesson["taught"], lesson["added"]) == (0, 1, "h")
    assert f"are read in {lesson['read']['after']:,} of {lesson['read']['occurrences']:,} images" in page
    assert f"Of {said['measured']['ordinary_changed']['total']:,} ordinary lines" in page
    assert lesson["cpu_seconds"] > 0


def test_the_committed_page_is_what_the_committed_figures_say() -> None:
    """Nothing between the marks was typed by hand."""
    stories = ROOT / "docs" / "stories"
    page = (stories / "ocr.md").read_text(encoding="utf-8")
    assert put(page, tables(json.loads((stories / "ocr.json").read_text(encoding="utf-8")))) == page


def test_missing_fonts_of_debian_are_named_with_their_packages(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"wqy-zenhei.ttc is missing: apt-get install fonts-wqy-zenhei"):
        story_fonts(DEBIAN, folder=tmp_path)


def test_the_story_asks_about_characters_that_its_lines_hold() -> None:
    assert all(set(each.characters) <= set(each.text) for each in OCR.complaints)
