"""Where each layer's weights are in the .bin of an ncnn model, in which arrays lie one after the other.

The file has no names: what a layer reads follows from its kind and parameters. So an array is believed only
if all layers together read the whole file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.binary_file import SHRUNK, read_values
from argmaxable.models.ncnn.network import ABSENT, NcnnLayer

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored

# Four bytes before an array say how it is stored.
_FLOAT16, _INT8 = 0x01306B47, 0x000D4B38
_FLOAT32 = (0, 0x0002C056)
_TABLE = 256 * 4

# What a layer reads: a name, how many numbers, and whether four bytes before them say how they are stored.
Item = tuple[str, int, bool]


@dataclass(frozen=True)
class NcnnArray:
    """A stored array: numpy's name of its type, its shape where it is used, and the place of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def _convolution(layer: NcnnLayer) -> Iterator[Item]:
    if layer.integer(19):  # its weights are computed
        return
    outputs, scales = layer.integer(0), layer.integer(8)
    yield "weight", layer.integer(6), True
    if layer.integer(5):
        yield "bias", outputs, False
    if scales:
        per_group = layer.kind.startswith("ConvolutionDepthWise")
        yield "scales", (layer.integer(7, 1) if scales in (1, 101) else 1) if per_group else outputs, False
        yield "input scale", 1, False
    if scales > 100:
        yield "output scale", 1, False


def _inner_product(layer: NcnnLayer) -> Iterator[Item]:
    yield "weight", layer.integer(2), True
    if layer.integer(1):
        yield "bias", layer.integer(0), False
    if layer.integer(8):
        yield "scales", layer.integer(0), False
        yield "input scale", 1, False


def _batch_norm(layer: NcnnLayer) -> Iterator[Item]:
    for name in ("slope", "mean", "variance", "bias"):
        yield name, layer.integer(0), False


def _scale(layer: NcnnLayer) -> Iterator[Item]:
    if layer.integer(0) != ABSENT:
        yield "scale", layer.integer(0), False
        if layer.integer(1):
            yield "bias", layer.integer(0), False


def _embedding(layer: NcnnLayer) -> Iterator[Item]:
    yield "weight", layer.integer(3), True
    if layer.integer(2):
        yield "bias", layer.integer(0), False
    if layer.integer(18):
        yield "scale", 1, False


def _norm(size: int, affine: int, names: tuple[str, ...]) -> Callable[[NcnnLayer], Iterator[Item]]:
    def items(layer: NcnnLayer) -> Iterator[Item]:
        if layer.integer(affine, 1):
            yield from ((name, layer.integer(size), False) for name in names)

    return items


def _list(number: int) -> Callable[[NcnnLayer], Iterator[Item]]:
    def items(layer: NcnnLayer) -> Iterator[Item]:
        yield "values", layer.integer(number), False

    return items


def _memory(layer: NcnnLayer) -> Iterator[Item]:
    lengths = [layer.integer(number) for number in (0, 1, 11, 2)]
    yield "values", math.prod(length for length in lengths if length), layer.integer(21, 1) == 0


def _recurrent(gates: int, biases: int) -> Callable[[NcnnLayer], Iterator[Item]]:
    def items(layer: NcnnLayer) -> Iterator[Item]:
        outputs, ways = layer.integer(0), 2 if layer.integer(2) == 2 else 1
        hidden = layer.integer(3, outputs) if layer.kind == "LSTM" else outputs
        yield "input weight", layer.integer(1), True
        yield "bias", hidden * biases * ways, True
        yield "state weight", outputs * hidden * gates * ways, True
        if hidden != outputs:
            yield "projection", hidden * outputs * ways, True
        if layer.integer(8):
            yield "input scales", hidden * gates * ways, False
            yield "state scales", hidden * gates * ways, False

    return items


def _attention(layer: NcnnLayer) -> Iterator[Item]:
    width, size = layer.integer(0), layer.integer(2)
    if layer.integer(18) or not width or size % width:
        raise LoadError(f"layer {layer.name[:80]!r} stores its weights in an unknown way")
    queries = size // width
    keys, values = layer.integer(3, width), layer.integer(4, width)
    for name, rows, columns in (("query", width, queries), ("key", width, keys), ("value", width, values)):
        yield f"{name} weight", rows * columns, True
        yield f"{name} bias", width, False
    yield "output weight", queries * width, True
    yield "output bias", queries, False


