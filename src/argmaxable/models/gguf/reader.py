"""Heads in GGUF files, one file or a model split into several."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Arrays, Finding, Labels
from argmaxable.models.gguf.head import (
    CLASSIFIER,
    DRAFT_TOKENS,
    EMBEDDING,
    HEAD,
    choose_head,
    makes_embeddings,
)
from argmaxable.models.gguf.header import GGUFHeader, StoredTensor, read_header
from argmaxable.models.gguf.inputs import inputs_of
from argmaxable.models.gguf.labels import ARRAYS, class_labels, token_labels
from argmaxable.models.gguf.tensors import (
    info,
    is_quantised,
    read_matrix,
    read_vector,
    require_apart,
    require_readable,
    type_name,
)

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_BIAS, _SCALE = "output.bias", "output.scale"
_SUPPRESSED = "tokenizer.ggml.suppress_tokens"
# The ends of the keys whose arrays are read.
WANTED = (*ARRAYS, _SUPPRESSED)
_CANDIDATES_SHOWN = 6


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a GGUF model: output.weight, the tied embedding, or a classifier's output layer.

    `options.transpose` reads the tensor as features × classes. Raises LoadError.
    """
    return find_in(_read_all_parts(path), options)


def find_in(header: GGUFHeader, options: ReadOptions) -> Finding:
    """The head of a model whose header was read. Raises LoadError."""
    require_apart(header.tensors.values())
    tensors, (own, why) = header.tensors, choose_head(header)
    name = options.tensor or own
    if name is None:
        raise LoadError(f"{why} {_candidates(tensors)}")
    weight = _required(tensors, name, "tensor")
    if len(weight.shape) != 2 or 0 in weight.shape:
        raise LoadError(f"tensor {info(weight)} is not a matrix. {_candidates(tensors)}")
    require_readable(weight)
    # GGUF counts columns first, so the stored matrix has shape[1] rows.
    classes, features = weight.shape if options.transpose else (weight.shape[1], weight.shape[0])
    is_own = name == own and not options.transpose
    bias = _bias(tensors, name, options, classes, is_own=is_own)

    def read() -> Arrays:
        matrix = read_matrix(weight, transposed=options.transpose)
        return matrix, None if bias is None else read_vector(bias)

    return Finding(
        format="gguf",
        weight=info(weight),
        bias=None if bias is None else info(bias),
        classes=classes,
        features=features,
        why=why if options.tensor is None else "chosen by name",
        read=read,
        labels=None if options.transpose else _labels(header, name, classes),
        inputs=inputs_of(header, name, features) if is_own else None,
        alternatives=tuple(info(each) for each in _likely(tensors) if each.name != name),
        notes=(
            *_quantisation_note(weight),
            *_parts_note(header, weight),
            *(_order_notes(header, name, bias) if options.tensor is None else ()),
        ),
    )


def _read_all_parts(path: Path) -> GGUFHeader:
    """The header of a file, or of all the parts of a model that llama-gguf-split has divided."""
    header = read_header(path, WANTED)
    count = header.metadata.get("split.count", 1)
    if not isinstance(count, int) or count < 2:
        return header
    paths = _paths_of_parts(path, count)
    parts = [read_header(each, WANTED) for each in paths]
    for number, part in enumerate(parts):
        if (part.metadata.get("split.no"), part.metadata.get("split.count")) != (number, count):
            raise LoadError(
                f"is one of {count} parts of a model, but {paths[number].name} does not say that it is "
                f"number {number + 1} of them. Fetch all parts again."
            )
    # Only the first part has all the metadata.
    whole = GGUFHeader(
        parts[0].metadata, {name: each for part in parts for name, each in part.tensors.items()}
    )
    expected = whole.metadata.get("split.tensors.count")
    if not len(whole.tensors) == sum(len(part.tensors) for part in parts) == expected:
        raise LoadError(
            f"is one of {count} parts that are not of one model: {len(whole.tensors)} tensors in all, "
            f"expected {expected}. Fetch all parts again."
        )
    return whole


def _paths_of_parts(path: Path, count: int) -> list[Path]:
    stem = re.fullmatch(r"(.*)-\d{5}-of-\d{5}", path.stem)
    if stem is None:
        raise LoadError(
            f"is one of {count} parts of a model, whose names should end in -00001-of-{count:05}.gguf and "
            "so on, by which the others are found. Rename it."
        )
    paths = [
        path.with_name(f"{stem[1]}-{part:05}-of-{count:05}{path.suffix}") for part in range(1, count + 1)
    ]
    missing = next((each.name for each in paths if not each.is_file()), None)
    if missing is not None:
        raise LoadError(f"is one of {count} parts of a model, of which {missing} is missing. Fetch it too.")
    return paths


