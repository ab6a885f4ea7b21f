"""Small ONNX models, made with the onnx package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

CLASSES, FEATURES = 6, 4
Constants = dict[str, NDArray[Any]]


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def constant_node(name: str, array: NDArray[Any]) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def build(
    nodes: Sequence[NodeProto],
    constants: Constants,
    *,
    outputs: str = "y",
    rows: int | None = 1,
    character: str | None = None,
) -> onnx.ModelProto:
    """A model of one input `x`; `rows` None makes it a column."""
    shape = [FEATURES, 1] if rows is None else [rows, FEATURES]
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs.split()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if character is not None:
        helper.set_model_props(model, {"character": character})
    return model


def save(tmp_path: Path, model: onnx.ModelProto) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path
