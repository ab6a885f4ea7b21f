"""Faces of font files: which characters they have, and how they print a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.arrays import Vector
from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

_EXTRA = "needs Pillow and fontTools, which are not installed. Install argmaxable[teach]."


@dataclass(frozen=True)
class Face:
    """One face of a font file; a collection (.ttc) has several, numbered from 0."""

    path: Path
    index: int = 0

    @property
    def name(self) -> str:
        return f"{self.path.name}#{self.index}" if self.index else self.path.name

    @cached_property
    def characters(self) -> frozenset[str]:
        """The characters that the face has an outline for."""
        return _characters(self)

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

    Raises InputError for a file that is not a font, and for a face given twice.
    """
    faces = tuple(map(_parsed, texts))
    for face in faces:
        _ = face.characters
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
    return bool(text) and set(text) <= face.characters


def _parsed(text: str) -> Face:
    name, mark, index = text.rpartition("#")
    if not mark or not index.isdecimal() or Path(text).exists():
        name, index = text, "0"
    if not Path(name).is_file():
        raise InputError(f"{name}: no such font file. Pass the path of a .ttf, .otf or .ttc file.")
    return Face(Path(name), int(index))


def _characters(face: Face) -> frozenset[str]:
    try:
        from fontTools.ttLib import TTFont, TTLibError
    except ModuleNotFoundError as error:
        raise InputError(f"--font {_EXTRA}") from error
    try:
        # The file is opened here: TTFont leaves it open where it fails.
        with face.path.open("rb") as file, TTFont(file, fontNumber=face.index, lazy=True) as font:
            cmap = font.getBestCmap()
    except (TTLibError, AssertionError, OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{face.name} can't be read as a font: {error}. Is the face's number right?"
        ) from error
    return frozenset(map(chr, cmap or ()))


@lru_cache(maxsize=256)
def _sized(face: Face, size: int) -> FreeTypeFont:
    try:
        from PIL import ImageFont
    except ModuleNotFoundError as error:
        raise InputError(f"--font {_EXTRA}") from error
    return ImageFont.truetype(str(face.path), size, index=face.index)
