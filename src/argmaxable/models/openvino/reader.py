"""Heads in OpenVINO's intermediate representation, as `openvino.save_model` and its converters write it.

The network, an .xml, is translated into the small `Graph` that `models/graph/` walks. The constants are in
the .bin of the same name beside it; of them only the head's, and short ones before it, are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.metadata import labels_of
from argmaxable.models.openvino.network import parse_network
from argmaxable.models.openvino.network_graph import translate

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.openvino.network import LayerNetwork
    from argmaxable.models.registry import ReadOptions

# A network has no weights in it: that of a language model has a few MB.
_LARGEST_NETWORK = 2**26


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of an OpenVINO model, given the path of its .xml.

    Without `options.tensor` it is the linear layer that leads to the output. Raises LoadError.
    """
    network = read_network(path)
    weights = path.with_suffix(".bin")
    if not weights.is_file():
        raise LoadError(f"has its weights in {weights.name}, which is not beside it. Fetch it too.")
    try:
        graph, values = translate(network, weights)
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"can't be read with {weights.name}: {error}. One of them is damaged, or they don't belong "
            "together; fetch both again."
        ) from error
    return find_in_graph(
        "openvino", graph, options, values, lambda classes: labels_of(network.metadata, path, classes)
    )


def read_network(path: Path) -> LayerNetwork:
    """The network in an .xml file; raises LoadError."""
    size = path.stat().st_size
    if size > _LARGEST_NETWORK:
        raise LoadError(f"has {size:,} bytes, too many for a network without weights. Is it OpenVINO's?")
    try:
        return parse_network(path.read_bytes())
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"is not a readable OpenVINO network: {error}. If it is damaged, or a Git LFS pointer, fetch it "
            "again. Otherwise convert the original with openvino.convert_model and openvino.save_model."
        ) from error
