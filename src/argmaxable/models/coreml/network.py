"""A Core ML neural network (NeuralNetwork.proto), the kind before programs: its layers and where weights lie.

Weights stand in the model's own file, as float32 or float16. Parsed without a library.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.protobuf import (
    BYTES,
    FLOAT,
    FLOATS,
    NUMBER,
    NUMBERS,
    Data,
    Field,
    Parts,
    inside,
    number_in,
    parts_of,
    required,
    signed,
    signed_numbers,
    single,
    text,
)

# Kinds of layers by the number of their field, with the wire types of the fields that are looked at.
_SHORT = {1: NUMBER, 2: NUMBER}
_LAYERS: dict[int, tuple[str, Mapping[int, int]]] = {
    100: (
        "convolution",
        {1: NUMBER, 2: NUMBER, 10: NUMBER, 20: NUMBERS, 50: BYTES, 51: BYTES, 60: NUMBER, 70: NUMBER}
        | {90: BYTES, 91: BYTES},
    ),
    120: ("pooling", {1: NUMBER, 60: NUMBER}),
    130: ("activation", dict.fromkeys((5, 10, 15, 20, 25, 30, 31, 40, 41, 50, 60, 70, 71), BYTES)),
    140: ("innerProduct", {1: NUMBER, 2: NUMBER, 10: NUMBER, 20: BYTES, 21: BYTES, 22: NUMBER}),
    175: ("softmax", {}),
    250: ("bias", {1: NUMBERS, 2: BYTES}),
    280: ("reduce", {1: NUMBER, 3: NUMBER}),
    300: ("reshape", {2: NUMBER}),
    301: ("flatten", _SHORT),
    310: ("permute", {1: NUMBERS}),
    420: ("uniDirectionalLSTM", {10: BYTES}),
    430: ("biDirectionalLSTM", {10: BYTES, 11: BYTES}),
    500: ("custom", {10: BYTES}),
    660: ("clip", {1: FLOAT, 2: FLOAT}),
    760: ("tanh", {}),
    950: ("softmaxND", {1: NUMBER}),
    985: ("transpose", {1: NUMBERS}),
    1025: ("argMax", {1: NUMBER}),
    1120: ("squeeze", {1: NUMBERS, 2: NUMBER}),
    1125: ("expandDims", {1: NUMBERS}),
    1140: ("reshapeStatic", {1: NUMBERS}),
}
_LAYER = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES}
_NETWORK = {1: BYTES, 5: NUMBER, 100: BYTES, 101: BYTES, 200: BYTES}
_DESCRIPTION = {1: BYTES, 10: BYTES, 12: BYTES, 100: BYTES}
_FEATURE = {1: BYTES, 3: BYTES}
_WEIGHTS = {1: FLOATS, 2: BYTES, 30: BYTES, 31: BYTES, 40: BYTES}
_ACTIVATION, _VALID_PADDING = 130, 50
_MOST_LAYERS = 2**16
_RANK_OF_OLD = 5
_EXACT_MAPPING = 1

# The number of an activation's field, and its parameters.
ActivationKind = tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class NeuralArray:
    """Numbers in the model's file: type (empty if quantised), how many, and where they start."""

    dtype: str
    count: int
    start: int


