"""Finding the last linear layer in a graph of named operations.

A head that can't be vouched for is not returned: the user has to name it. So outputs must agree on a layer,
or one of them be named as the answer is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.graph.products import Stored
from argmaxable.models.graph.trace_layer import LinearLayer, different, linear_layers, trace_layers

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

_QUANTISED = frozenset({"MatMulInteger", "QLinearMatMul", "QGemm", "DequantizeLinear", "MatMulNBits"})
# How people call the output that holds the answer, surest first.
_ANSWERS = ("logits", "output", "outputs", "probabilities", "probs", "scores", "predictions")
# Enough to find the head, which is nearly always among the last; a large model has hundreds.
_CANDIDATES_SHOWN = 6


@dataclass(frozen=True)
class _Traced:
    """What the traces from an output lead to: different layers, and the last nodes of traces without one."""

    layers: tuple[LinearLayer, ...]
    dead_ends: tuple[Node, ...]


def last_layer(graph: Graph) -> LinearLayer:
    """The linear layer the outputs come from; raises LoadError when there is not exactly one.

    Outputs that come from none, such as states handed to the next call, are left out; where several come
    from different layers, a name such as "logits" decides.
    """
    behind = {
        output: _Traced(*trace_layers(graph, output)) for output in graph.outputs if output in graph.producers
    }
    if not behind:
        raise LoadError("the graph computes no output; the file is not a complete model. Export it again.")
    layers = different(layer for each in behind.values() for layer in each.layers)
    if len(layers) > 1:
        answer = _answer(behind)
        layers = () if answer is None else behind[answer].layers
    if not layers:
        raise LoadError(f"{_why_none(behind)} {_candidates(graph)}")
    layer = layers[0]
    _require_answer(graph, behind, layer)
    return replace(layer, notes=(*layer.notes, *_notes(behind, layer)))


def layer_using(graph: Graph, weight: str) -> LinearLayer:
    """The linear layer with this weight; a constant that no layer uses is taken as classes × features.

    Raises LoadError when there is no such constant, or its users disagree on orientation or bias.
    """
    shape = graph.constants.get(weight)
    if shape is None:
        raise LoadError(f"{weight!r} not found ({len(graph.constants)} tensors). {_candidates(graph)}")
    if len(shape) < 2 or set(shape[2:]) - {1}:
        raise LoadError(f"tensor {weight!r} has shape {shape}, expected a matrix. {_candidates(graph)}")
    users = [layer for layer in linear_layers(graph) if layer.weight.name == weight]
    if len(users) > 1:
        raise LoadError(
            f"tensor {weight!r} is used by {len(users)} layers that differ in orientation or bias, so it "
            "is not clear which one is the head. Save the wanted weight and bias as .npz instead."
        )
    return users[0] if users else LinearLayer(Stored(weight))


def other_weights(graph: Graph, weight: str) -> list[str]:
    """Weights of all other linear layers, nearest to the output first."""
    names = dict.fromkeys(layer.weight.name for layer in reversed(linear_layers(graph)))
    return [name for name in names if name != weight]


def require_one_argmax(layer: LinearLayer, *, named: bool, bias_named: bool) -> None:
    """Refuse, with a LoadError, a product whose columns are not certain to be the classes of one argmax.

    Where the user has named the weight this is taken for granted, but not that a bias has one number for each
    of its columns, unless that is named too.
    """
    if named and layer.misplaced and not bias_named:
        added = " and ".join(repr(bias.name) for bias in layer.biases)
        raise LoadError(
            f"the product with {layer.weight.name!r} {layer.misplaced}. So {added} may not be its bias. To "
            "take it anyway, pass bias_tensor= (--bias-tensor), or save weight and bias as .npz."
        )
    if layer.crossing and not named:
        raise LoadError(
            f"the product with {layer.weight.name!r} {layer.crossing}. To use it anyway, pass "
            f"tensor={layer.weight.name!r} (--tensor)."
        )


def chosen_bias(graph: Graph, layer: LinearLayer, wanted: str | None) -> Stored | None:
    """The bias that is added to a layer, or the constant with the wanted name; raises LoadError."""
    added = ", ".join(bias.name for bias in layer.biases)
    if wanted is None and len(layer.biases) > 1:
        raise LoadError(
            f"{len(layer.biases)} constants are added to the product with {layer.weight.name!r}: {added}. "
            "Their sum would be rounded: export the model with a single bias. (bias_tensor=, --bias-tensor "
            "takes one of them and leaves the others out.)"
        )
    if wanted is None:
        return layer.biases[0] if layer.biases else None
    if wanted not in graph.constants:
        raise LoadError(
            f"tensor {wanted!r} not found ({len(graph.constants)} constants; added to the layer: "
            f"{added or 'none'}). Correct bias_tensor= (--bias-tensor) or leave it out."
        )
    return next((bias for bias in layer.biases if bias.name == wanted), Stored(wanted))


def _require_answer(graph: Graph, behind: Mapping[str, _Traced], layer: LinearLayer) -> None:
    """Refuse the layer of some other output where one is called an answer but comes from no layer."""
    answers = [output for output in behind if _plain(output) in _ANSWERS]
    if answers and not any(layer in behind[output].layers for output in answers):
        alone = {output: behind[output] for output in answers}
        raise LoadError(f"{_why_none(alone)} {_candidates(graph)}")


def _answer(behind: Mapping[str, _Traced]) -> str | None:
    """The one output whose name says that it is the answer and that comes from one layer."""
    for wanted in _ANSWERS:
        called = [output for output in behind if _plain(output) == wanted]
        if len(called) == 1 and len(behind[called[0]].layers) == 1:
            return called[0]
    return None


def _plain(output: str) -> str:
    """A tensor's name without the scopes and numbers that exporters put around it."""
    return output.lower().removesuffix(":0").replace(".", "/").rpartition("/")[2]


