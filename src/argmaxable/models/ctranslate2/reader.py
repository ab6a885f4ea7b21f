"""Heads of CTranslate2 models: the decoder's projection of translators, language models and Whisper, and the
output layer of Wav2Vec2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ctranslate2.file import ModelFile, StoredVariable, parse
from argmaxable.models.ctranslate2.head import QUANTISED, info, read_matrix, read_vector, require_matrix
from argmaxable.models.ctranslate2.vocabulary import labels_beside, read_config
from argmaxable.models.finding import Arrays, Finding, HeadInputs, TensorInfo

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_CANDIDATES_SHOWN = 6


@dataclass(frozen=True)
class _Kind:
    """What CTranslate2 knows about a specification: its newest revision, output layer and vocabularies."""

    newest: int
    layer: str
    vocabularies: tuple[str, ...]


_PROJECTION, _LM_HEAD = "decoder/projection", "encoder/lm_head"
_TRANSLATOR = _Kind(7, _PROJECTION, ("shared_vocabulary", "target_vocabulary"))
# Read off src/models/ of CTranslate2 4.8. A later revision may have renamed or changed weights.
_KINDS = {
    "": _TRANSLATOR,
    "TransformerBase": _TRANSLATOR,
    "TransformerBig": _TRANSLATOR,
    "TransformerSpec": _TRANSLATOR,
    "TransformerDecoderSpec": _Kind(8, _PROJECTION, ("vocabulary",)),
    "WhisperSpec": _Kind(3, _PROJECTION, ("vocabulary",)),
    "Wav2Vec2Spec": _Kind(3, _LM_HEAD, ("vocabulary",)),
    "Wav2Vec2BertSpec": _Kind(1, _LM_HEAD, ("vocabulary",)),
}


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a model of CTranslate2, with labels from the vocabulary beside it.

    `options.transpose` reads the matrix as features × classes. Raises LoadError.
    """
    model = parse(path)
    variables, kind = model.variables, _KINDS.get(model.specification)
    name = options.tensor or _own_head(model, kind)
    _require(variables, name, "tensor")
    require_matrix(variables, name)
    weight = variables[name]
    classes, features = weight.shape[::-1] if options.transpose else weight.shape
    bias_name = _bias(variables, name, options)
    bias = None if bias_name is None else variables[bias_name]
    is_own = kind is not None and name == f"{kind.layer}/weight" and not options.transpose
    config = read_config(path.parent) if is_own else {}
    stems = kind.vocabularies if kind is not None and is_own else ()
    labels, doubts = labels_beside(path.parent, stems, config, classes)

    def read() -> Arrays:
        matrix = read_matrix(path, variables, name)
        matrix = np.ascontiguousarray(matrix.T) if options.transpose else matrix
        return matrix, None if bias is None else read_vector(path, bias)

    return Finding(
        format="ctranslate2",
        weight=info(name, weight),
        bias=None if bias is None or bias_name is None else info(bias_name, bias),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else _why(name, weight),
        read=read,
        labels=labels,
        inputs=_inputs(model, weight, name) if is_own else None,
        alternatives=tuple(each for each in _likely(variables) if variables[each.name] != weight),
        notes=(*doubts, *_notes(model, weight, config)),
    )


def _own_head(model: ModelFile, kind: _Kind | None) -> str:
    """The name of the output layer's weight; raises LoadError where the model has none or is not known."""
    if kind is None:
        raise LoadError(
            f"is a model of CTranslate2 of the kind {model.specification!r}, whose output layer is not known "
            f"here, or which has none. {_candidates(model.variables)}"
        )
    if model.revision > kind.newest:
        raise LoadError(
            f"is a {model.specification} of revision {model.revision}; revisions up to {kind.newest} are "
            f"known here, and a later one may mean other things by its names. {_candidates(model.variables)}"
        )
    name = f"{kind.layer}/weight"
    if name not in model.variables:
        raise LoadError(
            f"has no output layer: {name} not found ({len(model.variables)} variables). "
            f"{_candidates(model.variables)}"
        )
    return name


def _require(variables: Mapping[str, StoredVariable], name: str, option: str) -> None:
    if name not in variables:
        raise LoadError(
            f"tensor {name!r} not found ({len(variables)} variables). {_candidates(variables)} "
            f"Correct {option}= (--{option.replace('_', '-')}) or leave it out."
        )


def _bias(variables: Mapping[str, StoredVariable], weight: str, options: ReadOptions) -> str | None:
    name = options.bias_tensor
    if name is None:
        name = f"{weight.removesuffix('/weight')}/bias"
        if name not in variables:
            return None
    _require(variables, name, "bias_tensor")
    bias = variables[name]
    if len(bias.shape) != 1 or 0 in bias.shape or bias.dtype not in FLOAT_DTYPES:
        raise LoadError(
            f"bias {info(name, bias)} is not a vector of floats. Choose another with bias_tensor= "
            "(--bias-tensor)."
        )
    return name


def _likely(variables: Mapping[str, StoredVariable]) -> list[TensorInfo]:
    """Matrices outside the blocks of encoder and decoder."""
    return [
        info(name, each)
        for name, each in variables.items()
        if len(each.shape) == 2 and name.endswith("/weight") and "/layer_" not in name
    ]


def _candidates(variables: Mapping[str, StoredVariable]) -> str:
    likely = _likely(variables)[:_CANDIDATES_SHOWN]
    if not likely:
        return "No matrix outside its blocks could be one."
    return f"Could be meant: {', '.join(map(str, likely))}. Choose with tensor= (--tensor)."


# ---------------------------------------------------------------------- what is said about it


def _why(name: str, weight: StoredVariable) -> str:
    return "the output layer" if weight.name == name else f"the output layer, an alias of {weight.name}"


def _inputs(model: ModelFile, weight: StoredVariable, name: str) -> HeadInputs:
    # No domain follows from the last norm: CTranslate2's LayerNorm takes the variance as mean(x²) − mean(x)²
    # in float32, which cancellation can make too small by any factor, and so its output too long.
    scope = name.partition("/")[0]
    before = next(
        (part for part in ("project_out", "layer_norm") if _has(model, f"{scope}/{part}/")), "last block"
    )
    rounded = f", rounded to {weight.dtype} before the product" if weight.dtype in QUANTISED else ""
    return HeadInputs(f"the {scope}'s {before}{rounded}; no bound is proven for it")


def _has(model: ModelFile, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in model.variables)


def _notes(model: ModelFile, weight: StoredVariable, config: Mapping[str, Any]) -> list[str]:
    notes = []
    if weight.dtype in QUANTISED:
        notes.append(
            f"the weights are stored as {weight.dtype} and are what CTranslate2 makes of them in float32: "
            "q times 1 / scale"
        )
    if "decoder/final_logit_softcapping" in model.variables:
        notes.append("logits are capped softly, which leaves the argmax as it is")
    suppressed = config.get("suppress_ids")
    if isinstance(suppressed, list) and suppressed:
        notes.append(f"{len(suppressed)} classes are never generated (suppress_ids), but are classes here")
    return notes
