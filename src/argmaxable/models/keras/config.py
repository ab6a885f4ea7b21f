"""The layers of a Keras model, as its configuration (JSON) lists them: which one is the head, what feeds it.

Keras 2 and 3 write the same things a little differently; here both become a `Network`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.activations import ANYTHING, RANGES, Range
from argmaxable.models.ambiguity import parse_json

LINEAR = frozenset({"Dense", "Conv1D", "Conv2D"})
# Layers between the head and the output that keep the order of the classes, and functions that do. Flatten is
# none of them: after it the classes are those of all positions together.
_ORDER_PRESERVING = frozenset({"Dropout", "Reshape", "ActivityRegularization", "Identity"})
_INCREASING = frozenset(
    {"linear", "softmax", "log_softmax", "sigmoid", "tanh"}
    | {"softplus", "softsign", "exponential", "elu", "selu"}
)
# Layers whose results stay between the smallest and the largest value they take in.
_RANGE_PRESERVING = _ORDER_PRESERVING | {
    *("Flatten", "Permute", "RepeatVector", "Cropping1D", "Cropping2D"),
    *("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianNoise", "GaussianDropout"),
    "AlphaDropout",
    *(
        f"{kind}Pooling{dimensions}D"
        for kind in ("Average", "Max", "GlobalAverage", "GlobalMax")
        for dimensions in (1, 2, 3)
    ),
}
_WITH_ACTIVATION = LINEAR | {"Activation", "Softmax", "Conv3D", "DepthwiseConv2D", "SeparableConv2D"}
_RECURRENT = frozenset({"LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU", "RNN"})
_GATES = frozenset({"sigmoid", "hard_sigmoid"})
_ALIASES = {"swish": "silu", "hard_silu": "hard_swish"}
# What JSON of another shape than Keras writes raises when it is taken apart.
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, IndexError)
_MODELS = frozenset({"Sequential", "Functional", "Model"})
_WRAPPERS = frozenset({"TimeDistributed", "Bidirectional"})


@dataclass(frozen=True)
class KerasLayer:
    """A layer: its class, settings, the names of the layers it takes its input from, and for a wrapper the
    layer that it applies."""

    name: str
    kind: str
    config: Mapping[str, Any]
    inputs: tuple[str, ...]
    wrapped: KerasLayer | None = None

    @property
    def activation(self) -> str:
        """The name of the activation function, as in RANGES; unknown ones keep their own."""
        if self.kind == "Softmax":
            return "softmax"
        return _function(self.config.get("activation"))

    @property
    def is_half(self) -> bool:
        """Whether it computes in float16 or bfloat16, as with the policy "mixed_float16"."""
        policy = self.config.get("dtype")
        settings = policy.get("config") if isinstance(policy, dict) else None
        name = settings.get("name") if isinstance(settings, dict) else policy
        return isinstance(name, str) and name.endswith("float16")

    @property
    def inner(self) -> KerasLayer:
        """The layer that a wrapper (TimeDistributed, Bidirectional) applies, with the wrapper's inputs."""
        return self if self.wrapped is None else self.wrapped


@dataclass(frozen=True)
class Network:
    """Layers by name, in the order of the configuration, and the names of those that give the outputs."""

    layers: Mapping[str, KerasLayer]
    outputs: tuple[str, ...]
    ranges: dict[str, Range] = field(default_factory=dict, compare=False)

    def source(self, layer: KerasLayer) -> KerasLayer | None:
        """The layer in front, if there is exactly one."""
        return self.layers.get(layer.inputs[0]) if len(layer.inputs) == 1 else None


def parse(text: str | bytes) -> Network | None:
    """The network a configuration describes, None if it lists no layers; raises LoadError."""
    model = parse_json(text, "the model's configuration")
    try:
        return _network(model)
    except (RecursionError, *_MALFORMED) as error:
        raise LoadError(
            f"the model's configuration can't be read: {error!r}. It is damaged or of an unknown version; "
            "pass tensor= (--tensor), or save the weights alone."
        ) from error


