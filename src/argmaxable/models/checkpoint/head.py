"""The head of a checkpoint, a dictionary of named tensors, as a Finding: shapes checked, domain derived,
weights left where they are until somebody wants them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box
from argmaxable.core.errors import DomainError, LoadError
from argmaxable.models.activations import RANGES
from argmaxable.models.checkpoint.families import Activation, Obstacle
from argmaxable.models.checkpoint.locate import (
    Architecture,
    HeadTensors,
    NormTensors,
    choose,
    choose_named,
    embeddings_among,
    is_large_body,
)
from argmaxable.models.finding import Arrays, Finding, HeadInputs, TensorInfo
from argmaxable.models.norm_solid import norm_solid
from argmaxable.models.source import TensorSource

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_SOLIDS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"LayerNorm": LayerNorm, "RMSNorm": RMSNorm}
# What quantised checkpoints store beside a weight, and without which its numbers mean nothing.
_SCALES = ("_scale", "_scale_inv", "_zero_point", ".absmax")
_HALVES = frozenset({"float16", "bfloat16"})
# Enough to choose from; a large model has thousands.
_CANDIDATES_SHOWN = 6


def choice_in(
    source: TensorSource,
    architecture: Architecture,
    options: ReadOptions,
    guess: Callable[[TensorSource], HeadTensors | None],
) -> HeadTensors:
    """Which tensors are the head; raises LoadError when none are.

    `guess` is asked last, and only where neither a configuration nor the names of the tensors tell what kind
    of model it is: a kind that is known keeps its head in a known place, or has none.
    """
    if options.tensor is not None:
        return choose_named(source.names, architecture, options.tensor)
    choice = choose(source.names, architecture)
    if choice is not None:
        return choice
    matrices = source.matrices()
    if architecture == Architecture() and len(matrices) == 1 and not source.absent:
        only = choose_named(source.names, architecture, matrices[0].name)
        return replace(only, why="the only matrix in the file")
    if architecture == Architecture() and not is_large_body(source.names, architecture):
        guessed = guess(source)
        if guessed is not None:
            return guessed
    raise LoadError(_no_head(source, architecture))


def finding_of(
    source: TensorSource, choice: HeadTensors, options: ReadOptions, *, format_name: str
) -> Finding:
    """The chosen head with its shapes and domain, without labels. Raises LoadError unless it is a matrix."""
    weight = _matrix(source, choice.weight)
    rows, columns = weight.shape
    classes, features = (columns, rows) if options.transpose else (rows, columns)
    bias = _bias(source, choice, options, classes)

    def read() -> Arrays:
        values = source.read_matrix(weight.name)
        return (
            np.ascontiguousarray(values.T) if options.transpose else values,
            None if bias is None else source.read(bias.name),
        )

    return Finding(
        format=format_name,
        weight=weight,
        bias=bias,
        classes=classes,
        features=features,
        why=choice.why,
        read=read,
        inputs=_in_words(_inputs(source, choice.feed, features), weight),
        alternatives=_alternatives(source, weight),
        notes=(*choice.notes, *_doubts(source, bias, classes, features)),
    )


def _no_head(source: TensorSource, architecture: Architecture) -> str:
    family = architecture.family
    found = f"no output layer found among the {len(source.names)} tensors of {source.name}"
    if architecture.is_bare:
        found += f": {architecture} is the body of a model, without a head"
    if family is not None:
        usual = family.places[0].weight[0].replace("{body}", family.body)
        kind = next(each for each in architecture.model_types if each in family.model_types)
        found += f" ({kind} models keep theirs in {usual})"
    embeddings = embeddings_among(source.names, architecture)
    if embeddings is None:
        return f"{found}. {_candidates(source)} Choose one with tensor= (--tensor)."
    return (
        f"{found}. To take the input embeddings for one, as models with a tied head do, pass "
        f"tensor={embeddings!r} (--tensor {embeddings}): {source.tensors.get(embeddings, 'in another file')}."
    )


def _candidates(source: TensorSource) -> str:
    matrices = source.matrices()
    largest = ", ".join(map(str, matrices[:_CANDIDATES_SHOWN])) or "none"
    last = next((each for each in reversed(list(source.tensors.values())) if each in matrices), None)
    more = "" if last in matrices[:_CANDIDATES_SHOWN] or last is None else f"; the last in the file: {last}"
    return f"Largest matrices: {largest}{more}."


def _matrix(source: TensorSource, name: str) -> TensorInfo:
    if name not in source.names:
        raise LoadError(
            f"tensor {name!r} not found in {source.name} ({len(source.names)} tensors). "
            f"{_candidates(source)} Correct tensor= (--tensor)."
        )
    info = source.info(name)
    if len(info.shape) != 2:
        raise LoadError(
            f"weight must be a matrix (classes × features), found {info}. Pass tensor= (--tensor)."
        )
    scales = [name + end for end in _SCALES if name + end in source.names]
    if not source.has_weights(info) or scales:
        beside = f" and comes with {scales[0]}" if scales else ""
        raise LoadError(
            f"tensor {info}{beside} is quantised. Such numbers mean nothing without their scales: use the "
            "model they were made from."
        )
    return info


def _bias(source: TensorSource, choice: HeadTensors, options: ReadOptions, classes: int) -> TensorInfo | None:
    if options.bias_tensor is not None:
        if options.bias_tensor not in source.names:
            raise LoadError(
                f"tensor {options.bias_tensor!r} not found in {source.name} ({len(source.names)} tensors). "
                "Correct bias_tensor= (--bias-tensor)."
            )
        return source.info(options.bias_tensor)
    if choice.bias is None:
        return None
    info = source.info(choice.bias)
    # A tensor that merely has the right name is not a bias when it is not as long as the classes.
    return info if choice.task is not None or math.prod(info.shape) == classes else None


def _doubts(source: TensorSource, bias: TensorInfo | None, classes: int, features: int) -> list[str]:
    """What should be looked at before the head is believed."""
    notes = []
    if classes == 1:
        notes.append("one class only: the sign of its logit decides, not an argmax")
    if bias is None and classes != features:
        # Every layer inside has as many biases as the next has features: these belong to the classes.
        fitting = [
            info
            for info in source.tensors.values()
            if info.shape == (classes,) and info.name.endswith("bias")
        ]
        notes += [
            f"{info.name} has as many entries as there are classes: if it is the head's bias, pass "
            f"bias_tensor={info.name!r} (--bias-tensor {info.name})"
            for info in fitting[:1]
        ]
    return notes


def _alternatives(source: TensorSource, weight: TensorInfo) -> tuple[TensorInfo, ...]:
    """Other matrices with as many rows: embeddings, or a second head."""
    return tuple(
        info for info in source.matrices() if info.shape[0] == weight.shape[0] and info.name != weight.name
    )


def _inputs(source: TensorSource, feed: NormTensors | Activation | Obstacle, features: int) -> HeadInputs:
    match feed:
        case NormTensors():
            return _behind_norm(source, feed, features)
        case Activation(name):
            low, high = RANGES[name]
            return HeadInputs(f"{name}, whose values lie in [{low:g}, {high:g}]", Box(low, high))
        case Obstacle(description):
            return HeadInputs(description)


def _in_words(inputs: HeadInputs, weight: TensorInfo) -> HeadInputs:
    """Weights alone don't say in which arithmetic they run; those in half precision may run in that."""
    if inputs.domain is None or weight.dtype not in _HALVES:
        return inputs
    return replace(inputs, description=f"{inputs.description}, if computed in float32")


