"""An ONNX model that ends at a tensor inside it, as bytes for a runtime."""

from __future__ import annotations

from pathlib import Path

import onnx

from argmaxable.core.errors import LoadError


def cut_at(path: Path, tensor: str, *, keep_outputs: bool = False) -> bytes:
    """The model with this tensor as its output: the only one, or before the model's own.

    The file must have passed the reader, which checks its structure. Raises LoadError.
    """
    model = onnx.load(path)
    graph = model.graph
    if not any(tensor in node.output for node in graph.node):
        raise LoadError(
            f"{tensor!r}, which feeds the output layer, is computed inside a branch of the graph, so the "
            "model "
            "can't be run up to there. Export the model without an If, or pass the features themselves."
        )
    outputs = [each for each in graph.output if each.name != tensor] if keep_outputs else []
    tapped = onnx.helper.make_empty_tensor_value_info(tensor)
    del graph.output[:]
    graph.output.extend([tapped, *outputs])
    return bytes(model.SerializeToString())
