"""A spaCy pipeline's folder, as `nlp.to_disk` writes it: models in MessagePack, labels, config.cfg."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray


def stored(values: NDArray[Any]) -> dict[bytes, object]:
    """An array as srsly stores it."""
    return {b"nd": True, b"type": values.dtype.str, b"kind": b"", b"shape": values.shape,
            b"data": values.tobytes()}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    name: str
    params: Mapping[str, object] = field(default_factory=dict)
    refs: Mapping[str, int] = field(default_factory=dict)
    attrs: Mapping[str, object] = field(default_factory=dict)


def dense(name: str, weight: NDArray[Any], bias: NDArray[Any], **attrs: object) -> Layer:
    return Layer(name, {"W": stored(weight), "b": stored(bias)}, attrs=attrs)


def message(layers: Sequence[Layer]) -> dict[str, Any]:
    """What thinc's `Model.to_dict` says of a model."""
    return {
        "nodes": [
            {"index": number, "name": each.name, "dims": {"nO": None}, "refs": dict(each.refs)}
            for number, each in enumerate(layers)
        ],
        "attrs": [{key: msgpack.packb(value) for key, value in each.attrs.items()} for each in layers],
        "params": [dict(each.params) for each in layers],
        "shims": [[] for _ in layers],
    }


def transitions(
    weight: NDArray[Any], bias: NDArray[Any], *, has_upper: bool = True, upper: int = 3
) -> list[Layer]:
    """The model of an entity recogniser or a parser."""
    lower = np.zeros((3, weight.shape[1], 2, 4), np.float32)
    return [
        Layer(
            "parser_model", refs={"tok2vec": 1, "lower": 2, "upper": upper}, attrs={"has_upper": has_upper}
        ),
        Layer("tok2vec-listener>>list2array>>linear"),
        Layer("precomputable_affine", {"W": stored(lower), "pad": None}),
        dense("linear", weight, bias),
        Layer("tok2vec-listener"),
        dense("linear", np.ones(weight.shape, np.float32), np.ones(len(weight), np.float32)),
    ]


def tags(weight: NDArray[Any], bias: NDArray[Any], **attrs: object) -> list[Layer]:
    """The model of a tagger."""
    return [
        Layer("tok2vec-listener>>with_array(softmax)", refs={"softmax": 3, "output_layer": 3}),
        Layer("tok2vec-listener"),
        Layer("with_array(softmax)", attrs={"pad": 0}),
        dense("softmax", weight, bias, **attrs),
    ]


@dataclass(frozen=True)
class Component:
    """`moves` are counts of labels by action, as a transition system has them; `cfg` is written as JSON."""

    factory: str
    layers: Sequence[Layer] = ()
    moves: Mapping[str, Mapping[str, int]] | None = None
    cfg: Mapping[str, object] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "cfg").write_text(json.dumps(self.cfg), encoding="utf-8")
        if self.layers:
            (folder / "model").write_bytes(msgpack.packb(message(self.layers)))
        if self.moves is not None:
            content = {"moves": json.dumps(self.moves), "strings": [], "cfg": {"neg_key": None}}
            (folder / "moves").write_bytes(msgpack.packb(content))


def save(folder: Path, **components: Component) -> Path:
    """A pipeline of these components."""
    text = f'[paths]\ntrain = null\n\n[nlp]\nlang = "ja"\npipeline = {json.dumps(list(components))}\n'
    for name, component in components.items():
        text += f"\n[components.{name}]\nfactory = {json.dumps(component.factory)}\n"
        component.save(folder / name)
    (folder / "config.cfg").write_text(text, encoding="utf-8")
    (folder / "meta.json").write_text('{"lang": "ja"}', encoding="utf-8")
    return folder