def _gemm(layer: NcnnLayer) -> Iterator[Item]:
    rows, columns, inner = (layer.integer(number) for number in (7, 8, 9))
    if layer.integer(18):
        raise LoadError(f"layer {layer.name[:80]!r} is quantised")
    if layer.integer(4):
        yield "left", rows * inner, True
    if layer.integer(5):
        yield "right", inner * columns, True
    if layer.integer(6) and layer.integer(10) != -1:
        sizes = {0: 1, 1: rows, 2: rows, 3: rows * columns, 4: columns}
        yield "added", sizes.get(layer.integer(10), 0), True


def _nothing(_: NcnnLayer) -> Iterator[Item]:
    return iter(())


READS: dict[str, Callable[[NcnnLayer], Iterator[Item]]] = {
    **{
        f"{kind}{depth_wise}{axes}": _convolution
        for kind in ("Convolution", "Deconvolution")
        for depth_wise in ("", "DepthWise")
        for axes in ("", "1D", "3D")
    },
    **{"InnerProduct": _inner_product, "BatchNorm": _batch_norm, "Scale": _scale, "Embed": _embedding},
    **{"LayerNorm": _norm(0, 2, ("gamma", "beta")), "RMSNorm": _norm(0, 2, ("gamma",))},
    **{"GroupNorm": _norm(1, 3, ("gamma", "beta")), "InstanceNorm": _norm(0, 2, ("gamma", "beta"))},
    **{"PReLU": _list(0), "Bias": _list(0), "MemoryData": _memory, "Gemm": _gemm},
    **{"LSTM": _recurrent(4, 4), "GRU": _recurrent(3, 4), "RNN": _recurrent(1, 1)},
    **{"MultiHeadAttention": _attention},
}


def locate_weights(layers: tuple[NcnnLayer, ...], path: Path) -> dict[str, NcnnArray]:
    """Where the layers' arrays are, as "layer.weight" and so on; raises LoadError."""
    size = path.stat().st_size
    found: dict[str, NcnnArray] = {}
    with path.open("rb") as file:
        place = 0
        for layer in layers:
            for name, count, is_tagged in READS.get(layer.kind, _nothing)(layer):
                array, place = _array(file, place, count, f"{layer.name}.{name}", is_tagged=is_tagged)
                if place > size:
                    raise LoadError(f"{layer.name[:80]!r} goes beyond the end of {path.name}")
                found[f"{layer.name}.{name}"] = array
    if place != size:
        raise LoadError(
            f"its layers read {place:,} bytes of {path.name}, which has {size:,}: a layer reads something "
            "unknown, or the files don't belong together"
        )
    return found


def _array(file: IO[bytes], place: int, count: int, what: str, *, is_tagged: bool) -> tuple[NcnnArray, int]:
    if count < 0:
        raise LoadError(f"{what[:80]!r} has {count} numbers")
    dtype, width, start = "float32", 4, place
    if is_tagged:
        file.seek(place)
        tag = int.from_bytes(file.read(4), "little")
        start += 4
        if tag == _FLOAT16:
            dtype, width = "float16", 2
        elif tag == _INT8:
            dtype, width = "int8", 1
        elif tag not in _FLOAT32:
            dtype, width, start = "table", 1, start + _TABLE
    length = count * width
    return NcnnArray(dtype, (count,), start, length), start + -(-length // 4) * 4


@dataclass(frozen=True)
class NcnnWeights:
    """Gives the values of arrays."""

    arrays: Mapping[str, NcnnArray]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats; raises LoadError."""
        array = self.arrays[stored.name]
        if array.dtype not in FLOAT_DTYPES:
            raise LoadError(
                f"{stored.name!r} is stored as {array.dtype}, which ncnn rounds to. Use the model before it "
                "was quantised."
            )
        return read_values(self.path, FLOAT_DTYPES[array.dtype], array.start, array.shape, SHRUNK)
