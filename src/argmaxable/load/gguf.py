"""Heads in GGUF files. This is the only module that imports `gguf`, and only for quantised weights.

Floating-point weights stay memory-mapped in their own dtype; quantised ones become float32 a few rows at a
time, with the reference formulas of the gguf package, so that little more than the result is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.domain import LayerNorm, RMSNorm
from argmaxable.errors import LoadError
from argmaxable.head import FLOAT_DTYPES
from argmaxable.load.finding import Arrays, Finding, Inputs, Labels, TensorInfo
from argmaxable.load.gguf_architectures import ENCODERS, LAYER_NORM, RMS_NORM
from argmaxable.load.gguf_header import Contents, StoredTensor, Value, read_contents
from argmaxable.load.readable import BYTE_LEVEL, SENTENCEPIECE, guess_kind, readable_tokens
from argmaxable.load.registry import ReadOptions

_HEAD, _EMBEDDING, _BIAS, _SCALE, _NORM = (
    "output.weight",
    "token_embd.weight",
    "output.bias",
    "output.scale",
    "output_norm",
)
_TOKENS = "tokenizer.ggml.tokens"
# GGML's types that are no quantisation, by number.
_FLOATS = {0: "float32", 1: "float16", 28: "float64", 30: "bfloat16"}
# How the tokens of each tokenizer.ggml.model are written; converters give BERT's the ▁ of SentencePiece.
_KINDS = {"gpt2": BYTE_LEVEL, "llama": SENTENCEPIECE, "t5": SENTENCEPIECE, "bert": SENTENCEPIECE}
# Values dequantised at a time: 4 MB of float32, and some ten times that inside the gguf package.
_BLOCK_VALUES = 2**20
_CANDIDATES_SHOWN = 6


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a GGUF model, one file or split into several: output.weight, or the tied embedding.

    `options.transpose` reads the tensor as features × classes. Raises LoadError.
    """
    contents = _read_all_parts(path)
    tensors, name = contents.tensors, options.tensor or _head_name(contents)
    weight = _required(tensors, name, "tensor")
    if len(weight.shape) != 2 or 0 in weight.shape:
        raise LoadError(f"tensor {_info(weight)} is no matrix. {_candidates(tensors)}")
    _require_readable(weight)
    # GGUF counts columns first, so the stored matrix has shape[1] rows.
    classes, features = weight.shape if options.transpose else (weight.shape[1], weight.shape[0])
    bias = _bias(tensors, name, options, classes)
    is_output = name in (_HEAD, _EMBEDDING) and not options.transpose

    def read() -> Arrays:
        matrix = _read_matrix(weight, transposed=options.transpose)
        return matrix, None if bias is None else _read_vector(bias)

    return Finding(
        format="gguf",
        weight=_info(weight),
        bias=None if bias is None else _info(bias),
        classes=classes,
        features=features,
        why=_why(name, options),
        read=read,
        labels=_labels(contents.metadata) if is_output else None,
        inputs=_inputs(contents, features) if is_output else None,
        alternatives=tuple(_info(each) for each in _likely(tensors) if each.name != name),
        notes=(
            *_quantisation_note(weight),
            *(_order_notes(contents, bias) if options.tensor is None else ()),
        ),
    )


def _read_all_parts(path: Path) -> Contents:
    """The contents of a file, or of all the parts of a model that llama-gguf-split has divided."""
    contents = read_contents(path, {_TOKENS})
    count = contents.metadata.get("split.count", 1)
    if not isinstance(count, int) or count < 2:
        return contents
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
    parts = [read_contents(each, {_TOKENS}) for each in paths]
    # Only the first part has all the metadata.
    return Contents(parts[0].metadata, {name: each for part in parts for name, each in part.tensors.items()})


def _head_name(contents: Contents) -> str:
    if _HEAD in contents.tensors:
        return _HEAD
    kind, architecture = (contents.metadata.get(f"general.{key}") for key in ("type", "architecture"))
    if kind in ("adapter", "mmproj") or architecture in ENCODERS:
        raise LoadError(
            f"has no output layer: it is a GGUF {kind or 'model'} of architecture {architecture!r}. "
            f"{_candidates(contents.tensors)}"
        )
    if _EMBEDDING not in contents.tensors:
        raise LoadError(
            f"neither {_HEAD} nor {_EMBEDDING} found ({len(contents.tensors)} tensors). "
            f"{_candidates(contents.tensors)}"
        )
    return _EMBEDDING


