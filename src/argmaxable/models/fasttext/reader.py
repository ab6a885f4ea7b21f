"""Heads of fastText classifiers: the output matrix, which has no bias, and the dictionary's labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import LoadError
from argmaxable.models.fasttext.file import DAMAGED, Arguments, FastTextFile, Matrix, Quantised, parse
from argmaxable.models.finding import Arrays, Finding, HeadInputs, Labels, TensorInfo

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_HIERARCHICAL, _NEGATIVE_SAMPLING, _SOFTMAX, _ONE_VS_ALL = 1, 2, 3, 4
_LOSSES = (_HIERARCHICAL, _NEGATIVE_SAMPLING, _SOFTMAX, _ONE_VS_ALL)
_WITH_SIGMOIDS = {_NEGATIVE_SAMPLING: "negative sampling", _ONE_VS_ALL: "one-vs-all loss"}
# fastText codes 2 features in a byte by default and 16 at the very most, which is 128 bytes of float64. A
# large matrix that expands more than this was made to exhaust memory.
_SUSPICIOUS_EXPANSION = 200
_HARMLESS_BYTES = 64 * 2**20


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a fastText classifier with softmax, one-vs-all loss or negative sampling.

    `options.tensor="output"` takes the output matrix also of word vectors, with which fastText does not
    predict. Raises LoadError.
    """
    _require_known_names(options)
    model = parse(path)
    _require_linear(model.arguments, options)
    _require_modest(model.output)

    def read() -> Arrays:
        weight = model.output.read(path)
        return np.ascontiguousarray(weight.T) if options.transpose else weight, None

    shape = (model.output.rows, model.output.columns)
    return Finding(
        format="fasttext",
        weight=TensorInfo("output", shape, model.output.dtype),
        bias=None,
        classes=shape[options.transpose],
        features=shape[not options.transpose],
        why="chosen by name" if options.tensor else "the output matrix of a classifier",
        read=read,
        labels=None if options.transpose else Labels(model.names, "the model's dictionary"),
        inputs=_describe_inputs(model),
        activation="sigmoid" if model.arguments.loss in _WITH_SIGMOIDS else "",
        notes=_notes(model),
    )


def _require_known_names(options: ReadOptions) -> None:
    if options.tensor not in (None, "output"):
        raise LoadError(
            f"tensor {options.tensor!r} not found. Of the two matrices in a fastText file, input and output, "
            "only tensor='output' (--tensor output) can be a head."
        )
    if options.bias_tensor is not None:
        raise LoadError(
            f"bias {options.bias_tensor!r} not found: fastText's output layer has none. Leave out "
            "bias_tensor= (--bias-tensor)."
        )


def _require_linear(arguments: Arguments, options: ReadOptions) -> None:
    if arguments.loss not in _LOSSES:
        raise LoadError(f"has the unknown loss {arguments.loss}; known are {_LOSSES}. {DAMAGED}")
    if arguments.loss == _HIERARCHICAL:
        raise LoadError(
            "was trained with hierarchical softmax: its output matrix holds the nodes of a binary tree, not "
            "a row per label, so a prediction is not the argmax of a linear layer. Train it with "
            "-loss softmax."
        )
    if options.tensor is None and not arguments.is_classifier:
        raise LoadError(
            "holds word vectors (cbow or skipgram), not a classifier. To treat the output matrix as a head "
            "with a class for each word anyway, pass tensor='output' (--tensor output)."
        )


def _require_modest(matrix: Matrix) -> None:
    nbytes = 8 * matrix.rows * matrix.columns
    if nbytes > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * matrix.stored_bytes):
        raise LoadError(
            f"the output matrix would expand from {matrix.stored_bytes} to {nbytes} bytes, which no "
            "quantised model does: it looks like a bomb and was not read."
        )


def _describe_inputs(model: FastTextFile) -> HeadInputs:
    # A mean of rows lies between their smallest and largest value in every feature, but no domain is derived
    # from that: it would take reading the whole input matrix, and the head has no bias, so that every box
    # with 0 inside, however wide, gives the same verdicts.
    arguments = model.arguments
    parts = ["words"]
    if arguments.longest_ngram > 0:
        parts.append(f"their n-grams of {arguments.shortest_ngram} to {arguments.longest_ngram} characters")
    if arguments.word_ngrams > 1:
        parts.append(f"n-grams of up to {arguments.word_ngrams} words")
    return HeadInputs(
        f"the mean of the vectors of a text's {', '.join(parts)}: rows of the input matrix "
        f"({model.input.rows} × {model.input.columns}, {model.input.dtype})"
    )


def _notes(model: FastTextFile) -> tuple[str, ...]:
    notes = []
    if model.arguments.is_classifier and model.arguments.loss in _WITH_SIGMOIDS:
        notes.append(
            f"{_WITH_SIGMOIDS[model.arguments.loss]}: a label's probability is a sigmoid of its logit, which "
            "keeps their order, so the best label is the argmax (but fastText looks it up in a table with "
            "steps of 1/32 from -8 to 8: labels closer than that, or beyond, tie in its predictions)"
        )
    if isinstance(model.output, Quantised):
        notes.append("the weights are the centroids fastText predicts with, not those before quantisation")
    return tuple(notes)
