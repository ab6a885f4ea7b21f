"""Finding the head among the names of a model's tensors: where the table of families says, or by the
usual names.

Names are enough, so that of a model in many files only those with the head need be fetched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.checkpoint.families import (
    FAMILIES,
    Activation,
    FamilyNorm,
    HeadTask,
    ModelFamily,
    Obstacle,
    Place,
)
from argmaxable.models.checkpoint.usual_names import (
    BODY_PARTS,
    DENSE_SETTINGS,
    INNER_BODIES,
    INNER_CONFIGS,
    MARKS_OF_NO_MATRIX,
    NOT_A_MATRIX,
    NOT_CLASSES,
    USUAL_BODIES,
    USUAL_EMBEDDINGS,
    USUAL_HEADS,
    WRAPPERS,
)

_FAMILY_OF = {model_type: family for family in FAMILIES for model_type in family.model_types}
# Checkpoints that were made from TensorFlow's call a norm's gain gamma and its shift beta.
_GAINS, _SHIFTS = ("weight", "gamma"), ("bias", "beta")
_PARTS_SHOWN = 3
# What may come before the usual names.
_BODIES = tuple(dict.fromkeys((*USUAL_BODIES, *WRAPPERS, *INNER_BODIES)))


@dataclass(frozen=True)
class NormTensors:
    """A norm in front of the head, by the names of what it stores; `scaled` multiplies it by d^-1/2."""

    kind: str
    gain: str | None
    shift: str | None
    offset: float
    scaled: bool


@dataclass(frozen=True)
class HeadTensors:
    """The head's tensors by name, what feeds it, and how they were found."""

    weight: str
    bias: str | None
    feed: NormTensors | Activation | Obstacle
    why: str
    task: HeadTask | None = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All tensors that have to be read."""
        norm = (self.feed.gain, self.feed.shift) if isinstance(self.feed, NormTensors) else ()
        return tuple(name for name in (self.weight, self.bias, *norm) if name is not None)


@dataclass(frozen=True)
class Architecture:
    """What config.json says about the kind of model; empty or None where it says nothing."""

    name: str = ""
    model_types: tuple[str, ...] = ()
    tied: bool | None = None
    scaled: bool | None = None

    @staticmethod
    def from_config(config: Mapping[str, Any]) -> Architecture:
        """Values that make no sense count as not given."""
        inner = [value for key in INNER_CONFIGS if isinstance(value := config.get(key), dict)]
        types = [_word(each.get("model_type")) for each in (config, *inner)]
        if all(key in config for key in DENSE_SETTINGS):
            types.append("sentence-transformers dense")
        # Which of them is meant differs; a head that is not stored must be tied if any of them says so.
        flags = [each.get("tie_word_embeddings") for each in (config, *inner)]
        tied = [flag for flag in flags if isinstance(flag, bool)]
        names, scaled = config.get("architectures"), config.get("scale_decoder_outputs")
        return Architecture(
            name=_word(names[0]) if isinstance(names, list) and names else "",
            model_types=tuple(filter(None, types)),
            tied=any(tied) if tied else None,
            scaled=scaled if isinstance(scaled, bool) else None,
        )

    @property
    def family(self) -> ModelFamily | None:
        return next((_FAMILY_OF[each] for each in self.model_types if each in _FAMILY_OF), None)

    @property
    def scales(self) -> bool:
        """Whether a T5 multiplies its features by d^-1/2: where it doesn't say, it does when tied."""
        return self.tied is not False if self.scaled is None else self.scaled

    @property
    def is_bare(self) -> bool:
        """Whether it is named as a model without any head, such as BertModel."""
        return self.name.endswith("Model") and not self.name.endswith(HeadTask.LANGUAGE.value)

    def is_for(self, place: Place) -> bool:
        return self.name.endswith(place.architectures or place.task.value)

    def __str__(self) -> str:
        return self.name or next(iter(self.model_types), "a model of unknown type")


def _word(value: object) -> str:
    """A name that is safe to print, or nothing."""
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else ""


def choose(names: Collection[str], architecture: Architecture) -> HeadTensors | None:
    """The head among the names, or None when there is none.

    Raises LoadError when the head is not a single matrix, or several could be it.
    """
    _require_classes(names, architecture)
    return (
        _in_family(names, architecture)
        or _by_proof(names, architecture)
        or _by_usual_name(names, architecture)
    )


def choose_named(names: Collection[str], architecture: Architecture, tensor: str) -> HeadTensors:
    """A tensor the user names, with what belongs to it when it is the very head of the model."""
    expected = _in_family(names, architecture)
    if expected is not None and expected.weight == tensor:
        return expected
    unknown = Obstacle("the tensor was chosen by name, and what feeds it is not known")
    return HeadTensors(tensor, _bias_beside(tensor, names), unknown, "chosen by name")


