"""A line recogniser and fonts small enough for tests: letters are sets of bars, and the network, one
convolution over narrow columns, tells them apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from argmaxable.examples.faces import Face

_EM, _ROWS = 1000, 5
HEIGHT, STEP, FEATURES = 20, 2, 32
LETTERS = "abcdefgh"


def write_font(path: Path, characters: str = LETTERS, *, thin: int = 0) -> Path:
    """A TrueType font with these letters; `thin` takes something off every square."""
    names = [".notdef", *(f"glyph{ord(char):x}" for char in characters)]
    builder = FontBuilder(_EM, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(char): f"glyph{ord(char):x}" for char in characters})
    glyphs = {name: _glyph(char, thin) for name, char in zip(names, f" {characters}", strict=True)}
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics(dict.fromkeys(names, (_EM, 0)))
    builder.setupHorizontalHeader(ascent=_EM, descent=0)
    builder.setupNameTable({"familyName": path.stem, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=_EM, usWinAscent=_EM, usWinDescent=0)
    builder.setupPost()
    builder.save(path)
    return path


def _glyph(char: str, thin: int) -> object:
    """Bars at the top and the bottom, and those of three between that the letter's number has; wider for a
    missing letter."""
    pen = TTGlyphPen(None)
    size, number = _EM // _ROWS, LETTERS.find(char)
    width = _EM * 3 // 4 if number >= 0 else _EM
    for row in range(_ROWS):
        if row not in (0, _ROWS - 1) and not number >> (row - 1) & 1:
            continue
        bottom, top = row * size, (row + 1) * size - thin
        pen.moveTo((0, bottom))
        for corner in ((0, top), (width, top), (width, bottom)):
            pen.lineTo(corner)
        pen.closePath()
    return pen.glyph()


@dataclass(frozen=True)
class TinyOcr:
    """A recogniser's file, and the fonts that it was made for."""

    model: Path
    fonts: tuple[Path, ...]


def write_recogniser(path: Path, font: Path, *, hidden: str = "", letters: str = LETTERS) -> Path:
    """A CTC recogniser of letters whose rows are the features of each; `hidden` ones can never win."""
    filters = np.random.default_rng(7).normal(size=(FEATURES, 3, HEIGHT, STEP)).astype(np.float32)
    rows = {"": _features(filters, np.ones((HEIGHT, STEP)))}
    for char in letters:
        image, _ = Face(font).line(char, 40, pad=4, ink=0, paper=255)
        pixels = np.asarray(image.resize((HEIGHT, HEIGHT), Image.Resampling.BILINEAR)) / 127.5 - 1
        rows[char] = _features(filters, pixels[:, 8 : 8 + STEP])
    # Rounded, so that the mean of two rows is exact in float32, too.
    weight = np.round(np.stack(list(rows.values())) * 1024) / 1024
    bias = -(weight**2).sum(axis=1) / 2
    for char in hidden:
        # The middle of two rows, and less than the mean of their biases: one of the two is always above.
        place = [*rows].index(char)
        weight[place] = (weight[1] + weight[2]) / 2
        bias[place] = (bias[1] + bias[2]) / 2 - 1
    onnx.save(_model(filters, weight, bias, letters), path)
    return path


def _features(filters: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return np.maximum((filters * pixels[None, None]).sum(axis=(1, 2, 3)), 0) / HEIGHT


def _model(filters: np.ndarray, weight: np.ndarray, bias: np.ndarray, letters: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "filters"], ["map"], strides=[HEIGHT, STEP]),
        helper.make_node("Relu", ["map"], ["positive"]),
        helper.make_node("Squeeze", ["positive", "axis"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["features"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["features", "W"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=2),
    ]
    constants = {"filters": filters / HEIGHT, "W": weight.T, "b": bias}
    tensors = [numpy_helper.from_array(np.float32(each), name) for name, each in constants.items()]
    graph = helper.make_graph(
        nodes,
        "recogniser",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, HEIGHT, "width"])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", "steps", len(bias)])],
        [*tensors, numpy_helper.from_array(np.array([2], np.int64), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, {"character": "\n".join(letters)})
    return model
