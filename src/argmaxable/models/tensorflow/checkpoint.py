"""The head of a checkpoint without a graph: by the names that TensorFlow's users give output layers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Arrays, Finding, HeadInputs, TensorInfo
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.source import FLOATS

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions
    from argmaxable.models.tensorflow.bundle import TensorBundle

# What Python's objects put behind a variable's name, and what optimisers store of it.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_SLOT = re.compile(
    r"(/|\.)(OPTIMIZER_SLOT|Adam(_\d)?|adam_[mv]|Momentum|RMSProp(_\d)?|Adagrad|ExponentialMovingAverage)(/|$)|^_?optimizer/"
)
# The names of a weight and its bias, and whether it is stored as classes × features: BERT's classifiers.
_USUAL = (("output_weights", "output_bias", True),)
_DENSE = re.compile(
    r"(^|.*/)(logits|predictions|output|outputs|head|classifier|lm_head|fc|Logits|softmax)(_\d+)?/_?kernel"
)
_CANDIDATES_SHOWN = 8


def find_by_name(bundle: TensorBundle, path: Path, options: ReadOptions) -> Finding:
    """The head among the tensors of a checkpoint; raises LoadError.

    A layer of Keras's, called kernel, is stored as features × classes.
    """
    infos = {
        name: TensorInfo(name, entry.shape, entry.dtype)
        for name, entry in bundle.entries.items()
        if not _SLOT.search(name)
    }
    weight, bias, by_class, why = _chosen(infos, options)
    info = infos[weight]
    by_class = by_class != options.transpose
    rows, columns = _matrix(info)
    classes, features = (rows, columns) if by_class else (columns, rows)
    if bias is not None and infos[bias].shape != (classes,):
        raise LoadError(
            f"{infos[bias]} does not fit the {classes} classes of {info}. Pass --bias-tensor or --transpose."
        )

    def read() -> Arrays:
        values = bundle.read(weight).reshape(rows, columns)
        return (
            values if by_class else np.ascontiguousarray(values.T),
            None if bias is None else _floats(bundle.read(bias), bias),
        )

    labels, doubts = search_beside(path.parent, classes)
    return Finding(
        format="tensorflow",
        weight=info,
        bias=None if bias is None else infos[bias],
        classes=classes,
        features=features,
        why=why,
        read=read,
        labels=labels,
        inputs=HeadInputs("unknown: a checkpoint does not say what feeds the head"),
        alternatives=tuple(each for name, each in infos.items() if name != weight and _is_matrix(each)),
        notes=tuple(doubts),
    )


def _chosen(infos: dict[str, TensorInfo], options: ReadOptions) -> tuple[str, str | None, bool, str]:
    """Weight, bias, whether the weight is classes × features, and why they were chosen."""
    if options.tensor is not None:
        weight = next((name for name in (options.tensor, f"{options.tensor}{_VALUE}") if name in infos), None)
        if weight is None:
            raise LoadError(
                f"tensor {options.tensor!r} not found ({len(infos)} tensors). {_candidates(infos)}"
            )
        usual = next(((bias, by_class) for end, bias, by_class in _USUAL if weight == end), None)
        by_class = (
            "kernel" not in weight.removesuffix(_VALUE).rpartition("/")[2] if usual is None else usual[1]
        )
        beside = _beside(weight, infos) if usual is None else usual[0] if usual[0] in infos else None
        return weight, _bias(options, infos, beside), by_class, "chosen by name"
    for end, bias, by_class in _USUAL:
        if end in infos:
            return (
                end,
                _bias(options, infos, bias if bias in infos else None),
                by_class,
                f"by its usual name, {end}",
            )
    layers = [
        name for name in infos if _DENSE.fullmatch(name.removesuffix(_VALUE)) and _is_matrix(infos[name])
    ]
    if len(layers) == 1:
        return layers[0], _bias(options, infos, _beside(layers[0], infos)), False, "by its usual name"
    raise LoadError(
        f"is a checkpoint, which has names and no graph. {len(layers) or 'None'} of its tensors go by the "
        f"name of an output layer. {_candidates(infos)} Or pass the SavedModel that was exported from it."
    )


def _bias(options: ReadOptions, infos: dict[str, TensorInfo], usual: str | None) -> str | None:
    if options.bias_tensor is None:
        return usual
    wanted = (options.bias_tensor, f"{options.bias_tensor}{_VALUE}")
    found = next((name for name in wanted if name in infos), None)
    if found is None:
        raise LoadError(f"tensor {options.bias_tensor!r} not found. Correct bias_tensor= (--bias-tensor).")
    return found


def _beside(weight: str, infos: dict[str, TensorInfo]) -> str | None:
    """The bias of the same layer."""
    end = _VALUE if weight.endswith(_VALUE) else ""
    name = re.sub(r"_?(kernel|weights|w)$", "bias", weight.removesuffix(_VALUE)) + end
    return name if name in infos and name != weight else None


def _is_matrix(info: TensorInfo) -> bool:
    lengths = info.shape[2:] if info.shape[:2] == (1, 1) else info.shape
    return len(lengths) == 2 and min(lengths) > 0 and info.dtype in FLOATS


def _matrix(info: TensorInfo) -> tuple[int, int]:
    if not _is_matrix(info):
        raise LoadError(f"tensor {info} is not a matrix of floats. Choose another with tensor= (--tensor).")
    return info.shape[-2], info.shape[-1]


def _floats(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.name not in FLOATS:
        raise LoadError(f"tensor {name!r} does not hold floats.")
    return values


def _candidates(infos: dict[str, TensorInfo]) -> str:
    matrices = [info for info in infos.values() if _is_matrix(info)]
    shown = ", ".join(map(str, matrices[-_CANDIDATES_SHOWN:])) or "none"
    return f"Matrices, the last ones: {shown}. Choose one with tensor= (--tensor)."