def embeddings_among(names: Collection[str], architecture: Architecture) -> str | None:
    """The model's table of input embeddings, which can serve as a head where there is none."""
    family = architecture.family
    places = () if family is None else family.places
    tied = (_stored(place.tied, names, family) for place in places if family is not None)
    known = next((name for name in tied if name), None)
    ends = tuple(f".{end}" for end in USUAL_EMBEDDINGS)
    usual = (name for name in names if f".{name}".endswith(ends))
    # Of several tables the head's is rather the decoder's, or the one that all share.
    return known or min(usual, key=lambda name: ("encoder" in name, len(name), name), default=None)


def is_large_body(names: Collection[str], architecture: Architecture) -> bool:
    """Whether these are the layers of a large model, whose head has a known name or is not there at all."""
    parts = (part for name in names for part in BODY_PARTS if part in name)
    return embeddings_among(names, architecture) is not None or next(parts, None) is not None


def _require_classes(names: Collection[str], architecture: Architecture) -> None:
    """Raise LoadError where the output is not an argmax over the rows of one stored matrix."""
    known = architecture.model_types or [
        kind for kind, marks in MARKS_OF_NO_MATRIX.items() if all(mark in names for mark in marks)
    ]
    kind = next((each for each in known if each in NOT_A_MATRIX), None)
    end = next((each for each in NOT_CLASSES if architecture.name.endswith(each)), None)
    if end is not None:
        refusal = f"{architecture} {NOT_CLASSES[end]}"
    elif kind is not None and not architecture.name.endswith(
        (*HeadTask.SEQUENCE.value, *HeadTask.TOKEN.value)
    ):
        refusal = f"{kind} {NOT_A_MATRIX[kind]}"
    else:
        return
    raise LoadError(
        f"{refusal}, so no tensor alone decides among classes. To treat one as a head anyway, pass "
        "tensor= (--tensor)."
    )


def _in_family(names: Collection[str], architecture: Architecture) -> HeadTensors | None:
    """Where the table says, for a model type that it knows."""
    family = architecture.family
    if family is None:
        return None
    # An architecture the table knows has its own place; otherwise any place that is filled, and embeddings
    # are a head only where no head is stored.
    meant = [place for place in family.places if architecture.is_for(place)]
    filled = [place for place in family.places if _stored(place.weight, names, family)]
    found = (_at(place, family, names, architecture) for place in meant or filled or family.places)
    return next((choice for choice in found if choice is not None), None)


def _by_proof(names: Collection[str], architecture: Architecture) -> HeadTensors | None:
    """Where the table says, when no configuration does: by a layer that only models with this head have."""
    if architecture.model_types or architecture.name:
        return None
    for family in FAMILIES:
        kind = family.model_types[0]
        for place in family.places:
            if place.proof is not None and _stored_any(place.proof, names):
                choice = _at(place, family, names, replace(architecture, model_types=(kind,)))
                if choice is not None:
                    return replace(choice, why=f"{choice.why}, as the names of its layers show")
    return None


def _at(
    place: Place, family: ModelFamily, names: Collection[str], architecture: Architecture
) -> HeadTensors | None:
    own = _stored(place.weight, names, family)
    embeddings = _stored(place.tied, names, family)
    weight = own or (embeddings if _is_tied(place, family, names, architecture) else None)
    if weight is None:
        return None
    if own is None:
        _require_unpacked(place.weight, names)
    kind = next(each for each in architecture.model_types if each in family.model_types)
    if own is None:
        why = f"the input embeddings, to which {architecture} (model type {kind}) ties its output layer"
    else:
        why = f"the output layer of {architecture} (model type {kind})"
    notes: tuple[str, ...] = ()
    if own and embeddings and architecture.tied:
        notes = (
            f"config.json ties the output layer to {embeddings}, but {own} is stored as well and was taken. "
            "Should they differ, transformers before version 5 uses the embeddings.",
        )
    return HeadTensors(
        weight,
        _stored(place.bias, names, family),
        _feed(place, family, names, architecture),
        why,
        place.task,
        notes,
    )


def _require_unpacked(heads: Iterable[str], names: Collection[str]) -> None:
    """Raise LoadError where a head that seems to be tied is stored after all, quantised in several parts."""
    layers = {f"{wrapper}{head.removesuffix('.weight')}" for head in heads for wrapper in WRAPPERS}
    packed = [name for name in names if name.rpartition(".")[0] in layers and not name.endswith(".bias")]
    if packed:
        raise LoadError(
            f"the output layer is quantised ({', '.join(sorted(packed)[:_PARTS_SHOWN])}). Such numbers mean "
            "nothing without their scales: use the model they were made from."
        )


def _is_tied(place: Place, family: ModelFamily, names: Collection[str], architecture: Architecture) -> bool:
    if architecture.tied is False:
        return False
    # What is missing of a whole model: of an encoder that was taken from a T5 the decoder's norm is.
    is_whole = _stored_feed(place, family, names, architecture) is not None
    if place.proof is not None:
        return _stored_any(place.proof, names) or (architecture.is_for(place) and is_whole)
    # Without a name the model is taken for what the family is mostly used for.
    return architecture.is_for(place) or (not architecture.name and is_whole)