@dataclass(frozen=True)
class NeuralLayer:
    """One layer: its fields by number, as whole numbers, and the arrays among them.

    `rank` is the number of axes of its output, where the file says so.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    numbers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    arrays: Mapping[int, NeuralArray] = field(default_factory=dict)
    activations: tuple[ActivationKind, ...] = ()
    limits: tuple[float, float] = (0.0, 0.0)
    is_padded: bool = False
    rank: int | None = None

    def number(self, place: int, default: int = 0) -> int:
        found = self.numbers.get(place, ())
        return found[0] if len(found) == 1 else default


@dataclass(frozen=True)
class NeuralNetwork:
    """The layers, ranks of the inputs, the output with the classes' scores, and their labels."""

    layers: tuple[NeuralLayer, ...]
    ranks: Mapping[str, int]
    outputs: tuple[str, ...]
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def parse_network(data: Data, description: Field | None, network: Field) -> NeuralNetwork:
    """The network in a field of a model, with what the model's description says; raises LoadError."""
    parser = _Parser(data)
    parts = inside(data, network, _NETWORK)
    if len(parts[1]) > _MOST_LAYERS:
        raise LoadError(f"it has more than {_MOST_LAYERS:,} layers")
    about = {number: list[Field]() for number in _DESCRIPTION}
    if description is not None:
        about = inside(data, description, _DESCRIPTION)
    is_exact = parser.number(parts, 5) == _EXACT_MAPPING
    given = dict(parser.feature(each) for each in about[1])
    ranks = {name: rank if is_exact else _RANK_OF_OLD for name, rank in given.items()}
    layers = tuple(map(parser.layer, parts[1]))
    scores = single(parts, 200, "the name of the classes' scores")
    declared = tuple(parser.feature(each)[0] for each in about[10])
    made = {name for layer in layers for name in layer.outputs}
    outputs = (
        (text(data, scores),) if scores is not None else tuple(each for each in declared if each in made)
    )
    if not outputs and layers and layers[-1].outputs:
        outputs = layers[-1].outputs[:1]
    known = {name: rank for name, rank in ranks.items() if rank}
    return NeuralNetwork(layers, known, outputs, parser.labels(parts), parser.metadata(about[100]))