def head_of(network: Network) -> tuple[KerasLayer, list[str]]:
    """The linear layer that leads to the only output, and the activations after it, last first.

    Raises LoadError when there is more than one output, or something in between could change the order.
    """
    if len(network.outputs) != 1:
        raise LoadError(f"the model has {len(network.outputs)} outputs ({', '.join(network.outputs[:9])})")
    trace = list(_trace_back(network, network.outputs[0]))
    if not trace or trace[-1].inner.kind not in LINEAR:
        end = f"{trace[-1].name!r} ({trace[-1].kind})" if trace else "nothing"
        raise LoadError(f"the output comes from {end}, which is not a linear layer")
    _require_same_order(trace)
    return trace[-1], [layer.inner.activation for layer in trace if layer.kind not in _ORDER_PRESERVING]


def _trace_back(network: Network, name: str) -> Iterator[KerasLayer]:
    """Layers from the named one back to the first linear one, or the first that may change the order."""
    layer = network.layers.get(name)
    for _ in network.layers:  # a damaged configuration may run in circles
        if layer is None:
            return
        yield layer
        if layer.kind not in _ORDER_PRESERVING | {"Activation", "Softmax"}:
            return
        layer = network.source(layer)


def _require_same_order(trace: list[KerasLayer]) -> None:
    head = trace[-1].inner
    classes = head.config.get("units", head.config.get("filters"))
    for layer in trace:
        shape = layer.config.get("target_shape") if layer.kind == "Reshape" else None
        if isinstance(shape, list) and shape[-1:] not in ([classes], [-1]):
            raise LoadError(
                f"the {classes} columns of {head.name!r} are reshaped to {shape}, so they are not the "
                "classes of one argmax"
            )
        if layer.kind not in _ORDER_PRESERVING and layer.inner.activation not in _INCREASING:
            raise LoadError(f"{layer.inner.activation} of {layer.name!r} may change the order of the logits")


def feeding_layers(network: Network, head: KerasLayer) -> list[KerasLayer]:
    """The layer in front of the head and, while they only pool or rearrange, those before it."""
    layers: dict[str, KerasLayer] = {}
    layer = network.source(head)
    while layer is not None and layer.name not in layers:
        layers[layer.name] = layer
        layer = network.source(layer) if layer.kind in _RANGE_PRESERVING else None
    return list(layers.values())


def stored_name(network: Network, layer: KerasLayer) -> str:
    """What Keras 3 calls a layer in its files: the class in snake case, numbered in the network's order."""
    alike = [each.name for each in network.layers.values() if each.kind == layer.kind]
    words = re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", layer.kind)).lower()
    place = alike.index(layer.name)
    return f"{words}_{place}" if place else words


def output_range(network: Network, name: str) -> Range:
    """What a layer can put out, whatever the model is given."""
    try:
        return _known_range(network, name)
    except (RecursionError, *_MALFORMED):  # a model inside the model is parsed only here
        return ANYTHING


def _known_range(network: Network, name: str) -> Range:
    if name not in network.ranges:
        network.ranges[name] = ANYTHING  # what a layer that depends on itself finds
        layer = network.layers.get(name)
        network.ranges[name] = ANYTHING if layer is None else _range(network, layer)
    return network.ranges[name]


def _range(network: Network, layer: KerasLayer) -> Range:
    if layer.kind in ("TimeDistributed", "Bidirectional"):
        return _wrapped_range(network, layer)
    if layer.kind in _MODELS:
        inside = _network({"class_name": layer.kind, "config": layer.config})
        return _known_range(inside, inside.outputs[0]) if inside and len(inside.outputs) == 1 else ANYTHING
    if layer.kind in _RANGE_PRESERVING or layer.kind == "Concatenate":
        ranges = [_known_range(network, each) for each in layer.inputs] or [ANYTHING]
        return min(low for low, _ in ranges), max(high for _, high in ranges)
    if layer.kind in _RECURRENT:
        return _recurrent_range(layer)
    if layer.kind == "ReLU":
        return _relu_range(layer)
    if layer.kind in _WITH_ACTIVATION:
        return RANGES.get(layer.activation, ANYTHING)
    return ANYTHING


