"""Heads in TensorFlow Lite files. They are read with our own FlatBuffer reader: no TensorFlow is needed."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import SIGMOID_NOTE, Arrays, Finding, Labels, TensorInfo
from argmaxable.models.labels.vocabulary import class_labels, search_beside
from argmaxable.models.tflite.flatbuffer import Damaged
from argmaxable.models.tflite.inputs import describe_inputs
from argmaxable.models.tflite.model import Model, Operator, Tensor, exactly
from argmaxable.models.zip_archive import require_one_reading

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

# Steps between the head and the output that keep the order of the classes. A constant may be added to logits,
# but not to probabilities.
_LAYOUT = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "DEQUANTIZE", "QUANTIZE"})
_INCREASING = frozenset({"SOFTMAX", "LOG_SOFTMAX", "LOGISTIC"})
_CANDIDATES_SHOWN = 6
_LARGEST_LABEL_FILE = 16 * 2**20
_MOST_FILES_INSIDE = 100
# What zipfile and zlib raise for archives that are cut short, damaged, encrypted (RuntimeError) or of a kind
# zipfile does not know (NotImplementedError, a RuntimeError).
_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OSError)


@dataclass(frozen=True, eq=False)
class _Layer:
    """A linear layer with constant weights (C × d, or C × 1 × 1 × d of a convolution) and what applies it.

    `adds_later` says that the bias is not an input of the operator but added to its result.
    """

    weight: Tensor
    bias: Tensor | None = None
    operator: Operator | None = None
    adds_later: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[0], self.weight.shape[-1]


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a TensorFlow Lite model: the layer that leads to its only output.

    Weights are stored by class; `options.transpose` flips them. Raises LoadError.
    """
    try:
        return _find(path, options)
    except Damaged as error:
        raise LoadError(
            f"is not a readable TensorFlow Lite model: {error}. It may be cut short or damaged; "
            "fetch it again."
        ) from error


def _find(path: Path, options: ReadOptions) -> Finding:
    model = Model(path)
    model.require_main_graph()
    layers = list(_layers(model))
    layer = _last_layer(model, layers) if options.tensor is None else _named(model, layers, options.tensor)
    bias = layer.bias if options.bias_tensor is None else _named_bias(model, options.bias_tensor)
    classes, features = layer.shape[::-1] if options.transpose else layer.shape
    _require_numbers(layer.weight)
    _require_usual_integers(model, layer)
    if bias is not None:
        _require_numbers(bias)

    inside = _labels_inside(path, classes)
    labels, doubts = (inside, []) if inside else search_beside(path.parent, classes)

    def read() -> Arrays:
        try:
            weight = model.numbers(layer.weight).reshape(layer.shape)
            values = None if bias is None else _bias_values(model, layer, bias)
        except Damaged as error:
            raise LoadError(f"the head can't be read: {error}. Fetch the file again.") from error
        return np.ascontiguousarray(weight.T) if options.transpose else weight, values

    return Finding(
        format="tflite",
        weight=_info(layer.weight),
        bias=None if bias is None else _info(bias),
        classes=classes,
        features=features,
        why=_why(layer, options),
        read=read,
        labels=labels,
        inputs=None if layer.operator is None else describe_inputs(model, layer.operator.input(0)),
        alternatives=tuple(_info(each.weight) for each in layers if each.weight.index != layer.weight.index),
        activation="" if options.tensor is not None else _activation(model),
        notes=(*_notes(model, layer, options), *doubts),
    )


def _why(layer: _Layer, options: ReadOptions) -> str:
    if options.tensor is not None or layer.operator is None:
        return "chosen by name"
    return f"the {layer.operator.kind} that leads to the output"


def _info(tensor: Tensor) -> TensorInfo:
    return TensorInfo(tensor.name, tensor.shape, tensor.type)


# ---------------------------------------------------------------------- which layer


def _last_layer(model: Model, layers: list[_Layer]) -> _Layer:
    """The linear layer the only output comes from."""
    if len(model.outputs) != 1:
        raise LoadError(
            f"the model has {len(model.outputs)} outputs, so it is not clear which one to take. "
            f"{_candidates(layers)}"
        )
    trace = _trace_back(model)
    layer = next((each for each in layers if trace and each.operator is trace[-1][0]), None)
    if layer is None:
        end = trace[-1][0].kind if trace else "nothing"
        raise LoadError(
            f"no linear layer leads straight to the output: the trace ends at {end}. {_candidates(layers)}"
        )
    _require_same_order(model, layer)
    return layer


