"""Heads of spaCy pipelines: the scores of moves of entity recognisers and parsers, the labels of taggers,
morphologizers, sentence recognisers and text classifiers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.boxes import Everywhere
from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import SIGMOID_NOTE, Arrays, Finding, HeadInputs, Labels, TensorInfo
from argmaxable.models.message_pack import DAMAGED
from argmaxable.models.spacy.config import Component, read_components
from argmaxable.models.spacy.labels import ARC_EAGER, BILUO, read_cfg, read_moves
from argmaxable.models.spacy.layers import StoredArray, ThincLayer, read_layers

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_SENTENCES = ("I", "S")  # inside a sentence, or its start
# spaCy's own mark of a token that is in no entity whatever the scores; not among the names it shows.
_BLOCKED = "U-"
_MOVES_NOTE = (
    "moves that a state does not allow are left out before the best is taken. A move that never has the best "
    "score of all is still taken where its betters are not allowed"
)
# The third layer of a transition model: after the model itself, its tok2vec and lower layer.
_UPPER = 3


@dataclass(frozen=True)
class _Output:
    """The output layer of a component. `tensor` is what the user calls its weight."""

    tensor: str
    weight: StoredArray
    bias: StoredArray
    labels: Labels
    activation: str
    inputs: HeadInputs
    notes: tuple[str, ...] = ()

    @property
    def info(self) -> TensorInfo:
        return _info(self.tensor, self.weight)


def _info(name: str, array: StoredArray) -> TensorInfo:
    return TensorInfo(name, array.shape, f"float{8 * int(array.dtype[2:])}")


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of one component of a pipeline, with its classes' names.

    `options.tensor` is the component's name, needed where several have an output layer. Raises LoadError.
    """
    components = read_components(_pipeline(path))
    if options.bias_tensor is not None or options.transpose:
        raise LoadError(
            "a component's output layer has one bias, and a row for each class. Leave out --bias-tensor and "
            "--transpose."
        )
    component = _chosen(components, options.tensor)
    output = _read(component)

    def read() -> Arrays:
        return output.weight.read(), output.bias.read()

    classes, features = output.weight.shape
    return Finding(
        format="spacy",
        weight=output.info,
        bias=_info(output.tensor.removesuffix("W") + "b", output.bias),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else f"the output layer of {component.name}, the only one",
        read=read,
        labels=output.labels,
        inputs=output.inputs,
        activation=output.activation,
        notes=output.notes,
    )


def _pipeline(path: Path) -> Path:
    """The pipeline's folder: the given one, or the only one inside it, as in an installed package."""
    if (path / "config.cfg").is_file():
        return path
    inside = sorted(each.parent for each in path.glob("*/config.cfg"))
    if len(inside) != 1:
        names = ", ".join(each.name for each in inside[:8])
        raise LoadError(f"holds {len(inside)} spaCy pipelines: {names}. Pass one of them.")
    return inside[0]


def _chosen(components: Sequence[Component], tensor: str | None) -> Component:
    """The component whose head is meant; raises LoadError where that is not clear."""
    trained = [each for each in components if each.factory in _READERS]
    if tensor is None:
        if len(trained) == 1:
            return trained[0]
        if not trained:
            known = ", ".join(f"{each.name} ({each.factory})" for each in components) or "none"
            raise LoadError(f"is a spaCy pipeline without an output layer that can be read: {known}.")
        raise LoadError(
            f"is a spaCy pipeline with {len(trained)} output layers: {_listed(trained)}. Choose with tensor= "
            "(--tensor), by the component's name."
        )
    name = tensor.partition("/")[0]
    component = next((each for each in trained if each.name == name), None)
    if component is None or tensor not in (name, _read(component).tensor):
        raise LoadError(f"tensor {tensor!r} not found. Output layers: {_listed(trained) or 'none'}.")
    return component


def _listed(components: Sequence[Component]) -> str:
    def described(component: Component) -> str:
        try:
            return str(_read(component).info)
        except (LoadError, OSError) as error:
            return f"{component.name} (can't be read: {error})"

    return ", ".join(map(described, components))