def _why(name: str, options: ReadOptions) -> str:
    if options.tensor is not None:
        return "chosen by name"
    return (
        "the output layer" if name == _HEAD else f"the embedding, which is the output layer too: no {_HEAD}"
    )


def _required(tensors: Mapping[str, StoredTensor], name: str, option: str) -> StoredTensor:
    if name not in tensors:
        flag = option.replace("_", "-")
        raise LoadError(
            f"tensor {name!r} not found ({len(tensors)} tensors). {_candidates(tensors)} "
            f"Correct {option}= (--{flag}) or leave it out."
        )
    return tensors[name]


def _bias(
    tensors: Mapping[str, StoredTensor], weight: str, options: ReadOptions, classes: int
) -> StoredTensor | None:
    if options.bias_tensor is not None:
        bias = _required(tensors, options.bias_tensor, "bias_tensor")
    else:
        own = _BIAS if weight == _EMBEDDING else weight.removesuffix(".weight") + ".bias"
        found = tensors.get(own)
        if found is None:
            return None
        bias = found
    if bias.shape != (classes,):
        raise LoadError(f"bias {_info(bias)} does not fit {classes} classes. Choose one with bias_tensor=.")
    _require_readable(bias)
    return bias


def _likely(tensors: Mapping[str, StoredTensor]) -> list[StoredTensor]:
    """Matrices outside the model's blocks."""
    return [each for each in tensors.values() if len(each.shape) == 2 and not each.name.startswith("blk.")]


def _candidates(tensors: Mapping[str, StoredTensor]) -> str:
    likely = _likely(tensors)[:_CANDIDATES_SHOWN]
    if not likely:
        return "No matrix outside the blocks could be one."
    return (
        f"Could be meant: {', '.join(str(_info(each)) for each in likely)}. Choose with tensor= (--tensor)."
    )


def _info(tensor: StoredTensor) -> TensorInfo:
    return TensorInfo(tensor.name, tensor.shape[::-1], _type_name(tensor))


def _type_name(tensor: StoredTensor) -> str:
    if tensor.type_id in _FLOATS:
        return _FLOATS[tensor.type_id]
    try:
        return str(_gguf().GGMLQuantizationType(tensor.type_id).name)
    except ValueError:
        return f"unknown type {tensor.type_id}"


def _gguf() -> ModuleType:
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise LoadError(
            f"reading quantised GGUF files needs the package {error.name}: pip install 'argmaxable[gguf]'"
        ) from error
    return gguf


# ---------------------------------------------------------------------- reading


def _block(tensor: StoredTensor) -> tuple[int, int]:
    """How many values a block of the tensor's type holds and its size in bytes; raises LoadError."""
    if tensor.type_id in _FLOATS:
        return 1, FLOAT_DTYPES[_FLOATS[tensor.type_id]].itemsize
    gguf = _gguf()
    try:
        quantisation = gguf.GGMLQuantizationType(tensor.type_id)
        values, size = gguf.GGML_QUANT_SIZES[quantisation]
        gguf.quants.dequantize(np.zeros((1, size), np.uint8), quantisation)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise LoadError(
            f"tensor {_info(tensor)} has a type that the installed gguf package can't turn into floats. "
            "Update gguf, or convert the model to F16."
        ) from error
    return values, size


def _require_readable(tensor: StoredTensor) -> None:
    """Refuse a type without a formula, and data that end outside the file."""
    values, size = _block(tensor)
    if tensor.shape[0] % values:
        raise LoadError(f"tensor {_info(tensor)} has rows that are no multiple of its blocks of {values}.")
    end, present = tensor.start + tensor.elements // values * size, tensor.path.stat().st_size
    if end > present:
        raise LoadError(
            f"tensor {_info(tensor)} should end at byte {end}, but {tensor.path.name} has {present}. It is "
            "cut short or damaged; fetch it again."
        )


def _read_vector(tensor: StoredTensor) -> NDArray[Any]:
    return _read_matrix(tensor, transposed=False).reshape(-1)


def _read_matrix(tensor: StoredTensor, *, transposed: bool) -> NDArray[Any]:
    rows, columns = tensor.elements // tensor.shape[0], tensor.shape[0]
    if tensor.type_id in _FLOATS:
        dtype = FLOAT_DTYPES[_FLOATS[tensor.type_id]]
        stored = np.memmap(tensor.path, dtype, "r", offset=tensor.start, shape=(rows, columns))
        return np.ascontiguousarray(stored.T) if transposed else stored
    return _dequantised(tensor, rows, columns, transposed=transposed)