def _trace_back(model: Model) -> list[tuple[Operator, Tensor]]:
    """Operators from the output back to the first that may change the order, each with what it puts out."""
    trace: list[tuple[Operator, Tensor]] = []
    index, passed = model.outputs[0], _LAYOUT | _INCREASING | {"ADD"}
    while (operator := model.producers.get(index)) and len(trace) < len(model.operators):  # no circles
        trace.append((operator, model.tensor(index)))
        if operator.kind not in passed:
            break
        if operator.kind == "ADD":
            passed = _LAYOUT
        index = _variable_input(model, operator)
    return trace


def _variable_input(model: Model, operator: Operator) -> int:
    """The first input, or of an addition the one that is not constant."""
    first = operator.input(0)
    is_swapped = operator.kind == "ADD" and model.constant(first) is not None
    return operator.input(1) if is_swapped else first


def _require_same_order(model: Model, layer: _Layer) -> None:
    override = f"To use it anyway, pass tensor={layer.weight.name!r} (--tensor)."
    for operator, tensor in _trace_back(model):
        if tensor.shape[-1:] != layer.weight.shape[:1]:
            raise LoadError(
                f"the product with {layer.weight.name!r} has {layer.shape[0]} columns but becomes a tensor "
                f"of shape {tensor.shape}, so they are not the classes of one argmax. {override}"
            )
        if operator.activation not in ("", "tanh"):
            raise LoadError(
                f"{operator.activation} follows the last layer, {layer.weight.name!r}, and makes different "
                f"logits equal. {override}"
            )
        if operator.kind == "ADD" and not layer.adds_later:
            raise LoadError(
                f"more than one bias is added to the product with {layer.weight.name!r}. {override}"
            )
        if operator.kind == "SOFTMAX" and not operator.option(0, "<f") > 0:
            raise LoadError(f"the final SOFTMAX has a factor that is not above 0. {override}")


def _layers(model: Model) -> Iterator[_Layer]:
    """Every linear layer with constant weights, nearest to the output first."""
    seen = set()
    for operator in reversed(model.operators):
        if operator.kind not in ("FULLY_CONNECTED", "CONV_2D"):
            continue
        weight = model.constant(operator.input(1))
        if weight is None or weight.index in seen or not _is_linear(model, operator, weight):
            continue
        seen.add(weight.index)
        if operator.input(2) < 0:
            bias = _added_later(model, operator, weight.shape[0])
            yield _Layer(weight, bias, operator, adds_later=bias is not None)
        elif bias := model.constant(operator.input(2)):
            yield _Layer(weight, bias, operator)


def _added_later(model: Model, operator: Operator, classes: int) -> Tensor | None:
    """The constant that is added to an operator's result, perhaps after changes of its layout."""
    for _ in model.operators:
        users = model.consumers.get(int(operator.outputs[0]), []) if len(operator.outputs) else []
        if len(users) != 1:
            return None
        operator = users[0]
        if operator.kind == "ADD":
            constants = [model.constant(int(index)) for index in operator.inputs[:2]]
            return next((each for each in constants if each is not None and each.shape == (classes,)), None)
        if operator.kind not in _LAYOUT:
            return None
    return None


def _is_linear(model: Model, operator: Operator, weight: Tensor) -> bool:
    if operator.kind == "FULLY_CONNECTED":  # its weights may be shuffled for one processor
        return len(weight.shape) == 2 and operator.option(1, "<b") == 0
    # In a convolution with groups each class sees only some of the channels.
    channels = model.tensor(operator.input(0)).shape[-1:]
    return len(weight.shape) == 4 and weight.shape[1:3] == (1, 1) and weight.shape[-1:] == channels


def _named(model: Model, layers: list[_Layer], name: str) -> _Layer:
    tensor = model.tensor_named(name)
    layer = next((each for each in layers if each.weight.name == name), None)
    if layer is not None:
        return layer
    if tensor is None:
        raise LoadError(f"tensor {name!r} not found. {_candidates(layers)}")
    if model.constant(tensor.index) is None or len(tensor.shape) != 2:
        raise LoadError(f"tensor {_info(tensor)} is not a constant matrix. {_candidates(layers)}")
    return _Layer(tensor)


def _named_bias(model: Model, name: str) -> Tensor:
    tensor = model.tensor_named(name)
    if tensor is None or model.constant(tensor.index) is None:
        raise LoadError(
            f"no constant tensor {name!r} found. Correct bias_tensor= (--bias-tensor) or leave it out."
        )
    return tensor