def _wrapped_range(network: Network, layer: KerasLayer) -> Range:
    merged = layer.config.get("merge_mode", "concat")
    return (
        _range(network, layer.inner) if layer.inner is not layer and merged in ("concat", "ave") else ANYTHING
    )


def _recurrent_range(layer: KerasLayer) -> Range:
    """A state is a mean of activations, weighted by gates between 0 and 1, or one such times a gate."""
    kind, config = layer.kind.removeprefix("CuDNN"), layer.config
    cell = config.get("cell")
    if kind == "RNN" and isinstance(cell, dict):  # a layer made of a cell of its own
        kind, config = str(cell["class_name"]).removesuffix("Cell"), cell["config"]
    gate = _function(config.get("recurrent_activation", "sigmoid"))
    is_usual = _function(config.get("activation")) == "tanh" and gate in _GATES
    bounded = kind in _RECURRENT and (is_usual or layer.kind.startswith("CuDNN"))
    # More inputs are masks, or states to begin with: only a GRU hands on a part of those.
    return RANGES["tanh"] if bounded and (kind != "GRU" or len(layer.inputs) == 1) else ANYTHING


def _relu_range(layer: KerasLayer) -> Range:
    slope = layer.config.get("negative_slope") or 0.0
    threshold, highest = layer.config.get("threshold") or 0.0, layer.config.get("max_value")
    if slope != 0 or threshold != 0:
        return ANYTHING
    return (0.0, float(highest)) if isinstance(highest, int | float) and highest >= 0 else (0.0, math.inf)


# ---------------------------------------------------------------------- the JSON


def _network(model: Any) -> Network | None:
    config = model["config"]
    listed = config if isinstance(config, list) else config.get("layers")
    if model.get("class_name") not in _MODELS or not isinstance(listed, list) or not listed:
        return None
    if model["class_name"] != "Sequential":
        layers = [_layer(each, _inbound(each.get("inbound_nodes", []))) for each in listed]
        return _by_name(layers, tuple(dict.fromkeys(_references(config["output_layers"]))))
    layers = []
    for each in listed:
        layers.append(_layer(each, (layers[-1].name,) if layers else ()))
    return _by_name(layers, (layers[-1].name,))


def _by_name(layers: list[KerasLayer], outputs: tuple[str, ...]) -> Network:
    network = Network({layer.name: layer for layer in layers}, outputs)
    if len(network.layers) < len(layers):
        raise ValueError("two layers have the same name")
    return network


def _layer(record: dict[str, Any], inputs: tuple[str, ...]) -> KerasLayer:
    config = record["config"]
    if isinstance(config, list):  # a Sequential inside, as the first versions wrote it
        config = {"layers": config}
    kind, inner = str(record["class_name"]), config.get("layer")
    wrapped = _layer(inner, inputs) if kind in _WRAPPERS and isinstance(inner, dict) else None
    return KerasLayer(str(config.get("name", record.get("name"))), kind, config, inputs, wrapped)


def _function(value: Any) -> str:
    if isinstance(value, dict):  # a function, or a layer used as one
        value = value["config"] if isinstance(value.get("config"), str) else value.get("class_name")
    name = str(value or "linear").lower()
    return _ALIASES.get(name, name)


def _inbound(nodes: Any) -> tuple[str, ...]:
    """The layers a layer is applied to; none when it is applied more than once, to different things."""
    return tuple(_references(nodes)) if len(nodes) == 1 else ()


def _references(value: Any) -> Iterator[str]:
    """Names in [name, node, tensor, …], however deep in lists and objects.

    Of a layer that puts out several tensors, such as the states of an LSTM, only the first goes by its name.
    """
    if isinstance(value, list):
        if len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int):
            yield value[0] if value[2] == 0 else f"{value[0]}:{value[2]}"
            value = value[3:]  # Keras 2 puts further arguments, perhaps layers too, behind
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _references(each)
