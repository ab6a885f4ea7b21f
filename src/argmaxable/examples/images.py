"""Images that a user has: a folder for each class, or a list of images with their texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif"})
# A folder of this name holds inputs that are nobody's example.
ORDINARY = "_ordinary"


@dataclass(frozen=True)
class LabelledImage:
    """An image file, what it shows (None: an ordinary input) and whether that is a text or the name of a
    class."""

    path: Path
    label: str | None
    is_text: bool

    def opened(self) -> Image:
        """The image as RGB; raises InputError."""
        try:
            from PIL import Image
        except ModuleNotFoundError as error:
            raise InputError(
                "--images needs Pillow, which is not installed. Install argmaxable[teach]."
            ) from error
        try:
            with Image.open(self.path) as image:
                return image.convert("RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise InputError(f"{self.path} can't be read as an image: {error}") from error


def read_images(folder: Path) -> tuple[LabelledImage, ...]:
    """The images of a folder, in the order of their names; raises InputError when there are none.

    If it holds text files with lines `name<TAB>text`, as PaddleOCR's rec_gt.txt, they say what the images
    show. Else each folder inside is named as the class that its images show; `_ordinary` holds ordinary
    inputs.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of images.")
    lists = sorted(path for path in folder.glob("*.txt") if _is_list(path))
    found = [image for path in lists for image in _listed(path)] if lists else _in_folders(folder)
    if not found:
        raise InputError(
            f"{folder} has no images. Expected a folder for each class, named as the class, or a text file "
            "with a "
            "line `name<TAB>text` for each image."
        )
    return tuple(found)


def _in_folders(folder: Path) -> list[LabelledImage]:
    return [
        LabelledImage(path, None if inside.name == ORDINARY else inside.name, is_text=False)
        for inside in sorted(path for path in folder.iterdir() if path.is_dir())
        for path in sorted(inside.iterdir())
        if path.suffix.lower() in _SUFFIXES
    ]


def _is_list(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return "\t" in file.readline()
    except (OSError, UnicodeDecodeError):
        return False


def _listed(path: Path) -> list[LabelledImage]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, tab, text = line.partition("\t")
        if not line.strip():
            continue
        image = path.parent / name
        if not tab or not image.is_file():
            reason = f"there is no image {name!r}" if tab else "it has no tab"
            raise InputError(f"{path.name}, line {number}: {reason}. Expected name<TAB>text.")
        found.append(LabelledImage(image, text or None, is_text=True))
    return found
