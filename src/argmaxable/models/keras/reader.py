"""Heads in Keras files: .h5, .hdf5, .weights.h5 and .keras.

The configuration, if the file has it, tells which layer is the last and what feeds it; otherwise the order of
the layers in the file must do. Keras stores kernels as features × classes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.balls import LayerNorm
from argmaxable.core.boxes import Box
from argmaxable.core.errors import LoadError
from argmaxable.models.activations import ANYTHING
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import SIGMOID_NOTE, Arrays, Finding, HeadInputs, TensorInfo
from argmaxable.models.keras.config import (
    KerasLayer,
    Network,
    feeding_layers,
    head_of,
    output_range,
    parse,
    stored_name,
)
from argmaxable.models.keras.file import KerasFile, LayerArrays, opened
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.norm_solid import norm_solid

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.models.registry import ReadOptions

_CANDIDATES_SHOWN = _LAYERS_SHOWN = 6


@dataclass(frozen=True)
class _Choice:
    """The kernel that is the head, how it was found, its layer, and the functions applied after it."""

    kernel: TensorInfo
    bias: TensorInfo | None
    why: str
    layer: KerasLayer | None = None
    activations: tuple[str, ...] = ()


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a Keras model: by its configuration, else the last layer that has but kernel and bias.

    `options.tensor` names a dataset by its path in the HDF5 file; it is taken as features × classes, as
    Keras stores kernels, unless `options.transpose` is given. Raises LoadError.
    """
    with opened(path) as file:
        return find_in(file, path, options)


def find_in(file: KerasFile, path: Path, options: ReadOptions) -> Finding:
    """The head in an open file; the arrays are read when the path is opened again. Raises LoadError."""
    network = None if file.config is None else parse(file.config)
    choice = _named(file, network, options.tensor) if options.tensor else _chosen(file, network)
    bias = choice.bias if options.bias_tensor is None else file.info(options.bias_tensor)
    inputs = None if network is None or options.transpose else _inputs(file, network, choice)
    alternatives = [each for each in _kernels(file) if each != choice.kernel]
    rows, columns = choice.kernel.shape[-2:]
    classes, features = (rows, columns) if options.transpose else (columns, rows)

    labels, doubts = search_beside(path.parent, classes)

    def read() -> Arrays:
        with opened(path, file.outline) as again:
            weight = again.read(choice.kernel).reshape(rows, columns)
            values = None if bias is None else again.read(bias)
        return weight if options.transpose else np.ascontiguousarray(weight.T), values

    return Finding(
        format="keras",
        weight=choice.kernel,
        bias=bias,
        classes=classes,
        features=features,
        why=choice.why,
        read=read,
        labels=labels,
        inputs=inputs,
        alternatives=tuple(alternatives),
        activation=next((name for name in ("sigmoid", "softmax") if name in choice.activations), ""),
        notes=(*_notes(choice, classes), *doubts),
    )


# ---------------------------------------------------------------------- which layer


def _chosen(file: KerasFile, network: Network | None) -> _Choice:
    if network is None:
        return _last(file)
    _require_one_order(file, network)
    try:
        layer, activations = head_of(network)
    except LoadError as error:
        raise LoadError(f"{error}. {_candidates(file)}") from error
    group = _group_of(file, network, layer)
    assert group.kernel is not None  # as _group_of saw
    why = f"the last layer of the model's configuration, {layer.name}"
    return _Choice(group.kernel, group.bias, why, layer, tuple(activations))


def _require_one_order(file: KerasFile, network: Network) -> None:
    """Keras gives the arrays of an HDF5 file to the layers by position, other programs by name."""
    listed = [name for name in file.listed_layers if name in network.layers]
    if listed != [name for name in network.layers if name in set(listed)]:
        raise ambiguous("layer_names lists the layers in another order than the configuration")


def _group_of(file: KerasFile, network: Network, layer: KerasLayer) -> LayerArrays:
    """The arrays of a linear layer of the network."""
    linear = [group for group in file.groups if group.kernel is not None]
    fitting = [group for group in linear if group.layer in (layer.name, layer.inner.name)]
    if not any(group.layer for group in linear):  # the first files of Keras 3
        place = stored_name(network, layer)
        fitting = [group for group in linear if group.kernel and group.kernel.name.split("/")[1] == place]
    if len(fitting) != 1:
        raise LoadError(
            f"the last layer of the model's configuration is {layer.name!r}, for which the file has "
            f"{len(fitting)} kernels. {_candidates(file)}"
        )
    return fitting[0]


def _last(file: KerasFile) -> _Choice:
    """The last linear layer of a file without configuration, if it is clear which that is."""
    linear = [(group, group.kernel) for group in file.groups if group.kernel is not None]
    if not linear:
        raise LoadError(
            f"no layer with only a kernel and a bias was found ({len(file.groups)} with weights)."
        )
    if not file.is_ordered:  # convolutions come first, as far as one can tell
        linear = [each for each in linear if len(each[1].shape) == 2] or linear
    last, kernel = linear[-1]
    if not file.is_ordered and len({_class_of(each) for _, each in linear}) > 1:
        raise LoadError(f"the file does not tell the order of its layers. {_candidates(file)}")
    if file.is_ordered and file.groups[-1] is not last:
        raise LoadError(
            f"the last layer with weights is {file.groups[-1].layer!r}, which is not linear. "
            f"{_candidates(file)}"
        )
    if len(linear) > 1 and _are_two_heads(linear[-2][1], kernel):
        raise LoadError(f"two layers on the same features could be the head. {_candidates(file)}")
    return _Choice(kernel, last.bias, "the last layer in the file")