class _Parser:
    """Parses one file."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def number(self, parts: Parts, number: int) -> int:
        found = single(parts, number, f"field {number}")
        return 0 if found is None else number_in(self.data, found)

    def feature(self, field_: Field) -> tuple[str, int]:
        """The name of an input or output, and the number of axes of an array; 0 for an image and the rest."""
        parts = inside(self.data, field_, _FEATURE)
        type_ = single(parts, 3, "a feature's type")
        array = None if type_ is None else single(inside(self.data, type_, {5: BYTES}), 5, "an array's type")
        rank = (
            0
            if array is None
            else len(signed_numbers(self.data, inside(self.data, array, {1: NUMBERS})[1], 64))
        )
        return text(self.data, required(parts, 1, "a feature's name")), rank

    def labels(self, parts: Parts) -> tuple[str, ...]:
        texts, numbers = single(parts, 100, "the labels"), single(parts, 101, "the labels")
        if texts is not None and numbers is not None:
            raise ambiguous("the classes have labels of two kinds")
        if texts is not None:
            return tuple(text(self.data, each) for each in inside(self.data, texts, {1: BYTES})[1])
        if numbers is not None:
            found = inside(self.data, numbers, {1: NUMBERS})[1]
            return tuple(str(each) for each in signed_numbers(self.data, found, 64))
        return ()

    def metadata(self, found: list[Field]) -> dict[str, str]:
        if len(found) > 1:
            raise ambiguous("the metadata are there twice")
        entries = inside(self.data, found[0], {100: BYTES})[100] if found else []
        pairs = [inside(self.data, each, {1: BYTES, 2: BYTES}) for each in entries]
        keys = [text(self.data, required(pair, 1, "a key of the metadata")) for pair in pairs]
        if len(set(keys)) < len(keys):
            raise ambiguous("a key of the metadata is there twice")
        values = [single(pair, 2, "a value of the metadata") for pair in pairs]
        return {
            key: "" if value is None else text(self.data, value)
            for key, value in zip(keys, values, strict=True)
        }

    def layer(self, field_: Field) -> NeuralLayer:
        kinds = {number: BYTES for number in _LAYERS}
        parts = inside(self.data, field_, _LAYER | kinds)
        chosen = [number for number in kinds if parts[number]]
        names = [tuple(text(self.data, each) for each in parts[number]) for number in (1, 2, 3)]
        if len(chosen) > 1 or len(names[0]) > 1 or any(len(parts[number]) > 1 for number in chosen):
            raise ambiguous("a layer has two names or kinds")
        name = names[0][0] if names[0] else ""
        rank = self._rank(parts[5])
        if not chosen:
            return NeuralLayer(name, "another kind", names[1], names[2], rank=rank)
        kind, wire_types = _LAYERS[chosen[0]]
        return self._of_kind(
            NeuralLayer(name, kind, names[1], names[2], rank=rank),
            inside(self.data, parts[chosen[0]][0], wire_types),
            wire_types,
        )

    def _rank(self, tensors: list[Field]) -> int | None:
        if len(tensors) != 1:
            return None
        return self.number(inside(self.data, tensors[0], {1: NUMBER}), 1) or None

    def _of_kind(self, layer: NeuralLayer, parts: Parts, wire_types: Mapping[int, int]) -> NeuralLayer:
        numbers: dict[int, tuple[int, ...]] = {}
        for number, wire_type in wire_types.items():
            if wire_type == NUMBER and (found := single(parts, number, f"a field of {layer.name[:80]!r}")):
                numbers[number] = (signed(self.data, found, 64),)
            elif wire_type == NUMBERS:
                numbers[number] = tuple(signed_numbers(self.data, parts[number], 64))
        places = {"convolution": (90, 91), "innerProduct": (20, 21), "bias": (2,)}.get(layer.kind, ())
        arrays = {
            place: self._array(found)
            for place in places
            if (found := single(parts, place, f"the weights of {layer.name[:80]!r}")) is not None
        }
        layer = replace(layer, numbers=numbers, arrays=arrays)
        match layer.kind:
            case "activation":
                return replace(layer, activations=(self._activation(parts),))
            case "uniDirectionalLSTM" | "biDirectionalLSTM":
                fields = [each for number in wire_types for each in parts[number]]
                inner = (inside(self.data, each, _LAYERS[_ACTIVATION][1]) for each in fields)
                return replace(layer, activations=tuple(map(self._activation, inner)))
            case "clip":
                return replace(layer, limits=(self._float(parts, 1), self._float(parts, 2)))
            case "convolution":
                return replace(layer, is_padded=any(map(self._has_padding, parts[_VALID_PADDING])))
            case "custom":
                class_name = single(parts, 10, "the class of a layer")
                name = "" if class_name is None else text(self.data, class_name)
                return replace(layer, kind=f"custom {name[:80]}")
        return layer

    def _activation(self, parts: Parts) -> ActivationKind:
        """The number of an activation's kind, and its parameters, which are 0 where they are left out."""
        chosen = [number for number, found in parts.items() if found]
        if len(chosen) != 1 or len(parts[chosen[0]]) != 1:
            raise ambiguous("an activation has two kinds, or none")
        place = parts[chosen[0]][0]
        if chosen[0] in (25, 71):  # parameters that are arrays
            return chosen[0], ()
        inner = inside(self.data, place, {1: FLOAT, 2: FLOAT})
        return chosen[0], (self._float(inner, 1), self._float(inner, 2))

    def _float(self, parts: Parts, number: int) -> float:
        found = single(parts, number, "a parameter")
        if found is None:
            return 0.0
        value: float = struct.unpack("<f", self.data[found.start : found.end])[0]
        return value

    def _has_padding(self, field_: Field) -> bool:
        amounts = single(inside(self.data, field_, {1: BYTES}), 1, "the padding")
        edges = [] if amounts is None else inside(self.data, amounts, {10: BYTES})[10]
        sizes = [inside(self.data, each, {1: NUMBER, 2: NUMBER}) for each in edges]
        return any(self.number(each, place) for each in sizes for place in (1, 2))

    def _array(self, field_: Field) -> NeuralArray:
        parts = inside(self.data, field_, _WEIGHTS)
        filled = [number for number in (1, 2, 30, 31) if any(each.end > each.start for each in parts[number])]
        if len(filled) > 1:
            raise ambiguous("weights are stored in two forms")
        if not filled or filled[0] in (30, 31) or parts[40]:
            return NeuralArray("", 0, 0)
        found = parts[filled[0]]
        size = 4 if filled[0] == 1 else 2
        if len(found) != 1 or not found[0].is_delimited or (found[0].end - found[0].start) % size:
            raise LoadError("weights are not stored as one row of floats")
        count = (found[0].end - found[0].start) // size
        return NeuralArray("float32" if size == 4 else "float16", count, found[0].start)


def network_in(data: Data) -> tuple[Field | None, Field] | None:
    """The description and the neural network of a model, or None if it has none."""
    parts = parts_of(data, 0, len(data), {2: BYTES, 403: BYTES, 500: BYTES, 502: BYTES})
    found = [each for number in (403, 500) for each in parts[number]]
    if not found:
        return None
    if len(found) > 1 or parts[502]:
        raise ambiguous("the model is of two kinds at once")
    return single(parts, 2, "the description"), found[0]
