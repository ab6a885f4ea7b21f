"""From a graph to a `Finding`: which layer is the head, what it is given, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import SIGMOID_NOTE, Arrays, Finding, Labels, Tap, TensorInfo
from argmaxable.models.graph.domain import Reader, inputs_of
from argmaxable.models.graph.linear_layer import (
    chosen_bias,
    last_layer,
    layer_using,
    other_weights,
    require_one_argmax,
)

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph
    from argmaxable.models.graph.products import Stored
    from argmaxable.models.graph.trace_layer import LinearLayer
    from argmaxable.models.registry import ReadOptions


def find_in_graph(
    format_: str,
    graph: Graph,
    options: ReadOptions,
    values: Reader,
    labels_of: Callable[[int], tuple[Labels | None, list[str]]],
) -> Finding:
    """The head of a graph, whose constants `values` reads.

    `labels_of` takes the number of classes and gives their labels or, where none fit, the reasons. Raises
    LoadError.
    """
    layer = last_layer(graph) if options.tensor is None else layer_using(graph, options.tensor)
    flipped = layer.stored_by_class == options.transpose
    classes, features = _shape(graph, layer.weight.name, flipped)
    is_named = options.tensor is not None
    require_one_argmax(layer, named=is_named, bias_named=options.bias_tensor is not None)
    bias = chosen_bias(graph, layer, options.bias_tensor)
    labels, doubts = labels_of(classes)

    def read() -> Arrays:
        weight = values(layer.weight).reshape((features, classes) if flipped else (classes, features))
        numbers = None if bias is None else values(bias)
        if numbers is not None and numbers.size == 1:  # one number for all classes, as Add broadcasts it
            numbers = np.broadcast_to(numbers.reshape(1), classes)
        return np.ascontiguousarray(weight.T) if flipped else weight, numbers

    return Finding(
        format=format_,
        weight=_info(graph, layer.weight.name),
        bias=None if bias is None else _info(graph, bias.name),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else "the linear layer that leads to the output",
        read=read,
        labels=labels,
        inputs=None if options.transpose else inputs_of(graph, layer.features, features, values),
        alternatives=tuple(_info(graph, name) for name in other_weights(graph, layer.weight.name)),
        activation=layer.activation,
        notes=(*_notes(graph, layer, bias), *doubts),
        taps=() if options.transpose else _taps(layer),
    )


def _notes(graph: Graph, layer: LinearLayer, bias: Stored | None) -> Iterator[str]:
    yield from layer.notes
    parts = [layer.weight] if bias is None else [layer.weight, bias]
    for name in dict.fromkeys(name for each in parts for name in (each.name, each.scale, each.zero_point)):
        if name in graph.replaceable:
            yield f"{name!r} is also an input of the graph: whoever runs the model can replace it"
    if layer.activation == "sigmoid":
        yield SIGMOID_NOTE
    if layer.crossing:
        yield f"taken because it was named, although the product with {layer.weight.name!r} {layer.crossing}"


def _taps(layer: LinearLayer) -> tuple[Tap, ...]:
    """Quantised features are not the numbers that the weights are multiplied with, so they are left out."""
    plain = (each for each in layer.features if not (each.scale or each.in_steps or each.rounded))
    return tuple(Tap(each.tensor, each.axis) for each in plain)


def _shape(graph: Graph, name: str, flipped: bool) -> tuple[int, int]:
    """Classes and features; further axes of a convolution have length 1."""
    rows, columns = graph.constants[name][:2]
    if rows < 1 or columns < 1:
        raise LoadError(f"tensor {name!r} has shape {graph.constants[name]}; the file is damaged.")
    return (columns, rows) if flipped else (rows, columns)


def _info(graph: Graph, name: str) -> TensorInfo:
    return TensorInfo(name, graph.constants[name], graph.types[name])