def _class_of(kernel: TensorInfo) -> str:
    """dense for layers/dense_1/vars/0: only layers of one class are numbered in order."""
    return re.sub(r"_\d+$", "", kernel.name.split("/")[1])


def _are_two_heads(first: TensorInfo, second: TensorInfo) -> bool:
    return first.shape[-2] == second.shape[-2] != first.shape[-1]


def _named(file: KerasFile, network: Network | None, name: str) -> _Choice:
    group = next(
        (each for each in file.groups if each.kernel and each.kernel.name == name), LayerArrays("", {})
    )
    try:
        kernel = file.info(name)
    except LoadError as error:
        raise LoadError(f"{error}. {_candidates(file)}") from error
    if len(kernel.shape) < 2 or set(kernel.shape[:-2]) - {1}:
        raise LoadError(f"dataset {kernel} is not a matrix. {_candidates(file)}")
    layers = [] if network is None or not group.layer else list(network.layers.values())
    layer = next((each for each in layers if group.layer in (each.name, each.inner.name)), None)
    return _Choice(kernel, group.bias, "chosen by name", layer)


def _kernels(file: KerasFile) -> list[TensorInfo]:
    """Kernels of linear layers, the last first."""
    return [group.kernel for group in reversed(file.groups) if group.kernel is not None]


def _candidates(file: KerasFile) -> str:
    kernels = _kernels(file)
    shown = ", ".join(str(kernel) for kernel in kernels[:_CANDIDATES_SHOWN]) or "none"
    more = f" and {len(kernels) - _CANDIDATES_SHOWN} more" if len(kernels) > _CANDIDATES_SHOWN else ""
    return f"Kernels of linear layers, the last first: {shown}{more}. Choose one with tensor= (--tensor)."


# ---------------------------------------------------------------------- what feeds it, and what follows


def _inputs(file: KerasFile, network: Network, choice: _Choice) -> HeadInputs | None:
    if choice.layer is None:
        return None
    layers = feeding_layers(network, choice.layer)
    if not layers:
        return HeadInputs(
            f"unknown: the configuration does not name one layer in front of {choice.layer.name!r}"
        )
    description = " of ".join(_words(layer) for layer in layers[:_LAYERS_SHOWN])
    normalised = next((layer for layer in layers if layer.kind != "Dropout"), layers[0])
    low, high = output_range(network, layers[0].name)
    if any(layer.is_half or layer.inner.is_half for layer in (*layers, choice.layer)):
        # Rounding that coarse can leave every bound but a sign, and the solid of a norm.
        low, high = (end if end == 0 else wide for end, wide in ((low, -math.inf), (high, math.inf)))
        description += ", in half precision"
    elif normalised.kind == "LayerNormalization":
        return HeadInputs(description, _layer_norm(file, normalised, choice.kernel.shape[-2]))
    return HeadInputs(description, None if (low, high) == ANYTHING else Box(low, high))


def _words(layer: KerasLayer) -> str:
    name = f"{layer.kind} {layer.name!r}"
    return name if layer.inner.activation == "linear" else f"{name} ({layer.inner.activation})"


def _layer_norm(file: KerasFile, layer: KerasLayer, features: int) -> Domain | None:
    """The domain of a normalisation over the last axis, from the gain and shift in the file."""
    # With rms_scaling Keras divides by the deviation but leaves the mean in, which may be anything.
    if layer.config.get("axis", -1) not in (-1, [-1]) or layer.config.get("rms_scaling"):
        return None
    epsilon = layer.config.get("epsilon", 1e-3)
    if not isinstance(epsilon, int | float) or not epsilon >= 0:
        return None
    group = next((each for each in file.groups if each.layer == layer.name), None)
    has_gain, has_shift = layer.config.get("scale") is not False, layer.config.get("center") is not False
    gain = group.array("gamma", "0") if group and has_gain else None
    shift = group.array("beta", "1" if has_gain else "0") if group and has_shift else None
    if (has_gain and gain is None) or (has_shift and shift is None):
        return None
    vectors = [
        np.array(default) if info is None else file.read(info)
        for info, default in ((gain, 1.0), (shift, 0.0))
    ]
    if not all(vector.shape in ((), (features,)) and np.isfinite(vector).all() for vector in vectors):
        return None
    return norm_solid(LayerNorm, vectors[0], vectors[1], features)


def _notes(choice: _Choice, classes: int) -> tuple[str, ...]:
    if classes == 1:
        return ("one class only: the sign of its logit decides, not an argmax",)
    if "sigmoid" in choice.activations:
        return (SIGMOID_NOTE,)
    return ()
