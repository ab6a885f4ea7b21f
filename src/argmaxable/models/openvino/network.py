"""The network of an OpenVINO model: the layers and edges of its .xml, parsed into plain data.

Document types are refused, and with them every entity, and so is deep nesting: what is left of XML can't
grow while it is read.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice

Element = ElementTree.Element

_VERSIONS = ("10", "11")
# A loop's body is a network inside a layer; nobody nests ten of them.
_DEEPEST = 100
_INTEGER = re.compile(r"-?[0-9]{1,18}")
# OpenVINO reads ids as numbers, for which "01" and " 1" are 1.
_ID = re.compile(r"0|[1-9][0-9]{0,17}")

Place = tuple[str, str]  # a layer's id and the id of one of its ports


@dataclass(frozen=True)
class Port:
    """An input or output of a layer: the shape declared for it, and the names of its tensor.

    −1 is a length not known in advance. No lengths at all are a single number, or a number of axes that is
    not known either.
    """

    number: str
    shape: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class NetworkLayer:
    """One operation with its attributes, as text."""

    number: str
    name: str
    kind: str
    attributes: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute's list of whole numbers; raises LoadError."""
        text = self.attributes.get(name)
        if text is None and default is not None:
            return default
        parts = [part.strip() for part in (text or "").split(",")] if text else []
        if text is None or not all(_INTEGER.fullmatch(part) for part in parts):
            raise LoadError(f"layer {self.name[:80]!r} has no list of whole numbers {name!r}")
        return tuple(map(int, parts))


@dataclass(frozen=True)
class LayerNetwork:
    """The layers in their order, where each input comes from, and what the converter says of the model."""

    layers: tuple[NetworkLayer, ...]
    sources: Mapping[Place, Place]
    metadata: Mapping[str, str]


class _BoundedBuilder(ElementTree.TreeBuilder):
    """Builds the tree, as long as it stays shallow and declares no document type."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise LoadError(f"its elements are nested more than {_DEEPEST} deep")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise LoadError("it declares a document type, which OpenVINO's files never do")


def parse_network(data: bytes) -> LayerNetwork:
    """The network in these bytes; raises LoadError."""
    if b"\0" in data:  # UTF-16, which OpenVINO never writes
        raise LoadError("it is not UTF-8 text")
    parser = ElementTree.XMLParser(target=_BoundedBuilder())
    try:
        parser.feed(data)
        root = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise LoadError(f"it is not XML: {error}") from error
    if root.tag != "net" or root.get("version") not in _VERSIONS:
        raise LoadError(
            f"it is a {root.tag[:40]!r} of version {root.get('version')!r}; expected a 'net' of version "
            f"{' or '.join(_VERSIONS)}"
        )
    layers = tuple(map(_layer, _only(root, "layers", "the network")))
    _require_plain(layer.number for layer in layers)
    repeated = twice(layer.number for layer in layers)
    if repeated is not None:
        raise ambiguous(f"two layers have the id {repeated[:80]!r}")
    return LayerNetwork(layers, _sources(root), _metadata(root))


def _require_plain(numbers: Iterable[str]) -> None:
    strange = next((number for number in numbers if not _ID.fullmatch(number)), None)
    if strange is not None:
        raise ambiguous(f"the id {strange[:80]!r} is not written as a whole number usually is")


def _layer(element: Element) -> NetworkLayer:
    name = element.get("name", "")
    if not element.get("id") or not element.get("type"):
        raise LoadError(f"layer {name[:80]!r} has no id or no type")
    data = element.findall("data")
    if len(data) > 1:
        raise ambiguous(f"layer {name[:80]!r} has its attributes twice")
    return NetworkLayer(
        element.get("id", ""), name, element.get("type", ""), data[0].attrib if data else {},
        _ports(element, "input", name), _ports(element, "output", name),
    )  # fmt: skip


def _ports(element: Element, tag: str, name: str) -> tuple[Port, ...]:
    ports = tuple(map(_port, _only(element, tag, f"layer {name[:80]!r}")))
    _require_plain(port.number for port in ports)
    repeated = twice(port.number for port in ports)
    if repeated is not None:
        raise ambiguous(f"layer {name[:80]!r} has two {tag} ports with the id {repeated[:80]!r}")
    return ports


def _port(element: Element) -> Port:
    lengths = [(each.text or "").strip() for each in element.findall("dim")]
    names = tuple(filter(None, element.get("names", "").split(",")))
    # A range, such as 1..64, is a length not known.
    shape = tuple(int(length) if _INTEGER.fullmatch(length) else -1 for length in lengths)
    return Port(element.get("id", ""), shape, names)


def _only(element: Element, tag: str, where: str) -> list[Element]:
    """What is inside the one child with this tag; nothing where there is none."""
    found = element.findall(tag)
    if len(found) > 1:
        raise ambiguous(f"{where} has two lists called {tag!r}")
    return list(found[0]) if found else []


def _sources(root: Element) -> dict[Place, Place]:
    edges = [
        tuple(edge.get(name, "") for name in ("to-layer", "to-port", "from-layer", "from-port"))
        for edge in _only(root, "edges", "the network")
    ]
    _require_plain(number for edge in edges for number in edge)
    repeated = twice(f"{edge[0]}, port {edge[1]}" for edge in edges)
    if repeated is not None:
        raise ambiguous(f"two edges lead to layer {repeated[:80]}")
    return {(edge[0], edge[1]): (edge[2], edge[3]) for edge in edges}


def _metadata(root: Element) -> dict[str, str]:
    """What the converter stored of the original's own metadata, such as the characters of a recogniser."""
    found: dict[str, str] = {}
    for parent in ("rt_info/framework", "rt_info/model_info"):
        for element in root.findall(f"{parent}/*"):
            if element.tag in found:
                raise ambiguous(f"the metadata {element.tag[:80]!r} is there twice")
            found[element.tag] = element.get("value", "")
    return found
