"""Heads of Tesseract's language files: the softmax over characters of the LSTM recogniser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.errors import LoadError
from argmaxable.models.binary_file import mapped, read_array
from argmaxable.models.finding import Arrays, Finding, HeadInputs, Labels, TensorInfo
from argmaxable.models.tesseract.file import (
    DAMAGED,
    LSTM,
    RECODER,
    UNICHARSET,
    TessdataReader,
    components,
)
from argmaxable.models.tesseract.labels import Codes, output_labels, read_characters, read_codes
from argmaxable.models.tesseract.network import SOFTMAX, LstmLayer, StoredMatrix, read_network

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_NAME = "Softmax"
_RECODES = 64  # a flag of the recogniser: outputs are codes, not characters
_STEPS = 127  # an int8 feature u stands for u / 127
_FLOAT32_NOTE = "the weights are the float32 numbers that Tesseract 5 computes with"


@dataclass(frozen=True)
class _Recogniser:
    network: LstmLayer
    weights: StoredMatrix
    labels: Labels


def find(path: Path, options: ReadOptions) -> Finding:
    """The softmax of a language file's LSTM recogniser, labelled with its characters. Raises LoadError."""
    if options.tensor not in (None, _NAME) or options.bias_tensor is not None or options.transpose:
        raise LoadError(
            f"has one head, {_NAME!r}, with a row for each class and the bias as its last column. Leave out "
            "--tensor, --bias-tensor and --transpose."
        )
    recogniser = _parse(path)
    weights = recogniser.weights
    is_int = weights.scales is not None

    def read() -> Arrays:
        matrix = _matrix(path, weights)
        return np.ascontiguousarray(matrix[:, :-1]), np.ascontiguousarray(matrix[:, -1])

    note = (
        f"{_FLOAT32_NOTE}: q times float32(scale / 127)"
        if is_int
        else f"{_FLOAT32_NOTE}, rounded from float64"
    )
    return Finding(
        format="tesseract",
        weight=TensorInfo(
            _NAME, (weights.rows, weights.columns), "int8 with a scale a row" if is_int else "float64"
        ),
        bias=TensorInfo(f"{_NAME}, last column", (weights.rows,), "int8" if is_int else "float64"),
        classes=weights.rows,
        features=weights.columns - 1,
        why="the softmax at the end of the LSTM network",
        read=read,
        labels=recogniser.labels,
        inputs=_inputs(recogniser.network, is_int),
        activation="softmax",
        notes=(note, "a beam search with a dictionary chooses among all outputs' scores, not the best alone"),
    )


def _parse(path: Path) -> _Recogniser:
    with mapped(path, "a .traineddata file") as data:
        places = components(data)
        if LSTM not in places:
            raise LoadError(
                "has no LSTM network: it serves Tesseract's older engine, or finds orientation and script. "
                "Pass a language file of Tesseract 4 or 5."
            )
        reader = TessdataReader(data, places[LSTM])
        network = read_network(reader)
        # Tesseract takes both from components of their own if both are there, else both from the network.
        if UNICHARSET in places and RECODER in places:
            flags, null = _read_settings(reader)
            _require_end(reader)
            characters = read_characters(TessdataReader(data, places[UNICHARSET]))
            reader = TessdataReader(data, places[RECODER])
        else:
            characters = read_characters(reader)
            flags, null = _read_settings(reader)
        codes: Codes = [(number,) for number in range(len(characters))]
        if flags & _RECODES:
            codes = read_codes(reader)
            _require_end(reader)
    softmax = network.last()
    weights = softmax.weights
    if softmax.kind not in SOFTMAX or weights is None:
        raise LoadError(f"its network ends in {softmax.kind}, not in a softmax, which is unknown.")
    if weights.rows != softmax.outputs or weights.columns < 2:
        raise LoadError(f"its softmax of {softmax.outputs} outputs has {weights.rows} rows. {DAMAGED}")
    return _Recogniser(network, weights, output_labels(characters, codes, null, weights.rows))


def _read_settings(reader: TessdataReader) -> tuple[int, int]:
    """The recogniser's flags and the output that stands for no character, which follow the network."""
    reader.text("the network's specification")
    flags, _, _, null, *_ = reader.numbers("4i3f", "the recogniser's settings")
    return flags, null


def _require_end(reader: TessdataReader) -> None:
    if reader.left:
        raise LoadError(f"has {reader.left} bytes after the end of a component. {DAMAGED}")


def _matrix(path: Path, weights: StoredMatrix) -> np.ndarray[tuple[int, ...], np.dtype[np.floating]]:
    """The weights that Tesseract 5 computes with, exactly, for features within ±1.

    Of integers its sum is (Σ q u + 127 q₀) · s with u = 127 x and s = float32(scale / 127), so a weight is
    127 q s. That takes 24 + 14 bits, which float64 has.
    """
    shape = (weights.rows, weights.columns)
    if weights.scales is None:
        with np.errstate(over="ignore"):  # infinities are refused where a Head is made
            return read_array(path, "<f8", weights.start, shape, DAMAGED).astype(np.float32)
    scales = read_array(path, "<f8", weights.scales, (weights.rows,), DAMAGED)
    steps = read_array(path, "i1", weights.start, shape, DAMAGED).astype(np.float64)
    with np.errstate(over="ignore"):
        factors = (scales / _STEPS).astype(np.float32)
    if not (np.isfinite(factors) & (factors >= 0)).all():
        raise LoadError(f"a scale of its softmax is negative or not a number. {DAMAGED}")
    return steps * (_STEPS * factors.astype(np.float64))[:, np.newaxis]


def _inputs(network: LstmLayer, is_int: bool) -> HeadInputs:
    before = network.before_last()
    what = (
        "what comes before the softmax" if before is None else f"the layer {before.kind} before the softmax"
    )
    if is_int:
        return HeadInputs(f"{what}, rounded to multiples of 1/127 and clipped to ±1", Box(-1.0, 1.0))
    if before is not None and before.is_bounded:
        return HeadInputs(f"{what}, whose values lie in [−1, 1]", Box(-1.0, 1.0))
    return HeadInputs(f"{what}, for which no bound is proven", Everywhere())