def _dequantised(tensor: StoredTensor, rows: int, columns: int, *, transposed: bool) -> NDArray[np.float32]:
    gguf = _gguf()
    quantisation = gguf.GGMLQuantizationType(tensor.type_id)
    values, size = _block(tensor)
    row_bytes = columns // values * size
    stored = np.memmap(tensor.path, np.uint8, "r", offset=tensor.start, shape=(rows, row_bytes))
    matrix = np.empty((columns, rows) if transposed else (rows, columns), np.float32)
    by_row = matrix.T if transposed else matrix
    step = max(1, _BLOCK_VALUES // columns)
    # Damaged scales overflow; whoever builds the head refuses what is not finite.
    with np.errstate(all="ignore"):
        for start in range(0, rows, step):
            block = np.asarray(stored[start : start + step])
            by_row[start : start + step] = gguf.quants.dequantize(block, quantisation)
    return matrix


# ---------------------------------------------------------------------- labels, inputs, notes


def _labels(metadata: Mapping[str, Value]) -> Labels | None:
    tokens = metadata.get(_TOKENS)
    if not isinstance(tokens, tuple) or not tokens:
        return None
    kind = _KINDS.get(str(metadata.get("tokenizer.ggml.model"))) or guess_kind(tokens)
    return Labels(readable_tokens(tokens, kind), f"the file's {_TOKENS}", may_be_padded=True)


def _inputs(contents: Contents, features: int) -> Inputs:
    """The final norm with its gain and shift, if the architecture tells which kind it is."""
    architecture = str(contents.metadata.get("general.architecture"))
    tensors = [contents.tensors.get(f"{_NORM}.{part}") for part in ("weight", "bias")]
    stored = [tensor for tensor in tensors if tensor is not None]
    if tensors[0] is None:
        return Inputs(f"unknown: the file has no {_NORM}.weight")
    names = " and ".join(tensor.name for tensor in stored)
    if architecture not in RMS_NORM | LAYER_NORM:
        return Inputs(f"a norm with {names}, of a kind unknown for the architecture {architecture!r}")
    norm = RMSNorm if architecture in RMS_NORM else LayerNorm
    vectors = [_finite_vector(tensor, features) for tensor in stored]
    usable = [vector for vector in vectors if vector is not None]
    if len(usable) < len(stored):
        return Inputs(f"{norm.kind} with {names}, which should have {features} finite numbers and have not")
    return Inputs(f"{norm.kind} with {names} ({architecture})", norm(*usable))


def _finite_vector(tensor: StoredTensor, features: int) -> NDArray[np.float64] | None:
    if tensor.shape != (features,):
        return None
    _require_readable(tensor)
    with np.errstate(invalid="ignore"):  # a signalling NaN, refused in the next line
        vector = _read_vector(tensor).astype(np.float64)
    return vector if np.isfinite(vector).all() else None


def _quantisation_note(weight: StoredTensor) -> tuple[str, ...]:
    if weight.type_id in _FLOATS:
        return ()
    return (f"the weights are stored as {_type_name(weight)} and dequantised to float32",)


def _order_notes(contents: Contents, bias: StoredTensor | None) -> list[str]:
    """What happens to the logits before they are compared; raises LoadError if it changes their order."""
    notes = []
    architecture = contents.metadata.get("general.architecture")
    for key, action in (("logit_scale", "scaled"), ("final_logit_softcapping", "capped softly")):
        factor = contents.metadata.get(f"{architecture}.{key}")
        if not isinstance(factor, int | float) or factor == 0:  # 0 means not used
            continue
        if not factor > 0:
            raise LoadError(
                f"{architecture}.{key} is {factor}, which does not keep the order of the logits. To read the "
                f"weights all the same, name them with tensor= (--tensor)."
            )
        notes.append(f"logits are {action} ({key} {factor:g}), which leaves the argmax as it is")
    if _SCALE in contents.tensors:
        notes.extend(_scale_note(contents.tensors[_SCALE], bias))
    return notes


def _scale_note(scale: StoredTensor, bias: StoredTensor | None) -> list[str]:
    """output.scale multiplies W x but not the bias, so it may only be left out where there is none."""
    _require_readable(scale)
    factor = _read_vector(scale)
    if bias is not None or factor.size != 1 or not factor[0] > 0:
        raise LoadError(
            f"the product with {_HEAD} is multiplied by {_info(scale)} before it is used, which changes more "
            "than its size. To read the weights all the same, name them with tensor= (--tensor)."
        )
    return [f"logits are scaled ({_SCALE} {factor[0]:g}), which leaves the argmax as it is"]
