"""Faces of font files: which characters they have, and how they print a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.arrays import Vector
from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

# Tables of outlines: TrueType's, and PostScript's in two versions.
_OUTLINES = frozenset({"glyf", "CFF ", "CFF2"})
# A size, in pixels, at which strokes can be told apart, and which fonts rarely have bitmaps for.
_PROBED = 37
# A code point that is not a character, so that fonts print what they print for missing ones.
_NOBODYS = "\U0010ffff"
_EXTRA = "needs Pillow and fontTools, which are not installed. Install argmaxable[teach]."


@dataclass(frozen=True)
class Face:
    """One face of a font file; a collection (.ttc) has several, numbered from 0."""

    path: Path
    index: int = 0

    @property
    def name(self) -> str:
        return f"{self.path.name}#{self.index}" if self.index else self.path.name

    def has(self, character: str) -> bool:
        """Whether the face prints the character: not as a blank, and not as the box for missing glyphs."""
        return character in _mapped(self) and (character.isspace() or _is_drawn(self, character))

    def line(self, text: str, size: int, *, pad: int, ink: int, paper: int) -> tuple[Image, Vector]:
        """The text in grey on paper, and where its characters begin and end (n + 1 columns)."""
        from PIL import Image, ImageDraw

        font = _sized(self, size)
        left, top, right, bottom = font.getbbox(text)
        image = Image.new("L", (int(right - left) + 2 * pad, int(bottom - top) + 2 * pad), paper)
        ImageDraw.Draw(image).text((pad - left, pad - top), text, font=font, fill=ink)
        edges = [font.getlength(text[:place]) for place in range(len(text) + 1)]
        return image, pad - left + np.array(edges)


def parse_faces(texts: Sequence[str]) -> tuple[Face, ...]:
    """Faces as they are written on the command line: FILE, or FILE#2 for the third face of a collection.

    Raises InputError for a file that is not a font of outlines, and for a face given twice.
    """
    faces = tuple(map(_parsed, texts))
    for face in faces:
        _mapped(face), _sized(face, _PROBED)
        if faces.count(face) > 1:
            raise InputError(f"the font {face.name} is given twice.")
    return faces


def require_covered(labels: Iterable[str], faces: Sequence[Face]) -> tuple[str, ...]:
    """The labels that no face can print in full; raises InputError when that is all of them."""
    labels = list(labels)
    missing = tuple(label for label in labels if not any(covers(face, label) for face in faces))
    if missing and len(missing) == len(labels):
        names = ", ".join(face.name for face in faces)
        shown = " ".join(missing[:20])
        raise InputError(
            f"no font has glyphs for {shown} (fonts: {names}). Add a font that has, with --font."
        )
    return missing


def covers(face: Face, text: str) -> bool:
    return bool(text) and all(map(face.has, text))


def _parsed(text: str) -> Face:
    name, mark, index = text.rpartition("#")
    if not mark or not index.isdecimal() or Path(text).exists():
        name, index = text, "0"
    if not Path(name).is_file():
        raise InputError(f"{name}: no such font file. Pass the path of a .ttf, .otf or .ttc file.")
    return Face(Path(name), int(index))


@lru_cache(maxsize=64)
def _mapped(face: Face) -> frozenset[str]:
    """The characters that the face has a glyph for, whatever that looks like."""
    try:
        from fontTools.ttLib import TTFont
    except ModuleNotFoundError as error:
        raise InputError(f"--font {_EXTRA}") from error
    try:
        # The file is opened here: TTFont leaves it open where it fails.
        with face.path.open("rb") as file, TTFont(file, fontNumber=face.index, lazy=True) as font:
            has_outlines = not _OUTLINES.isdisjoint(font.keys())
            cmap, missing = font.getBestCmap() or {}, font.getGlyphName(0)
    except Exception as error:  # of a damaged file, fontTools raises whatever it stumbles over
        raise InputError(
            f"{face.name} can't be read as a font: {error}. Is the face's number right?"
        ) from error
    if not has_outlines:
        raise InputError(f"{face.name} has bitmaps only, of fixed sizes. Pass a font with outlines.")
    return frozenset(chr(code) for code, glyph in cmap.items() if glyph != missing)


@lru_cache(maxsize=1 << 18)
def _is_drawn(face: Face, character: str) -> bool:
    """Whether a character leaves ink, and another drawing than a character that no font has."""
    drawn = _drawing(face, character)
    return any(drawn[1]) and drawn != _drawing(face, _NOBODYS)


def _drawing(face: Face, character: str) -> tuple[tuple[int, int], bytes]:
    mask: Any = _sized(face, _PROBED).getmask(character, mode="1")  # Pillow's own kind of array
    return mask.size, bytes(mask)


@lru_cache(maxsize=256)
def _sized(face: Face, size: int) -> FreeTypeFont:
    try:
        from PIL import ImageFont
    except ModuleNotFoundError as error:
        raise InputError(f"--font {_EXTRA}") from error
    try:
        return ImageFont.truetype(str(face.path), size, index=face.index)
    except OSError as error:
        raise InputError(f"{face.name} can't be rendered at {size} pixels: {error}.") from error
