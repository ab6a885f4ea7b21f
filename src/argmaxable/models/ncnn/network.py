"""The network of an ncnn model: the lines of its .param file, parsed into plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice

MAGIC = "7767517"
# Stands for a parameter that is not given, in the lists of a shape.
ABSENT = -233
_ARRAY = -23300
_INTEGER = re.compile(r"-?[0-9]{1,10}")
_REAL = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_LONGEST_LIST = 64
_MOST_LAYERS = 2**18

Parameter = int | float | str | tuple[int | float, ...]


@dataclass(frozen=True)
class NcnnLayer:
    """One layer: its kind, name, the blobs it takes and gives, and its parameters by number."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Mapping[int, Parameter]

    def integer(self, number: int, default: int = 0) -> int:
        """A parameter that is a whole number; raises LoadError."""
        value = self.parameters.get(number, default)
        if not isinstance(value, int):
            raise LoadError(f"layer {self.name[:80]!r} has a parameter {number} that is not a whole number")
        return value

    def real(self, number: int, default: float) -> float:
        value = self.parameters.get(number, default)
        if not isinstance(value, int | float):
            raise LoadError(f"layer {self.name[:80]!r} has a parameter {number} that is not a number")
        return float(value)

    def integers(self, number: int) -> tuple[int, ...] | None:
        """A list of whole numbers, which is stored under another number; None where it is not given."""
        value = self.parameters.get(_ARRAY - number)
        if value is None:
            return None
        if not isinstance(value, tuple) or not all(isinstance(each, int) for each in value):
            raise LoadError(f"layer {self.name[:80]!r} has a parameter {number} that is not a list")
        return tuple(each for each in value if isinstance(each, int))


def parse_network(text: str) -> tuple[NcnnLayer, ...]:
    """The layers in their order; raises LoadError. A blob is made once, and before it is used."""
    lines = text.split("\n")
    if lines[0].strip() != MAGIC:
        raise LoadError(f"it does not begin with {MAGIC}")
    counts = lines[1].split() if len(lines) > 1 else []
    if len(counts) != 2 or not all(_INTEGER.fullmatch(each) for each in counts):
        raise LoadError("its second line does not have two numbers")
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(counts[0]) or len(rows) > _MOST_LAYERS:
        raise LoadError(f"it has {len(rows):,} layers, and says {counts[0]}")
    layers = tuple(map(_layer, rows))
    for names, what in (
        ((layer.name for layer in layers), "layers"),
        ((blob for layer in layers for blob in layer.outputs), "blobs"),
    ):
        repeated = twice(names)
        if repeated is not None:
            raise ambiguous(f"two {what} are called {repeated[:80]!r}")
    made = set[str]()
    for layer in layers:
        missing = next((blob for blob in layer.inputs if blob not in made), None)
        if missing is not None:
            raise LoadError(
                f"layer {layer.name[:80]!r} takes {missing[:80]!r}, which no layer before it gives"
            )
        made.update(layer.outputs)
    return layers


def _layer(words: list[str]) -> NcnnLayer:
    if len(words) < 4 or not all(re.fullmatch("[0-9]{1,6}", each) for each in words[2:4]):
        raise LoadError(f"a layer is described as {' '.join(words)[:80]!r}")
    kind, name = words[:2]
    given, made = int(words[2]), int(words[3])
    blobs, rest = words[4 : 4 + given + made], words[4 + given + made :]
    if len(blobs) != given + made:
        raise LoadError(f"layer {name[:80]!r} has too few blobs")
    parameters = dict[int, Parameter]()
    for each in rest:
        number, _, value = each.partition("=")
        if not _INTEGER.fullmatch(number):
            if number == value == "" or re.fullmatch(r"[$#]\w+", number):
                continue
            raise LoadError(f"layer {name[:80]!r} has a parameter {each[:40]!r}")
        if int(number) in parameters:
            raise ambiguous(f"layer {name[:80]!r} has the parameter {number} twice")
        parameters[int(number)] = _value(value, name, is_list=int(number) <= _ARRAY)
    return NcnnLayer(kind, name, tuple(blobs[:given]), tuple(blobs[given:]), parameters)


def _value(text: str, name: str, *, is_list: bool) -> Parameter:
    if not is_list:
        return _number(text, name)
    length, *values = text.split(",")
    if not _INTEGER.fullmatch(length) or len(values) != int(length) or len(values) > _LONGEST_LIST:
        raise LoadError(f"layer {name[:80]!r} has a list {text[:40]!r} of another length than it says")
    return tuple(number for each in values if not isinstance(number := _number(each, name), str | tuple))


def _number(text: str, name: str) -> int | float | str:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if text[:1] == '"' or text[:1].isalpha():  # an expression or a text
        return text
    raise LoadError(f"layer {name[:80]!r} has the parameter {text[:40]!r}")
