"""Fonts of every kind: what they can print is what leaves ink, and not the box for missing glyphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTCollection, TTFont
from tiny_ocr import write_font

from argmaxable.core.errors import InputError
from argmaxable.examples.faces import Face, parse_faces, require_covered

_EM = 1000


def box(pen: TTGlyphPen | T2CharStringPen, width: int) -> None:
    pen.moveTo((0, 0))
    for corner in ((0, 900), (width, 900), (width, 0)):
        pen.lineTo(corner)
    pen.closePath()


def write_holed_font(path: Path) -> Path:
    """a is drawn; b is .notdef itself, c an empty glyph, d a copy of the box of .notdef; space is empty."""
    names = [".notdef", "a", "empty", "copy"]
    builder = FontBuilder(_EM, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(
        {ord("a"): "a", ord("b"): ".notdef", ord("c"): "empty", ord("d"): "copy", ord(" "): "empty"}
    )
    glyphs = {}
    for name, width in zip(names, (600, 300, 0, 600), strict=True):
        pen = TTGlyphPen(None)
        if width:
            box(pen, width)
        glyphs[name] = pen.glyph()
    builder.setupGlyf(glyphs)
    finish(builder, names)
    builder.save(path)
    return path


def write_postscript_font(path: Path) -> Path:
    """An OpenType font with CFF outlines, of the letter a."""
    names = [".notdef", "a"]
    builder = FontBuilder(_EM, isTTF=False)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord("a"): "a"})
    strings = {}
    for name, width in zip(names, (600, 300), strict=True):
        pen = T2CharStringPen(_EM, None)
        box(pen, width)
        strings[name] = pen.getCharString()
    builder.setupCFF("Small", {}, strings, {})
    finish(builder, names)
    builder.save(path)
    return path


def finish(builder: FontBuilder, names: list[str]) -> None:
    builder.setupHorizontalMetrics(dict.fromkeys(names, (_EM, 0)))
    builder.setupHorizontalHeader(ascent=_EM, descent=0)
    builder.setupNameTable({"familyName": "Small", "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=_EM, usWinAscent=_EM, usWinDescent=0)
    builder.setupPost()


@pytest.mark.parametrize(("character", "is_there"), [("a", True), ("b", False), ("c", False), ("d", False)])
def test_a_glyph_that_is_missing_blank_or_the_box_of_missing_ones_is_not_there(
    tmp_path: Path, character: str, is_there: bool
) -> None:
    (face,) = parse_faces([str(write_holed_font(tmp_path / "holes.ttf"))])
    assert face.has(character) is is_there


def test_a_space_is_there_without_ink(tmp_path: Path) -> None:
    assert Face(write_holed_font(tmp_path / "holes.ttf")).has(" ")


def test_a_class_that_is_printed_as_a_box_is_named_as_missing(tmp_path: Path) -> None:
    face = Face(write_holed_font(tmp_path / "holes.ttf"))
    assert require_covered("abcd", [face]) == ("b", "c", "d")
    with pytest.raises(InputError, match=r"no font has glyphs for b d \(fonts: holes.ttf\)"):
        require_covered("bd", [face])


def test_postscript_outlines_are_printed(tmp_path: Path) -> None:
    (face,) = parse_faces([str(write_postscript_font(tmp_path / "small.otf"))])
    assert (face.has("a"), face.has("b")) == (True, False)
    image, _ = face.line("aa", 40, pad=2, ink=0, paper=255)
    assert np.asarray(image).min() == 0


def test_each_face_of_a_collection_has_its_own_characters(tmp_path: Path) -> None:
    collection = TTCollection()
    for letters in ("ab", "cd"):
        collection.fonts.append(TTFont(write_font(tmp_path / f"{letters}.ttf", letters)))
    collection.save(tmp_path / "both.ttc")
    first, second = parse_faces([str(tmp_path / "both.ttc"), f"{tmp_path / 'both.ttc'}#1"])
    assert [first.has("a"), first.has("c"), second.has("a"), second.has("c")] == [True, False, False, True]
    assert (first.name, second.name) == ("both.ttc", "both.ttc#1")
    with pytest.raises(InputError, match=r"both.ttc#2 can't be read as a font.*face's number"):
        parse_faces([f"{tmp_path / 'both.ttc'}#2"])


def test_a_font_of_bitmaps_is_refused(tmp_path: Path) -> None:
    font = TTFont(write_font(tmp_path / "outlines.ttf"))
    for table in ("glyf", "loca"):
        del font[table]
    font.save(tmp_path / "bitmaps.ttf")
    with pytest.raises(InputError, match=r"bitmaps.ttf has bitmaps only"):
        parse_faces([str(tmp_path / "bitmaps.ttf")])


@pytest.mark.parametrize("kept", [3, 40, 300, 600])
def test_a_damaged_font_is_refused_in_words(tmp_path: Path, kept: int) -> None:
    content = write_font(tmp_path / "whole.ttf").read_bytes()
    (tmp_path / "part.ttf").write_bytes(content[:kept])
    with pytest.raises(InputError, match=r"part.ttf can't be (read as a font|printed with)"):
        parse_faces([str(tmp_path / "part.ttf")])


def test_a_font_without_a_unicode_map_has_no_characters(tmp_path: Path) -> None:
    font = TTFont(write_font(tmp_path / "mapped.ttf", "a"))
    font["cmap"].tables = []
    font.save(tmp_path / "unmapped.ttf")
    (face,) = parse_faces([str(tmp_path / "unmapped.ttf")])
    assert not face.has("a")