def _read(component: Component) -> _Output:
    if not (component.folder / "model").is_file():
        raise LoadError(f"{component.name}/model is missing. Fetch the whole pipeline.")
    try:
        return _READERS[component.factory](component)
    except AmbiguousError as error:
        raise AmbiguousError(f"component {component.name}: {error}") from error
    except LoadError as error:
        raise LoadError(f"component {component.name}: {error}") from error


# ---------------------------------------------------------------------- kinds of components


def _transitions(component: Component, actions: Sequence[str]) -> _Output:
    layers = read_layers(component.folder / "model")
    if len(layers) <= _UPPER or layers[0].name != "parser_model":
        raise LoadError("its model is not a TransitionBasedParser of spaCy 3.")
    if layers[0].setting("has_upper") != b"\xc3":
        raise LoadError(
            "its model has no upper layer (use_upper = false): its scores are sums of hidden units, not one "
            "linear layer."
        )
    if layers[0].refs.get("upper") != _UPPER or layers[_UPPER].name != "linear":
        raise ambiguous(f"the upper layer is said to be {layers[0].refs.get('upper')!r:.20}, not {_UPPER}")
    names = read_moves(component.folder, actions)
    inputs = HeadInputs(
        "the transition model's hidden layer, a maxout of sums of token vectors", Everywhere()
    )
    blocked = frozenset(number for number, name in enumerate(names) if name == _BLOCKED)
    labels = Labels(names, f"{component.name}/moves", special=blocked)
    return _output(component, "upper", layers[_UPPER], labels, inputs, activation="", notes=(_MOVES_NOTE,))


def _tags(component: Component, labels: Labels, names: Sequence[str] = ("softmax",)) -> _Output:
    layers = read_layers(component.folder / "model")
    found = [
        layer for layer in layers if layer.name in names and layer.array("W").shape[0] == len(labels.names)
    ]
    if len(found) != 1:
        raise LoadError(
            f"{len(found)} of its layers ({', '.join(names)}) have a row for each of the {len(labels.names)} "
            f"labels in {labels.source}; expected one."
        )
    layer = found[0]
    temperature = layer.setting("softmax_temperature")
    if temperature and not (temperature[:1] == b"\xcb" and struct.unpack(">d", temperature[1:])[0] > 0):
        raise LoadError(f"the temperature of its softmax is not a positive number. {DAMAGED}")
    is_sigmoid = layer.name == "linear" and any(each.name == "logistic" for each in layers)
    activation = "softmax" if layer.name == "softmax" else "sigmoid" if is_sigmoid else ""
    notes = (SIGMOID_NOTE,) if is_sigmoid else ()
    inputs = HeadInputs("the component's token vectors or a summary of them; no bound is proven for it")
    return _output(component, layer.name, layer, labels, inputs, activation=activation, notes=notes)


def _output(
    component: Component, name: str, layer: ThincLayer, labels: Labels, inputs: HeadInputs, *,
    activation: str, notes: tuple[str, ...],
) -> _Output:  # fmt: skip
    weight, bias = layer.array("W"), layer.array("b")
    if len(weight.shape) != 2 or bias.shape != weight.shape[:1] or weight.shape[0] != len(labels.names):
        raise LoadError(
            f"the layer {layer.name!r} has weights of shape {weight.shape} and a bias of shape {bias.shape} "
            f"for the {len(labels.names)} classes in {labels.source}. {DAMAGED}"
        )
    return _Output(f"{component.name}/{name}.W", weight, bias, labels, activation, inputs, notes)


def _labelled(component: Component, key: str) -> Labels:
    return Labels(read_cfg(component.folder, key), f"{component.name}/cfg")


def _texts(component: Component) -> _Output:
    return _tags(component, _labelled(component, "labels"), ("softmax", "linear"))


_READERS: dict[str, Callable[[Component], _Output]] = {
    "ner": lambda component: _transitions(component, BILUO),
    "beam_ner": lambda component: _transitions(component, BILUO),
    "parser": lambda component: _transitions(component, ARC_EAGER),
    "beam_parser": lambda component: _transitions(component, ARC_EAGER),
    "tagger": lambda component: _tags(component, _labelled(component, "labels")),
    "morphologizer": lambda component: _tags(component, _labelled(component, "labels_morph")),
    "senter": lambda component: _tags(component, Labels(_SENTENCES, "spaCy's senter")),
    "textcat": _texts,
    "textcat_multilabel": _texts,
}