def _behind_norm(source: TensorSource, norm: NormTensors, features: int) -> HeadInputs:
    words = _describe(norm)
    try:
        gain = 1.0 if norm.gain is None else norm.offset + _vector(source, norm.gain, features)
        shift = 0.0 if norm.shift is None else _vector(source, norm.shift, features)
        factor = features**-0.5 if norm.scaled else 1.0
        return HeadInputs(words, norm_solid(_SOLIDS[norm.kind], factor * gain, factor * shift, features))
    except (DomainError, LoadError) as error:  # the head itself can be read all the same
        return HeadInputs(f"{words}; but {error}")


def _vector(source: TensorSource, name: str, length: int) -> NDArray[np.float64]:
    info = source.info(name)
    if info.shape != (length,):
        raise LoadError(f"{info} does not fit the head's {length} features.")
    return source.read(name).astype(np.float64)


def _describe(norm: NormTensors) -> str:
    if norm.gain is None:
        words = f"{norm.kind} without gain and shift"
    else:
        gain = norm.gain if norm.offset == 0.0 else f"{norm.offset:g} + {norm.gain}"
        words = f"{norm.kind}, gain {gain}" + ("" if norm.shift is None else f", shift {norm.shift}")
    return f"{words}, then the factor d^-1/2 of a tied T5" if norm.scaled else words
