"""Folders of images."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from argmaxable.core.errors import InputError
from argmaxable.examples.images import read_images


def picture(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (32, 20), "white").save(path)


def test_a_folder_is_named_as_the_class_that_its_images_show(tmp_path: Path) -> None:
    for name in ("b/2.png", "a/1.png", "_ordinary/x.jpg"):
        picture(tmp_path / name)
    (tmp_path / "a" / "notes.md").write_text("not an image", encoding="utf-8")
    found = [(image.path.name, image.label) for image in read_images(tmp_path)]
    assert found == [("x.jpg", None), ("1.png", "a"), ("2.png", "b")]


def test_a_list_says_what_the_images_show(tmp_path: Path) -> None:
    picture(tmp_path / "1.png")
    picture(tmp_path / "2.png")
    (tmp_path / "rec_gt.txt").write_text("1.png\tab c\n2.png\t\n", encoding="utf-8")
    assert [(image.label, image.is_text) for image in read_images(tmp_path)] == [("ab c", True), (None, True)]


def test_a_list_with_a_missing_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rec_gt.txt").write_text("1.png\tab\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"rec_gt\.txt, line 1: there is no image '1\.png'"):
        read_images(tmp_path)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no images"):
        read_images(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder of images"):
        read_images(tmp_path / "none")


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    picture(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "1.png").write_bytes(b"\x89PNG damaged")
    with pytest.raises(InputError, match=r"1\.png can't be read as an image"):
        read_images(tmp_path)[0].opened()
