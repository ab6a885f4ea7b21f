"""Keras's files: HDF5, bare or inside a zip archive (.keras).

They come in two layouts. Up to version 2 attributes list the layers in order and each one's weights by name
(kernel:0, bias:0); since version 3 a group `vars` in the group of each layer holds them by number. Nothing
outside of the file is touched: links and datasets that lead to other files are refused.
"""

from __future__ import annotations

import io
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.scratch import scratch_folder
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.keras.hdf5 import Extent, Outline, outline_of
from argmaxable.models.zip_archive import require_one_reading

if TYPE_CHECKING:
    from argmaxable.models.finding import TensorInfo

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
# Weights in one of Keras's other forms.
_OTHER_WEIGHTS = ("model.weights.npz", "model.weights.json")
_MODEL_WEIGHTS, _VARIABLES = "model_weights", "vars"
# Trained weights hardly compress, but deflate can reach 1032:1: what is large and expands this much is no
# model.
_SUSPICIOUS_EXPANSION = 200
_HARMLESS_BYTES = 64 * 2**20
_LARGEST_CONFIG = 64 * 2**20
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip archive's member; ends with the lengths of name and extra
# What zipfile raises for archives that are cut short, damaged, encrypted (RuntimeError) or of a kind it does
# not know (NotImplementedError, a RuntimeError).
_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError, struct.error)


@dataclass(frozen=True)
class LayerArrays:
    """The arrays of a layer, by their role: kernel, bias, gamma, …, or 0, 1, … in files of Keras 3.

    `layer` is the layer's name, empty where the file does not store it.
    """

    layer: str
    arrays: dict[str, TensorInfo]

    @property
    def kernel(self) -> TensorInfo | None:
        """The matrix of a linear layer, perhaps that of a convolution of one pixel; None in other layers."""
        kernel, roles = self.array("kernel", "0"), self.arrays.keys()
        if kernel is None or not (roles <= {"kernel", "bias"} or roles <= {"0", "1"}):
            return None
        if "0" in roles and "embedding" in kernel.name:  # by number alone it looks like a kernel
            return None
        is_matrix = len(kernel.shape) > 1 and set(kernel.shape[:-2]) <= {1}
        return kernel if is_matrix and (self.bias is None or self.bias.shape == kernel.shape[-1:]) else None

    @property
    def bias(self) -> TensorInfo | None:
        return self.array("bias", "1")

    def array(self, role: str, number: str) -> TensorInfo | None:
        return self.arrays.get(role) or self.arrays.get(number)


@dataclass(frozen=True)
class KerasFile:
    """What a file of Keras holds: the configuration and the layers. Its methods raise LoadError."""

    outline: Outline
    archived_config: bytes | None

    @property
    def config(self) -> str | bytes | None:
        """The JSON that describes the network, if the file has it."""
        if self.archived_config is not None:
            return self.archived_config
        return next(iter(self._names("", "model_config")), None)

    @property
    def is_ordered(self) -> bool:
        """Whether the file tells the order of its layers."""
        return bool(self.listed_layers)

    @property
    def listed_layers(self) -> list[str]:
        """The names of the layers in the file's order; empty where it does not tell it."""
        return self._names(self._root, "layer_names")

    @cached_property
    def groups(self) -> list[LayerArrays]:
        """The layers that have weights, in the file's order or else by name."""
        if self.is_ordered:
            names = self.listed_layers
            repeated = twice(names)
            if repeated is not None:
                raise ambiguous(f"layer_names lists {repeated!r} twice")
            return [group for name in names for group in self._listed(_joined(self._root, name), name)]
        return sorted(self._numbered(), key=lambda group: _natural(next(iter(group.arrays.values())).name))

    def info(self, path: str) -> TensorInfo:
        """Shape and type of a dataset; raises LoadError when the path leads to none in this file."""
        return self.outline.dataset(path).info

    def read(self, info: TensorInfo) -> NDArray[Any]:
        """The values of a dataset of floats."""
        return self.outline.read(info)

    @property
    def _root(self) -> str:
        if _MODEL_WEIGHTS not in self.outline.groups:
            return ""
        # Keras takes the first as a file of weights, the second as a model.
        if self._names("", "layer_names") and self._names(_MODEL_WEIGHTS, "layer_names"):
            raise ambiguous(f"layers are listed both in the file and in its group {_MODEL_WEIGHTS}")
        return _MODEL_WEIGHTS

    def _names(self, group: str, key: str) -> list[str]:
        return self.outline.groups.get(group, {}).get(key, [])

    def _listed(self, place: str, layer: str) -> Iterator[LayerArrays]:
        """The arrays that a layer's weight_names list: path/kernel:0, or in Keras 1 just layer_W."""
        found: dict[tuple[str, ...], dict[str, TensorInfo]] = {}
        for name in self._names(place, "weight_names"):
            *path, last = name.split("/")
            others = set(path) & set(self.listed_layers) - {layer}
            if others and layer not in path:  # Keras goes by the group, which name the path belies
                raise ambiguous(f"weight_names of layer {layer!r} lists weights of layer {min(others)!r}")
            role = last.split(":")[0]
            if not path:
                role = {f"{layer}_W": "kernel", f"{layer}_b": "bias"}.get(role, role)
            arrays = found.setdefault(tuple(path), {})
            if role in arrays:
                raise ambiguous(f"weight_names of layer {layer!r} lists {role!r} twice")
            arrays[role] = self.info(_joined(place, name))
        yield from (LayerArrays(path[-1] if path else layer, arrays) for path, arrays in found.items())

    def _numbered(self) -> Iterator[LayerArrays]:
        """Every group called vars: …/layer/vars/0, 1, …"""
        inside: dict[str, dict[str, TensorInfo]] = {}
        for path in sorted([*self.outline.datasets, *self.outline.links]):
            group, _, key = path.rpartition("/")
            if group.rpartition("/")[2] == _VARIABLES:
                inside.setdefault(group, {})[key] = self.info(path)
        for path, arrays in inside.items():
            yield LayerArrays("".join(self._names(path, "name")), arrays)