def _feed(
    place: Place, family: ModelFamily, names: Collection[str], architecture: Architecture
) -> NormTensors | Activation | Obstacle:
    if place.task is not HeadTask.LANGUAGE and not architecture.is_for(place):
        return Obstacle("config.json does not name the architecture, on which it depends what feeds the head")
    missing = Obstacle("the norm in front of the head is not where models of this type keep it")
    return _stored_feed(place, family, names, architecture) or missing


def _stored_feed(
    place: Place, family: ModelFamily, names: Collection[str], architecture: Architecture
) -> NormTensors | Activation | Obstacle | None:
    for feed in place.feeds:
        if isinstance(feed, Activation) or (isinstance(feed, Obstacle) and feed.layer is None):
            return feed
        if isinstance(feed, Obstacle):
            if _stored((f"{feed.layer}.weight",), names, family):
                return feed
        elif (norm := _norm(feed, family, names, scaled=place.scaled and architecture.scales)) is not None:
            return norm
    return None


def _norm(
    norm: FamilyNorm, family: ModelFamily, names: Collection[str], *, scaled: bool
) -> NormTensors | None:
    if norm.layer is None:
        return NormTensors(norm.kind, None, None, norm.offset, scaled)
    gain = _stored([f"{norm.layer}.{end}" for end in _GAINS], names, family)
    if gain is None:
        return None
    layer = gain.rpartition(".")[0]
    shift = next((f"{layer}.{end}" for end in _SHIFTS if f"{layer}.{end}" in names), None)
    return NormTensors(norm.kind, gain, shift, norm.offset, scaled)


def _by_usual_name(names: Collection[str], architecture: Architecture) -> HeadTensors | None:
    heads = _usual(USUAL_HEADS, names)
    if len(heads) > 1:
        raise LoadError(
            f"several tensors could be the output layer of {architecture}: {', '.join(heads)}. Choose one "
            "with tensor= (--tensor)."
        )
    kind = f"model type {architecture.model_types[0]!r}" if architecture.model_types else "its model type"
    unknown = "is not known" if architecture.family is None else "keeps none where it should be"
    feed = Obstacle(f"{kind} {unknown}, so what feeds the head is not known")
    if heads:
        return HeadTensors(
            heads[0], _bias_beside(heads[0], names), feed, f"by its usual name ({kind} {unknown})"
        )
    embeddings = _usual(USUAL_EMBEDDINGS, names)
    is_language_model = architecture.name.endswith(HeadTask.LANGUAGE.value)
    if embeddings and architecture.tied and is_language_model and architecture.family is None:
        why = (
            f"the input embeddings, by their usual name ({kind} {unknown}): config.json ties the output layer"
        )
        _require_unpacked([f"{body}{head}" for head in USUAL_HEADS for body in _BODIES], names)
        # The matrix is not stored again, but its bias is.
        biases = (_bias_beside(f"{body}{head}", names) for head in USUAL_HEADS for body in _BODIES)
        return HeadTensors(embeddings[0], next(filter(None, biases), None), feed, why)
    return None


def _usual(ends: Iterable[str], names: Collection[str]) -> list[str]:
    return [f"{body}{end}" for end in ends for body in _BODIES if f"{body}{end}" in names]


def _bias_beside(weight: str, names: Collection[str]) -> str | None:
    """The bias of a layer: beside its weight, beside the decoder that it belongs to, or BART's."""
    if not weight.endswith("weight"):
        return None
    places = [f"{weight.removesuffix('weight')}bias"]
    if weight.endswith(".decoder.weight"):
        places.append(f"{weight.removesuffix('decoder.weight')}bias")
    if weight.endswith("lm_head.weight"):
        places.append("final_logits_bias")
    return next((place for place in places if place in names), None)


def _stored_any(layer: str, names: Collection[str]) -> bool:
    return any(f"{wrapper}{layer}.{end}" in names for wrapper in WRAPPERS for end in (*_GAINS, *_SHIFTS))


def _stored(templates: Iterable[str], names: Collection[str], family: ModelFamily) -> str | None:
    """The first name of the table that is in the file, under any of the prefixes it may have there."""
    for template in templates:
        for wrapper in WRAPPERS:
            for body in (family.body, *INNER_BODIES):
                name = _numbered(wrapper + template.replace("{body}", body), names)
                if name in names:
                    return name
    return None


def _numbered(template: str, names: Collection[str]) -> str:
    """The template with {last} replaced by the highest numbers that occur in its place."""
    if "{last}" not in template:
        return template
    pattern = re.compile(re.escape(template).replace(re.escape("{last}"), "([0-9]{1,6})"))
    matches = (match for name in names if (match := pattern.fullmatch(name)))
    last = max(matches, key=lambda match: [int(number) for number in match.groups()], default=None)
    return template if last is None else last.string
