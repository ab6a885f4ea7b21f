"""Heads in ONNX files. This is the only module that imports `onnx`.

The protobuf is translated once into the small `Graph` that `argmaxable.load.graph` walks; of the weights
only the head's are decoded, also when they lie in a file beside the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.checker import ValidationError

from argmaxable.errors import LoadError
from argmaxable.load.finding import Arrays, Finding, Labels, TensorInfo
from argmaxable.load.graph import Graph, Layer, Node, last_layer, layer_using, other_weights
from argmaxable.load.registry import ReadOptions

_FLOAT_TYPES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE})
# Where PaddleOCR's exporters keep the characters a recogniser can answer.
_LABELS_KEY = "character"


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of an ONNX model.

    Without `options.tensor` it is the linear layer that leads to the output. Its orientation follows from
    the node that uses it; `options.transpose` flips it. Raises LoadError.
    """
    model = _parse(path)
    tensors = _tensors(model.graph)
    graph = _translate(model.graph, tensors)
    layer = last_layer(graph) if options.tensor is None else layer_using(graph, options.tensor)
    _require_unscaled(layer)
    rows, columns = tensors[layer.weight].dims
    flipped = layer.stored_by_class == options.transpose
    classes, features = (columns, rows) if flipped else (rows, columns)
    if options.tensor is None:
        _require_classes_kept(layer, classes, tensors, path.parent)
    bias = _bias_name(layer, options, tensors)

    def read() -> Arrays:
        weight = _float_array(tensors, layer.weight, path.parent)
        values = None if bias is None else _float_array(tensors, bias, path.parent)
        if values is not None and values.size == 1:  # one number for all classes, as Add broadcasts it
            values = np.broadcast_to(values.reshape(1), classes)
        return np.ascontiguousarray(weight.T) if flipped else weight, values

    return Finding(
        format="onnx",
        weight=_info(tensors, layer.weight),
        bias=None if bias is None else _info(tensors, bias),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else "the linear layer that leads to the output",
        read=read,
        labels=_labels(model, classes),
        alternatives=tuple(_info(tensors, name) for name in other_weights(graph, layer.weight)),
    )


def _info(tensors: Mapping[str, TensorProto], name: str) -> TensorInfo:
    dtype = TensorProto.DataType.Name(tensors[name].data_type).lower()
    return TensorInfo(name, tuple(tensors[name].dims), dtype)


def _parse(path: Path) -> ModelProto:
    try:
        return onnx.load_model_from_string(path.read_bytes())
    except DecodeError as error:
        raise LoadError(
            f"is no readable ONNX model: {error}. It may be cut short or damaged, or a Git LFS pointer; "
            "fetch it again."
        ) from error


def _tensors(graph: GraphProto) -> dict[str, TensorProto]:
    """The constants of a graph by name: initializers and the values of Constant nodes."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            value = next((each.t for each in node.attribute if each.name == "value"), None)
            if value is not None:
                tensors[node.output[0]] = value
    return tensors


def _translate(graph: GraphProto, tensors: Mapping[str, TensorProto]) -> Graph:
    return Graph(
        nodes=tuple(_translate_node(node) for node in graph.node if node.op_type != "Constant"),
        outputs=tuple(output.name for output in graph.output),
        constants={name: tuple(tensor.dims) for name, tensor in tensors.items()},
    )


def _translate_node(node: NodeProto) -> Node:
    attributes: dict[str, float | tuple[int, ...]] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.FLOAT:
            attributes[attribute.name] = attribute.f
        elif attribute.type == AttributeProto.INT:
            attributes[attribute.name] = attribute.i
        elif attribute.type == AttributeProto.INTS:
            attributes[attribute.name] = tuple(attribute.ints)
    return Node(node.op_type, tuple(node.input), tuple(node.output), attributes)


def _float_array(tensors: Mapping[str, TensorProto], name: str, folder: Path) -> NDArray[Any]:
    """The values of a float tensor, in its own dtype."""
    if tensors[name].data_type not in _FLOAT_TYPES:
        names = {number: type_name for type_name, number in TensorProto.DataType.items()}
        raise LoadError(
            f"tensor {name!r} has type {names.get(tensors[name].data_type, 'unknown')}; expected FLOAT16, "
            "BFLOAT16, FLOAT or DOUBLE. Quantised weights mean nothing without their scales: use the float "
            "model they were made from."
        )
    return _array(tensors, name, folder)


def _array(tensors: Mapping[str, TensorProto], name: str, folder: Path) -> NDArray[Any]:
    tensor = tensors[name]
    try:
        array: NDArray[Any] = numpy_helper.to_array(tensor, base_dir=str(folder))
    except (ValueError, ValidationError) as error:
        raise LoadError(
            f"tensor {name!r} (shape {tuple(tensor.dims)}) can't be read: {error}. The model, or the data "
            "file that belongs beside it, is missing, cut short or damaged; fetch it again."
        ) from error
    return array


def _require_unscaled(layer: Layer) -> None:
    if layer.scaled:
        raise LoadError(
            f"the Gemm node that uses {layer.weight!r} has alpha or beta other than 1; scaling the weights "
            "here would round them. Fold the factors into the weights and export the model again."
        )


def _require_classes_kept(
    layer: Layer, classes: int, tensors: Mapping[str, TensorProto], folder: Path
) -> None:
    """Refuse a layer whose product is cut into several groups, each with an argmax of its own."""
    for name in (each for each in layer.targets if each in tensors):
        target = _array(tensors, name, folder).reshape(-1).tolist()
        if classes not in target and target[-1:] not in ([0], [-1]):  # 0 keeps, -1 takes up all the rest
            raise LoadError(
                f"the product with {layer.weight!r} has {classes} columns but is reshaped to {target}, so "
                "they are not the classes of one argmax. To treat them as such all the same, pass "
                f"tensor={layer.weight!r} (--tensor)."
            )


def _bias_name(layer: Layer, options: ReadOptions, tensors: Mapping[str, TensorProto]) -> str | None:
    names = layer.biases if options.bias_tensor is None else (options.bias_tensor,)
    if len(names) > 1:
        raise LoadError(
            f"{len(names)} constants are added to the product with {layer.weight!r}: "
            f"{', '.join(names)}. Their sum would be rounded: export the model with a single bias. "
            "(bias_tensor=, --bias-tensor takes one of them and leaves the others out.)"
        )
    if names and names[0] not in tensors:
        raise LoadError(
            f"tensor {names[0]!r} not found ({len(tensors)} constants; added to the layer: "
            f"{', '.join(layer.biases) or 'none'}). Correct bias_tensor= (--bias-tensor) or leave it out."
        )
    return names[0] if names else None


def _labels(model: ModelProto, classes: int) -> Labels | None:
    """The labels PaddleOCR's exporters store, or None when their number does not fit the classes.

    A recogniser has a class "<blank>" before the listed characters and, unless it was trained without,
    a space after them; an orientation classifier has just those listed.
    """
    # Only "\n" separates: str.splitlines would also split at characters a model can answer.
    value = next((str(each.value) for each in model.metadata_props if each.key == _LABELS_KEY), "")
    stored = value.removesuffix("\n").split("\n") if value else []
    for labels in (stored, ["<blank>", *stored], ["<blank>", *stored, " "]):
        if stored and len(labels) == classes:
            return Labels(tuple(labels), f"the model's metadata, key {_LABELS_KEY!r}")
    return None