@contextmanager
def opened(path: Path, known: Outline | None = None) -> Iterator[KerasFile]:
    """The HDF5 file at the path, or inside the archive there; raises LoadError for all that fails.

    `known` is the outline from when the file was opened before, which saves making it again.
    """
    with _unpacked(path) as (extent, config):
        outline = outline_of(extent) if known is None else replace(known, extent=extent)
        yield KerasFile(outline, config)


def _joined(group: str, name: str) -> str:
    return f"{group}/{name}" if group else name


def _natural(path: str) -> list[tuple[int, str]]:
    """A key that sorts dense_10 after dense_9."""
    parts = re.split("([0-9]+)", path)
    return [(int(part[:18]), "") if part.isdigit() else (-1, part) for part in parts]


# ---------------------------------------------------------------------- inside a zip archive


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Extent, bytes | None]]:
    """Where the HDF5 file lies and, if it is in an archive, the configuration beside it."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            yield Extent(path, 0, file.seek(0, io.SEEK_END)), None
            return
        file.seek(0)
        with _translated(file), zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if _WEIGHTS in names and not names.isdisjoint(_OTHER_WEIGHTS):
                raise ambiguous(f"it has weights in {_WEIGHTS} and in another form")
            config = _member(archive, _CONFIG)
            if config.file_size > _LARGEST_CONFIG:
                raise LoadError(f"{_CONFIG} has {config.file_size} bytes, which no model's has.")
            with _extent(archive, _member(archive, _WEIGHTS), file, path) as extent:
                yield extent, archive.read(config)


@contextmanager
def _translated(file: IO[bytes]) -> Iterator[None]:
    try:
        require_one_reading(file)
        yield
    except _BROKEN_ARCHIVE as error:
        raise LoadError(
            f"is not a readable .keras archive: {error}. It may be cut short or damaged; fetch it again."
        ) from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        return archive.getinfo(name)
    except KeyError as error:
        raise LoadError(
            f"is an archive without {name}, which a .keras file has ({', '.join(archive.namelist()[:9])}). "
            "Was it saved in several parts? Save it as one."
        ) from error


@contextmanager
def _extent(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: IO[bytes], path: Path) -> Iterator[Extent]:
    """Where a member lies: in the archive, if it is just stored, as Keras does, or decompressed beside."""
    if info.compress_type == zipfile.ZIP_STORED:
        if info.header_offset < 0:
            raise zipfile.BadZipFile("a member begins before the archive does")
        file.seek(info.header_offset)
        lengths = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        yield Extent(path, info.header_offset + _LOCAL_HEADER.size + sum(lengths), info.file_size)
        return
    if info.file_size > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * info.compress_size):
        raise LoadError(
            f"{info.filename} would expand from {info.compress_size} to {info.file_size} bytes, which no "
            "trained weights do: it looks like a zip bomb and was not read."
        )
    with scratch_folder() as folder:
        unpacked = folder / _WEIGHTS
        with unpacked.open("wb") as target, archive.open(info) as packed:
            shutil.copyfileobj(packed, target)
        yield Extent(unpacked, 0, info.file_size)
