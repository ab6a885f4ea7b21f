"""From an image to a model's input: a small registry of preprocessings, each with settings that can be
overridden.

`ctc-line`: lines of text for recognisers such as PP-OCR. The line is scaled to the model's height,
normalised, and padded with zeros on the right up to a width.
`imagenet`: classifiers. The shorter side is scaled so that a square in the middle, `crop` of it, has the
model's size; then each channel is normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

    from argmaxable.examples.network import InputShape

CTC_LINE, IMAGENET = "ctc-line", "imagenet"
_WIDEST = 4096


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes the model's input. `width` of a line is the one that short lines are padded to."""

    kind: str
    height: int
    width: int
    channels: int = 3
    order: str = "rgb"
    layout: str = "nchw"
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    crop: float = 1.0

    def __str__(self) -> str:
        """As the option is written."""
        settings = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != "kind")
        return ",".join([self.kind, *(f"{name}={_shown(value)}" for name, value in settings)])

    @property
    def is_line(self) -> bool:
        return self.kind == CTC_LINE

    def array(self, image: Image) -> tuple[NDArray[np.float32], int]:
        """The input of the model, without the batch's axis, and how many of its columns are the image."""
        pixels = self._line(image) if self.is_line else self._square(image)
        pixels = pixels.convert("L" if self.channels == 1 else "RGB")
        values = np.asarray(pixels, np.float32).reshape(pixels.height, pixels.width, self.channels)
        values = values[:, :, ::-1] if self.order == "bgr" else values
        mean, std = (np.array(each, np.float32) for each in (self.mean, self.std))
        values = np.asarray((values / np.float32(255) - mean) / std, np.float32)
        columns = values.shape[1]
        if self.is_line:
            padding = max(self.width - columns, 0)
            values = np.pad(values, ((0, 0), (0, padding), (0, 0)))
        return np.ascontiguousarray(values if self.layout == "nhwc" else values.transpose(2, 0, 1)), columns

    def _line(self, image: Image) -> Image:
        width = -(-image.width * self.height // image.height)
        if width > _WIDEST:
            raise InputError(
                f"a line of {image.width} × {image.height} pixels is too long. Cut it into pieces."
            )
        return image.resize((max(width, 1), self.height), _bilinear())

    def _square(self, image: Image) -> Image:
        scale = max(self.width / image.width, self.height / image.height) / self.crop
        wide, high = round(image.width * scale), round(image.height * scale)
        left, top = (wide - self.width) // 2, (high - self.height) // 2
        return image.resize((wide, high), _bilinear()).crop((left, top, left + self.width, top + self.height))


def preprocessing_for(shape: InputShape, *, is_ctc: bool, text: str | None = None) -> Preprocessing:
    """What fits the model's input, with the settings that `text` overrides, as in
    "ctc-line,height=48,order=bgr".

    Raises InputError.
    """
    kind, *settings = (text or "").split(",")
    kind = kind or (CTC_LINE if is_ctc else IMAGENET)
    if kind not in (CTC_LINE, IMAGENET):
        raise InputError(f"preprocessing {kind!r} is not known; expected {CTC_LINE} or {IMAGENET}.")
    chosen = _default(kind, shape)
    for setting in settings:
        chosen = replace(chosen, **_parsed(setting))
    return _validated(chosen)


def _default(kind: str, shape: InputShape) -> Preprocessing:
    channels_last = shape.axes[3] in (1, 3) and shape.axes[1] not in (1, 3)
    height, width, channels = shape.axes[1:] if channels_last else (*shape.axes[2:], shape.axes[1])
    layout = "nhwc" if channels_last else "nchw"
    if kind == CTC_LINE:
        # PP-OCR's recognisers since version 3 take 48 rows; their graphs leave the height open.
        return Preprocessing(kind, height or 48, width or 320, channels or 3, "bgr", layout)
    mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if (channels or 3) == 3 else ((0.5,), (0.5,))
    return Preprocessing(
        kind, height or 224, width or 224, channels or 3, "rgb", layout, mean, std, crop=0.875
    )


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split("/")))


_SETTINGS: dict[str, Callable[[str], Any]] = {
    "height": int, "width": int, "channels": int, "order": str, "layout": str,
    "mean": _numbers, "std": _numbers, "crop": float,
}  # fmt: skip


def _parsed(setting: str) -> dict[str, Any]:
    name, equals, value = setting.partition("=")
    if not equals or name not in _SETTINGS:
        raise InputError(
            f"{setting!r} is not a setting; expected {', '.join(f'{name}=…' for name in _SETTINGS)}."
        )
    try:
        return {name: _SETTINGS[name](value)}
    except ValueError as error:
        raise InputError(
            f"setting {setting!r}: {error}. A number for each channel is written 0.5/0.4/0.4."
        ) from error


def _validated(chosen: Preprocessing) -> Preprocessing:
    problems = {
        "height and width must be from 1 to 4096": not all(
            1 <= size <= _WIDEST for size in (chosen.height, chosen.width)
        ),
        "channels must be 1 or 3": chosen.channels not in (1, 3),
        "order must be rgb or bgr": chosen.order not in ("rgb", "bgr"),
        "layout must be nchw or nhwc": chosen.layout not in ("nchw", "nhwc"),
        "mean and std need one number, or one for each channel": not all(
            len(values) in (1, chosen.channels) for values in (chosen.mean, chosen.std)
        ),
        "std must not be 0": 0.0 in chosen.std,
        "crop must be in (0, 1]": not 0 < chosen.crop <= 1,
    }
    for problem, holds in problems.items():
        if holds:
            raise InputError(f"preprocessing {chosen}: {problem}.")
    return chosen


def _shown(value: object) -> str:
    return "/".join(f"{number:g}" for number in value) if isinstance(value, tuple) else f"{value}"


def _bilinear() -> Any:
    from PIL.Image import Resampling

    return Resampling.BILINEAR
