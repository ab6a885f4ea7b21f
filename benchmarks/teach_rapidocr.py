"""What rapidocr-onnxruntime reads with its own recogniser and with a taught copy of it, through its own API.

    python benchmarks/teach_rapidocr.py TAUGHT.onnx --font FILE[#FACE] [--new 赟] [--taught 嫖] [--lines N]

Runs in an environment that has rapidocr-onnxruntime==1.4.4, and needs nothing else. Each line is printed in
the font. Ordinary lines are drawn at random from common characters that were not taught, and counted where
both copies read the same. Prints one JSON object; exits with 1 if a word is misread by the copy.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import rapidocr_onnxruntime
from PIL import Image, ImageDraw, ImageFont

WORDS = ("嫖资", "商榷", "蹒跚", "寤寐思服")
_SIZE, _PAD, _LENGTH = 40, 8, 10
# The characters that GB 2312 lists first, by how common they are.
_COMMON = [bytes([high, low]).decode("gb2312") for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFF)]


def printed(text: str, font: ImageFont.FreeTypeFont) -> np.ndarray[Any, Any]:
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (int(right - left) + 2 * _PAD, int(bottom - top) + 2 * _PAD), "white")
    ImageDraw.Draw(image).text((_PAD - left, _PAD - top), text, font=font, fill="black")
    return np.asarray(image)[:, :, ::-1]


def read(engine: Any, image: np.ndarray[Any, Any]) -> str:
    found, _ = engine(image, use_det=False, use_cls=False, use_rec=True)
    return "".join(str(part[0]) for part in found or ())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("copy", type=Path, metavar="TAUGHT.onnx")
    parser.add_argument("--font", required=True)
    parser.add_argument("--new", default="", help="characters that were added to the dictionary")
    parser.add_argument("--taught", default="", help="characters that were taught")
    parser.add_argument("--lines", type=int, default=200)
    given = parser.parse_args()
    name, _, face = given.font.partition("#")
    font = ImageFont.truetype(name, _SIZE, index=int(face or 0))
    old = rapidocr_onnxruntime.RapidOCR()
    new = rapidocr_onnxruntime.RapidOCR(rec_model_path=str(given.copy))
    words = [*WORDS, *(f"汉字{char}大" for char in given.new)]
    readings = {word: [read(engine, printed(word, font)) for engine in (old, new)] for word in words}
    draw = random.Random(0)
    ordinary = [char for char in _COMMON if char not in given.taught + given.new]
    lines = ["".join(draw.choices(ordinary, k=_LENGTH)) for _ in range(given.lines)]
    pairs = [(read(old, image), read(new, image)) for image in (printed(line, font) for line in lines)]
    record = {
        "words": {word: {"old": one, "taught": other} for word, (one, other) in readings.items()},
        "read": sum(other == word for word, (_, other) in readings.items()),
        "of": len(words),
        "ordinary_lines": len(pairs),
        "as_before": sum(one == other for one, other in pairs),
        "changed": [
            {"line": line, "old": one, "taught": other}
            for line, (one, other) in zip(lines, pairs, strict=True)
            if one != other
        ],
    }
    print(json.dumps(record, ensure_ascii=False))
    sys.exit(record["read"] < len(words))


if __name__ == "__main__":
    main()
