"""Lines of text as images: plain, or as print and cameras leave them.

There are two ways to wear a line, made of different effects. Rows are fitted to lines worn in the one way
and judged by lines worn in the other, so that nothing is learned of the effects themselves.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Vector

if TYPE_CHECKING:
    from PIL.Image import Image

    from argmaxable.examples.faces import Face

_Finished = tuple["Image", Vector]


class Finish(StrEnum):
    """What happens to a line after it is printed."""

    PLAIN = "plain"
    SCANNED = "scanned"  # rotation, blur, noise, JPEG: for fitting
    PHOTOGRAPHED = "photographed"  # shear, stretch, uneven light, few pixels, motion, specks: for judging


@dataclass(frozen=True)
class PrintedLine:
    """A text, the face that prints it, and what happens to it afterwards.

    Of an ordinary line nobody asks which characters are read, only that its reading stays the same.
    """

    text: str
    face: Face
    finish: Finish = Finish.PLAIN
    is_ordinary: bool = False


def print_line(line: PrintedLine, rng: np.random.Generator) -> tuple[Image, Vector]:
    """The line as an RGB image, and where its characters begin and end (n + 1 columns)."""
    image, edges = _PRINTERS[line.finish](line, rng)
    return image.convert("RGB"), edges


def _plain(line: PrintedLine, rng: np.random.Generator) -> _Finished:
    size, pad = int(rng.choice([32, 40, 56])), int(rng.integers(3, 9))
    return line.face.line(line.text, size, pad=pad, ink=0, paper=255)


def _scanned(line: PrintedLine, rng: np.random.Generator) -> _Finished:
    from PIL import Image, ImageFilter

    size, pad = int(rng.choice([32, 40, 56])), int(rng.integers(3, 9))
    paper, ink = int(rng.integers(170, 256)), int(rng.integers(0, 90))
    image, edges = line.face.line(line.text, size, pad=pad, ink=ink, paper=paper)
    # A long line is turned less: its ends would leave the image.
    degrees = float(rng.uniform(-1.5, 1.5)) * min(1.0, 6 * size / image.width)
    image = image.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=paper)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, size / 32))))
    noise = rng.normal(0, rng.uniform(0, 14), (image.height, image.width))
    return _as_jpeg(np.asarray(image, float) + noise, int(rng.integers(35, 95))), edges


def _photographed(line: PrintedLine, rng: np.random.Generator) -> _Finished:
    from PIL import Image

    size, pad = int(rng.choice([28, 36, 48, 64])), int(rng.integers(4, 12))
    image, edges = line.face.line(line.text, size, pad=pad, ink=0, paper=255)
    slant = float(rng.uniform(-0.06, 0.06))
    image = image.transform(
        image.size, Image.Transform.AFFINE, (1, slant, -slant * image.height / 2, 0, 1, 0),
        Image.Resampling.BICUBIC, fillcolor=255,
    )  # fmt: skip
    stretch = float(rng.uniform(0.88, 1.1))
    width, height = max(round(image.width * stretch), 1), image.height
    # Few pixels: the line is small in the picture, and is enlarged again.
    fewer = float(rng.uniform(0.65, 1.0)) if size > 32 else 1.0
    small = image.resize((max(round(width * fewer), 1), max(round(height * fewer), 1)), Image.Resampling.BOX)
    cover = 1 - np.asarray(small.resize((width, height), Image.Resampling.BICUBIC), float) / 255
    cover = _moved(cover, along=int(rng.integers(2)), share=float(rng.uniform(0, 0.5)))
    shown = _lit(cover, rng)
    specks = rng.random(shown.shape[:2]) < rng.uniform(0, 0.004)
    shown[specks] = rng.integers(0, 256)
    return Image.fromarray(shown.clip(0, 255).astype(np.uint8)), edges * (width / image.width)


def _moved(cover: NDArray[np.float64], *, along: int, share: float) -> NDArray[np.float64]:
    """The camera moved by a pixel while it took a part of the light."""
    return np.asarray((1 - share) * cover + share * np.roll(cover, 1, axis=along))


def _lit(cover: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Coloured ink on coloured paper, or the reverse, under light that changes along the line."""
    paper, ink = rng.uniform(185, 250, 3), rng.uniform(0, 70, 3)
    if rng.random() < 0.2:
        paper, ink = ink, paper
    first, last = rng.uniform(0.8, 1.0, 2)
    light = np.linspace(first, last, cover.shape[1])[None, :, None]
    return np.asarray((paper + cover[:, :, None] * (ink - paper)) * light)


def _as_jpeg(values: NDArray[Any], quality: int) -> Image:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(values.clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


_PRINTERS: dict[Finish, Callable[[PrintedLine, np.random.Generator], _Finished]] = {
    Finish.PLAIN: _plain,
    Finish.SCANNED: _scanned,
    Finish.PHOTOGRAPHED: _photographed,
}