def _candidates(layers: list[_Layer]) -> str:
    if not layers:
        return "The graph has no linear layer with constant weights: is it a classifier?"
    shown = [str(_info(layer.weight)) for layer in layers[:_CANDIDATES_SHOWN]]
    more = f" and {len(layers) - len(shown)} more" if len(layers) > len(shown) else ""
    return (
        f"Weights of linear layers, nearest to the output first: {', '.join(shown)}{more}. "
        "Choose one with tensor= (--tensor)."
    )


# ---------------------------------------------------------------------- numbers, labels, notes


def _require_numbers(tensor: Tensor) -> None:
    if tensor.type not in FLOAT_DTYPES and not tensor.is_quantised:
        raise LoadError(
            f"tensor {_info(tensor)} has neither floats nor integers with a scale: its values mean nothing."
        )


def _require_usual_integers(model: Model, layer: _Layer) -> None:
    """Refuse integers that interpreters don't dequantise as the file says. Beside floats uint8 is taken for
    int8, and of int8 the zero points are not looked at; XNNPACK refuses them. Scales belong to classes."""
    weight, operator = layer.weight, layer.operator
    if not weight.is_quantised or operator is None or operator.input(1) != weight.index:
        return  # floats, or a DEQUANTIZE of its own
    what = f"the weights {weight.name!r} are {weight.type}"
    if weight.type == "uint8" and model.tensor(operator.input(0)).type in FLOAT_DTYPES:
        raise ambiguous(f"{what} and the features are floats, for which interpreters take them as int8")
    if weight.type != "uint8" and weight.zero_point.any():
        raise ambiguous(f"{what} with a zero point that is not 0, which interpreters ignore or refuse")
    if weight.scale.size > 1 and weight.axis != 0:
        raise ambiguous(f"{what} with scales along axis {weight.axis}, where interpreters expect axis 0")


def _bias_values(model: Model, layer: _Layer, bias: Tensor) -> NDArray[Any]:
    """The bias, whose integers count multiples of the input's scale times the weight's."""
    source = None if layer.operator is None else model.tensor(layer.operator.input(0))
    if bias is not layer.bias or layer.adds_later or bias.type in FLOAT_DTYPES:
        return model.numbers(bias)
    if source is None or source.scale.size != 1:
        raise Damaged(f"bias {bias.name!r} has integers, but the layer's input has no scale")
    # The scale stored with the bias is this product rounded to float32; operators use the product itself.
    scale = source.scale.astype(np.float64) * layer.weight.scale
    stored = model.values(bias).reshape(-1)
    if scale.size not in (1, stored.size):
        raise Damaged(f"{scale.size} scales belong to a bias of {stored.size} numbers")
    return exactly(stored.astype(np.float64) * scale)


def _labels_inside(path: Path, classes: int) -> Labels | None:
    """Labels packed into the file by TensorFlow Lite's metadata writer, which appends a zip archive."""
    if not zipfile.is_zipfile(path):
        return None
    found: dict[tuple[str, ...], str] = {}
    try:
        with path.open("rb") as file:
            require_one_reading(file, is_whole_file=False)
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[:_MOST_FILES_INSIDE]:
                if info.filename.endswith(".txt") and info.file_size <= _LARGEST_LABEL_FILE:
                    lines = archive.read(info).decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
                    if len(lines) == classes:
                        found.setdefault(class_labels(lines, classes), info.filename)
    except AmbiguousError:
        raise
    except _BROKEN_ARCHIVE:  # labels are welcome, but a head without them is still a head
        return None
    # Of the names in several languages none is the model's own.
    if len(found) != 1:
        return None
    ((names, source),) = found.items()
    return Labels(names, f"{source} inside the model")


def _notes(model: Model, layer: _Layer, options: ReadOptions) -> tuple[str, ...]:
    notes = []
    if layer.weight.is_quantised:
        notes.append(f"the weights are stored as {layer.weight.type} and dequantised exactly")
    if layer.bias is not None and layer.bias.is_quantised and not layer.adds_later:
        notes.append(f"the bias is stored as {layer.bias.type}; its numbers are rounded to float64")
    if layer.operator is not None and model.tensor(int(layer.operator.outputs[0])).is_quantised:
        notes.append(
            "the logits are rounded to integers before they are compared, so close ones may be equal"
        )
    if options.tensor is None and _activation(model) == "sigmoid":
        notes.append(SIGMOID_NOTE)
    return tuple(notes)


def _activation(model: Model) -> str:
    """What the model applies to its logits."""
    names = {"LOGISTIC": "sigmoid", "SOFTMAX": "softmax", "LOG_SOFTMAX": "softmax"}
    return next((names[operator.kind] for operator, _ in _trace_back(model) if operator.kind in names), "")
