"""Heads in ncnn's models, as pnnx and ncnn's converters write them.

The network, a .param, is translated into the small `Graph` that `models/graph/` walks. The weights are in the
.bin of the same name beside it; of them only the head's, and short ones before it, are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.ncnn.network import parse_network
from argmaxable.models.ncnn.network_graph import translate
from argmaxable.models.ncnn.weights import NcnnWeights, locate_weights

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

# A network has no weights in it.
_LARGEST_NETWORK = 2**24


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of an ncnn model, given the path of its .param.

    Without `options.tensor` it is the linear layer that leads to the output. Raises LoadError.
    """
    size = path.stat().st_size
    if size > _LARGEST_NETWORK:
        raise LoadError(f"has {size:,} bytes, too many for a network without weights. Is it ncnn's?")
    weights = path.with_suffix(".bin")
    if not weights.is_file():
        raise LoadError(f"has its weights in {weights.name}, which is not beside it. Fetch it too.")
    try:
        layers = parse_network(path.read_bytes().decode())
        graph, arrays = translate(layers, locate_weights(layers, weights))
    except AmbiguousError:
        raise
    except (LoadError, UnicodeDecodeError) as error:
        raise LoadError(
            f"can't be read with {weights.name}: {error}. If one of them is damaged, or a Git LFS pointer, "
            "fetch it again. Otherwise use the model that it was converted from."
        ) from error
    return find_in_graph(
        "ncnn",
        graph,
        options,
        NcnnWeights(arrays, weights),
        lambda classes: search_beside(path.parent, classes),
    )