def _notes(behind: Mapping[str, _Traced], layer: LinearLayer) -> Iterator[str]:
    left_out = [output for output, each in behind.items() if layer not in each.layers]
    if left_out:
        more = f" and {len(left_out) - _CANDIDATES_SHOWN} more" if len(left_out) > _CANDIDATES_SHOWN else ""
        yield f"outputs that don't come from this layer: {', '.join(left_out[:_CANDIDATES_SHOWN])}{more}"
    for output, each in behind.items():
        if layer in each.layers and each.dead_ends:
            yield f"the trace back from {output!r} branches at an If; only one branch leads to a linear layer"


def _why_none(behind: Mapping[str, _Traced]) -> str:
    outputs = f"{len(behind)} outputs ({_shown(behind)})" if len(behind) > 1 else f"output {_shown(behind)!r}"
    if any(each.layers for each in behind.values()):
        if len(behind) == 1:
            return f"the branches of an If lead the {outputs} to different linear layers."
        return (
            f"the graph has {outputs}, which do not all come from one linear layer, and none is called "
            f"{_ANSWERS[0]!r} or the like."
        )
    ends = ", ".join({node.op: None for each in behind.values() for node in each.dead_ends})
    return f"no linear layer leads straight to the {outputs}: the trace ends at {ends}."


def _shown(behind: Mapping[str, _Traced]) -> str:
    return ", ".join(list(behind)[:_CANDIDATES_SHOWN])


def _candidates(graph: Graph) -> str:
    """What the user can choose from, nearest to the output first."""
    weights = other_weights(graph, "")
    if not weights:
        quantised = any(node.op in _QUANTISED for node in graph.nodes)
        quantisation = "quantised in an unknown way: use the float model it was made from"
        hint = quantisation if quantised else "is it a classifier?"
        return f"The graph has no linear layer with constant weights ({hint})."
    shown = [f"{name} {graph.constants[name]}" for name in weights[:_CANDIDATES_SHOWN]]
    more = f" and {len(weights) - len(shown)} more" if len(weights) > len(shown) else ""
    return (
        f"Weights of linear layers, nearest to the output first: {', '.join(shown)}{more}. "
        "Choose one with tensor= (--tensor)."
    )