def _required(tensors: Mapping[str, StoredTensor], name: str, option: str) -> StoredTensor:
    if name not in tensors:
        flag = option.replace("_", "-")
        raise LoadError(
            f"tensor {name!r} not found ({len(tensors)} tensors). {_candidates(tensors)} "
            f"Correct {option}= (--{flag}) or leave it out."
        )
    return tensors[name]


def _bias(
    tensors: Mapping[str, StoredTensor], weight: str, options: ReadOptions, classes: int, *, is_own: bool
) -> StoredTensor | None:
    if options.bias_tensor is not None:
        bias = _required(tensors, options.bias_tensor, "bias_tensor")
    else:
        is_tied = weight == EMBEDDING and is_own
        found = tensors.get(_BIAS if is_tied else weight.removesuffix(".weight") + ".bias")
        if found is None:
            return None
        bias = found
    if bias.shape != (classes,):
        raise LoadError(f"bias {info(bias)} does not fit {classes} classes. Choose one with bias_tensor=.")
    require_readable(bias)
    return bias


def _likely(tensors: Mapping[str, StoredTensor]) -> list[StoredTensor]:
    """Matrices outside the model's blocks, and those inside that predict tokens further ahead."""
    return [
        each
        for each in tensors.values()
        if len(each.shape) == 2
        and (not each.name.startswith("blk.") or each.name.endswith(".nextn.shared_head_head.weight"))
    ]


def _candidates(tensors: Mapping[str, StoredTensor]) -> str:
    likely = _likely(tensors)[:_CANDIDATES_SHOWN]
    if not likely:
        return "No matrix outside the blocks could be one."
    return f"Could be meant: {', '.join(str(info(each)) for each in likely)}. Choose with tensor= (--tensor)."


# ---------------------------------------------------------------------- labels, notes


def _labels(header: GGUFHeader, name: str, classes: int) -> Labels | None:
    if name == CLASSIFIER:
        return class_labels(header)
    if name == EMBEDDING or (name == HEAD and DRAFT_TOKENS not in header.tensors):
        return token_labels(header, classes)
    return None


def _quantisation_note(weight: StoredTensor) -> tuple[str, ...]:
    if not is_quantised(weight):
        return ()
    return (f"the weights are stored as {type_name(weight)} and dequantised to float32",)


def _parts_note(header: GGUFHeader, weight: StoredTensor) -> list[str]:
    count = header.metadata.get("split.count", 1)
    is_split = isinstance(count, int) and count > 1
    return [f"the model is in {count} parts, the output layer in {weight.path.name}"] if is_split else []


def _order_notes(header: GGUFHeader, name: str, bias: StoredTensor | None) -> list[str]:
    """What happens to the logits before they are compared; raises LoadError if it changes their order."""
    if name == CLASSIFIER:
        return []
    notes = []
    for key, action in (("logit_scale", "scaled"), ("final_logit_softcapping", "capped softly")):
        factor = header.metadata.get(f"{header.architecture}.{key}")
        if not isinstance(factor, int | float) or factor == 0:  # 0 means not used
            continue
        if not factor > 0:
            raise LoadError(
                f"{header.architecture}.{key} is {factor}, which does not keep the order of the logits. To "
                "read the weights anyway, name them with tensor= (--tensor)."
            )
        notes.append(f"logits are {action} ({key} {factor:g}), which leaves the argmax as it is")
    if _SCALE in header.tensors:
        notes.extend(_scale_note(header.tensors[_SCALE], bias))
    return [*notes, *_use_notes(header, name)]


def _use_notes(header: GGUFHeader, name: str) -> list[str]:
    """How the model is meant to be used, where that is not for the argmax over all rows."""
    notes = []
    suppressed = header.metadata.get(_SUPPRESSED)
    if isinstance(suppressed, tuple) and suppressed:
        notes.append(f"{len(suppressed)} classes are never sampled ({_SUPPRESSED}), but are classes here")
    if makes_embeddings(header):
        notes.append("the model is meant for embeddings of texts, not for tokens")
    if name == HEAD and DRAFT_TOKENS in header.tensors:
        notes.append(f"no labels: {DRAFT_TOKENS} says which tokens of another model the rows stand for")
    return notes


def _scale_note(scale: StoredTensor, bias: StoredTensor | None) -> list[str]:
    """output.scale multiplies W x but not the bias, so it may only be left out where there is none."""
    require_readable(scale)
    factor = read_vector(scale)
    if bias is not None or factor.size != 1 or not factor[0] > 0:
        raise LoadError(
            f"the product with {HEAD} is multiplied by {info(scale)} before it is used, which changes more "
            "than its size. To read the weights anyway, name them with tensor= (--tensor)."
        )
    return [f"logits are scaled ({_SCALE} {factor[0]:g}), which leaves the argmax as it is"]
