"""Heads in the files of whisper.cpp (ggml-base.bin): the token embedding, to which the output is tied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.balls import LayerNorm
from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Arrays, Finding, HeadInputs, Labels
from argmaxable.models.gguf.tensors import (
    finite_vector,
    info,
    is_quantised,
    read_matrix,
    require_readable,
    type_name,
)
from argmaxable.models.labels.readable import text_of_bytes
from argmaxable.models.norm_solid import norm_solid
from argmaxable.models.whisper_cpp.file import WhisperFile, read_file

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_HEAD, _GAIN, _SHIFT = "decoder.token_embedding.weight", "decoder.ln.weight", "decoder.ln.bias"
# Numbers of the first special tokens in a model for English, how many tokens that has, and how many languages
# the others had at first. Each further language moves what comes behind the languages by one.
_END, _START, _FIRST_ACTION, _OF_ENGLISH, _LANGUAGES = 50256, 50257, 50357, 51864, 99
_ACTIONS = ("_TRANSLATE_", "_TRANSCRIBE_", "_SOLM_", "_PREV_", "_NOSP_", "_NOT_", "_BEG_")


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a model of whisper.cpp. Raises LoadError."""
    if options.tensor not in (None, _HEAD) or options.bias_tensor is not None or options.transpose:
        raise LoadError(f"has one output layer, {_HEAD}: leave --tensor, --bias-tensor and --transpose out.")
    model = read_file(path)
    weight = model.tensors.get(_HEAD)
    if weight is None or weight.shape != (model.features, model.vocabulary):
        found = "is not there" if weight is None else f"is {info(weight)}"
        raise LoadError(
            f"is not a model of whisper.cpp: {_HEAD} {found}, expected {model.vocabulary} × "
            f"{model.features}. Use a GGUF file, or the model that it was converted from."
        )
    require_readable(weight)
    quantised = f"the weights are stored as {type_name(weight)} and dequantised to float32"

    def read() -> Arrays:
        return read_matrix(weight, transposed=False), None

    return Finding(
        format="whisper.cpp",
        weight=info(weight),
        bias=None,
        classes=model.vocabulary,
        features=model.features,
        why="the token embedding, to which Whisper ties its output layer",
        read=read,
        labels=_labels(model),
        inputs=_inputs(model),
        notes=(quantised,) if is_quantised(weight) else (),
    )


def _inputs(model: WhisperFile) -> HeadInputs:
    stored = [model.tensors[name] for name in (_GAIN, _SHIFT) if name in model.tensors]
    vectors = [finite_vector(each, model.features) for each in stored]
    usable = [vector for vector in vectors if vector is not None]
    words = f"LayerNorm with {_GAIN} and {_SHIFT}"
    if len(usable) < 2:
        return HeadInputs(f"{words}, which should have {model.features} finite numbers each and have not")
    return HeadInputs(words, norm_solid(LayerNorm, usable[0], usable[1], model.features))


def _labels(model: WhisperFile) -> Labels:
    """The stored tokens, and names as whisper.cpp gives them to those that follow, all of them special."""
    stored = [text_of_bytes(token) for token in model.tokens]
    further = range(len(stored), model.vocabulary)
    special = _special_names(model.vocabulary)
    names = (*stored, *(special.get(number, f"[_extra_token_{number}]") for number in further))
    return Labels(names, "the file's tokens", special=frozenset(further), is_inside=True)


def _special_names(vocabulary: int) -> dict[int, str]:
    if vocabulary < _OF_ENGLISH:
        return {}  # not a published model
    moved = int(vocabulary > _OF_ENGLISH)  # where there are several languages, all numbers are higher by one
    languages = vocabulary - 51765 - moved
    end, start = _END + moved, _START + moved
    action = _FIRST_ACTION + moved + languages - _LANGUAGES
    first_time = action + len(_ACTIONS)
    return {
        **{
            number: f"[_LANG_{number - start - 1}]"
            for number in range(start + 1, start + 1 + max(0, languages))
        },
        **{number: f"[_TT_{number - first_time + 1}]" for number in range(first_time, vocabulary)},
        **{action + place: f"[{name}]" for place, name in enumerate(_ACTIONS)},
        end: "[_EOT_]",
        start: "[_SOT_]",
    }
