"""The network in the component lstm: which layers there are, and where the weights of the softmax lie.

Read off Tesseract's `Network::CreateFromFile` and the `DeSerialize` of its layers (src/lstm). Weights are
skipped; only where they lie is noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argmaxable.core.errors import LoadError
from argmaxable.models.tesseract.file import DAMAGED, TessdataReader

_SERIES = "Series"
_PARALLEL = ("Parallel", "Replicated", "ParBidiLSTM", "DepParUDLSTM", "Par2dLSTM")
_REVERSED = ("RTLReversed", "TTBReversed", "XYTranspose")
_LSTM = ("LSTM", "SummLSTM")
SOFTMAX = ("Softmax", "SoftmaxNoCTC")
_DENSE = (*SOFTMAX, "Logistic", "LinLogistic", "LinTanh", "Tanh", "Relu", "Linear")
_SCALED = ("Convolve", "Maxpool", "Reconfig")
# What lies within ±1 whatever comes in; so do whole numbers, which Tesseract clips to ±127 / 127.
_BOUNDED = (*_LSTM, "Logistic", "LinLogistic", "LinTanh", "Tanh")
_DEEPEST = 32
_MOST_LAYERS = 10_000  # Tesseract's own limit
_LEARNING_RATES = 64  # a flag: a learning rate for each layer follows
_IS_TRAINING = 1
_NEWER = "Use a language file of Tesseract 4 or 5."
_INT8, _DOUBLES = 1, 128  # flags of a matrix


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix whose last column is the bias: int8 with a float64 scale for each row, or float64."""

    rows: int
    columns: int
    start: int
    scales: int | None


@dataclass(frozen=True)
class LstmLayer:
    """A layer with the layers inside it, in order; `weights` only of fully connected ones."""

    kind: str
    outputs: int
    inside: Sequence[LstmLayer] = ()
    weights: StoredMatrix | None = None

    def last(self) -> LstmLayer:
        """The layer whose outputs are those of the network."""
        return self.inside[-1].last() if self.kind == _SERIES and self.inside else self

    @property
    def is_bounded(self) -> bool:
        """Whether every output lies within ±1."""
        if self.kind == _SERIES:
            return bool(self.inside) and self.inside[-1].is_bounded
        if self.kind in (*_PARALLEL, *_REVERSED):
            return bool(self.inside) and all(each.is_bounded for each in self.inside)
        return self.kind in _BOUNDED

    def before_last(self) -> LstmLayer | None:
        """The layer that feeds the last one of a series, if there is one."""
        if self.kind != _SERIES or not self.inside:
            return None
        inner = self.inside[-1].before_last()
        if inner is not None or self.inside[-1].kind == _SERIES:
            return inner
        return self.inside[-2] if len(self.inside) > 1 else None


def read_network(reader: TessdataReader, depth: int = 0) -> LstmLayer:
    """The layers of a network; raises LoadError where one is not known."""
    if depth > _DEEPEST:
        raise LoadError(f"its layers are nested more than {_DEEPEST} deep. {DAMAGED}")
    if reader.number("b", "a layer's kind") != 0:
        raise LoadError(f"was written by Tesseract before 4.0, whose networks can't be read. {_NEWER}")
    kind = reader.text("a layer's kind")
    training, _ = reader.numbers("bb", "a layer's state")
    flags, inputs, outputs, _ = reader.numbers("4i", "a layer's sizes")
    reader.text("a layer's name")
    if min(inputs, outputs) < 0:
        raise LoadError(f"a layer has {inputs} inputs and {outputs} outputs. {DAMAGED}")
    if training == _IS_TRAINING:
        raise LoadError("is a checkpoint of a training. Convert it with lstmtraining --stop_training.")
    if kind in (_SERIES, *_PARALLEL, *_REVERSED):
        return LstmLayer(kind, outputs, _read_inside(reader, flags, depth))
    if kind in _DENSE:
        return LstmLayer(kind, outputs, weights=_read_weights(reader))
    if kind in _LSTM:
        _skip_lstm(reader, inputs)
    elif kind in _SCALED:
        reader.numbers("2i", f"the sizes of {kind}")
    elif kind == "Input":
        reader.numbers("5i", "the input's shape")
    else:
        raise LoadError(f"has a layer of the kind {kind[:40]!r}, which is unknown. {DAMAGED}")
    return LstmLayer(kind, outputs)


def _read_inside(reader: TessdataReader, flags: int, depth: int) -> list[LstmLayer]:
    count = reader.number("I", "the number of layers")
    if count > _MOST_LAYERS:
        raise LoadError(f"declares {count} layers, expected at most {_MOST_LAYERS}. {DAMAGED}")
    layers = [read_network(reader, depth + 1) for _ in range(count)]
    if flags & _LEARNING_RATES:
        reader.skip(4 * reader.number("I", "the number of learning rates"), "learning rates")
    return layers


def _skip_lstm(reader: TessdataReader, inputs: int) -> None:
    """An LSTM has four matrices, for its cells and three gates; in two dimensions there is another gate."""
    width = reader.number("i", "an LSTM's width")
    cells = _read_weights(reader)
    is_2d = width == inputs + 2 * cells.rows
    for _ in range(4 if is_2d else 3):
        _read_weights(reader)


def _read_weights(reader: TessdataReader) -> StoredMatrix:
    mode = reader.number("B", "a matrix' mode")
    if not mode & _DOUBLES:
        raise LoadError(f"has weights in a format from before Tesseract 4.0, which can't be read. {_NEWER}")
    rows, columns = reader.numbers("ii", "a matrix' shape")
    if rows < 1 or columns < 1:
        raise LoadError(f"has a matrix of {rows} × {columns} weights. {DAMAGED}")
    width = 1 if mode & _INT8 else 8
    reader.skip(width, "a matrix")  # stands for cells outside
    start = reader.skip(width * rows * columns, "a matrix")
    if not mode & _INT8:
        return StoredMatrix(rows, columns, start, None)
    count = reader.number("I", "the number of scales")
    if count < rows:  # there may be more, for Tesseract rounds their number up
        raise LoadError(f"has {count} scales for {rows} rows of weights. {DAMAGED}")
    return StoredMatrix(rows, columns, start, reader.skip(8 * count, "scales"))
