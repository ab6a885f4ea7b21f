"""Keras's files: HDF5, bare or inside a zip archive (.keras). This is the only module that imports `h5py`.

They come in two layouts. Up to version 2 attributes list the layers in order and each one's weights by name
(kernel:0, bias:0); since version 3 a group `vars` in the group of each layer holds them by number. Nothing
outside of the file is touched: links and datasets that lead to other files are refused.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.errors import LoadError
from argmaxable.head import FLOAT_DTYPES
from argmaxable.load.finding import TensorInfo
from argmaxable.load.hdf5_heaps import require_sound

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_MODEL_WEIGHTS, _VARIABLES = "model_weights", "vars"
# Trained weights hardly compress; deflate and gzip can reach 1032:1, and a dataset that was never written
# takes no space at all. What is large and expands this much is no weight but a bomb.
_SUSPICIOUS_EXPANSION = 200
_HARMLESS_BYTES = 64 * 2**20
_LARGEST_CONFIG = 64 * 2**20
_MOST_ITEMS = 2**14
_DEEPEST_GROUP = 16
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip archive's member; ends with the lengths of name and extra
# What zipfile raises for archives that are cut short, damaged, encrypted (RuntimeError) or of a kind it does
# not know (NotImplementedError, a RuntimeError), and what h5py raises for such files.
_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError, struct.error)
_BROKEN_HDF5 = (
    LookupError,
    OSError,
    ValueError,
    TypeError,
    RuntimeError,
    AttributeError,
    OverflowError,
    MemoryError,
)


@dataclass(frozen=True)
class Group:
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


class KerasFile:
    """An open file. Its methods raise what h5py does; `opened` translates that into LoadError."""

    def __init__(self, file: Any, config: bytes | None) -> None:
        self._file, self._config = file, config

    @cached_property
    def config(self) -> str | bytes | None:
        """The JSON that describes the network, if the file has it."""
        return (
            next(iter(_strings(self._file, "model_config")), None) if self._config is None else self._config
        )

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the file tells the order of its layers."""
        return bool(self._layer_names)

    @cached_property
    def groups(self) -> list[Group]:
        """The layers that have weights, in the file's order or else by name."""
        if self.is_ordered:
            return [group for name in self._layer_names for group in self._listed(name)]
        return sorted(self._numbered(), key=lambda group: _natural(next(iter(group.arrays.values())).name))

    def info(self, path: str) -> TensorInfo:
        """Shape and type of a dataset; raises LoadError when the path leads to none in this file."""
        dataset = _child(self._file, path)
        if not isinstance(dataset, _h5py().Dataset):
            raise LoadError(f"{path!r} is no dataset in the file")
        is_bfloat16 = dataset.dtype.kind == "V" and dataset.dtype.itemsize == 2
        dtype = "bfloat16" if is_bfloat16 else str(dataset.dtype.newbyteorder("="))
        return TensorInfo(path, tuple(dataset.shape or ()), dtype)

    def read(self, info: TensorInfo) -> NDArray[Any]:
        """The values of a dataset of floats."""
        if info.dtype not in FLOAT_DTYPES:
            raise LoadError(f"dataset {info} holds no floats. Use a model with float weights.")
        dataset = _child(self._file, info.name)
        _require_stored(dataset, info)
        values: NDArray[Any] = dataset[()]
        return values.view(FLOAT_DTYPES["bfloat16"]) if info.dtype == "bfloat16" else values

    @cached_property
    def _layer_names(self) -> list[str]:
        return _strings(self._root[0], "layer_names")

    @cached_property
    def _root(self) -> tuple[Any, str]:
        is_whole_model = _MODEL_WEIGHTS in self._file
        return (
            (_child(self._file, _MODEL_WEIGHTS), f"{_MODEL_WEIGHTS}/") if is_whole_model else (self._file, "")
        )

    def _listed(self, layer: str) -> Iterator[Group]:
        """The arrays that a layer's weight_names list: path/kernel:0, or in Keras 1 just layer_W."""
        root, prefix = self._root
        found: dict[str, dict[str, TensorInfo]] = {}
        for name in _strings(_child(root, layer), "weight_names"):
            *path, last = name.split("/")
            role = last.split(":")[0]
            if not path:
                role = {f"{layer}_W": "kernel", f"{layer}_b": "bias"}.get(role, role)
            found.setdefault(path[-1] if path else layer, {})[role] = self.info(f"{prefix}{layer}/{name}")
        yield from (Group(owner, arrays) for owner, arrays in found.items())

    def _numbered(self) -> Iterator[Group]:
        """Every group called vars: …/layer/vars/0, 1, …"""
        h5py, waiting, seen = _h5py(), [("", self._file)], 0
        while waiting:
            path, group = waiting.pop()
            for name in group:
                seen += 1  # a group may contain itself
                if seen > _MOST_ITEMS or path.count("/") > _DEEPEST_GROUP:
                    raise LoadError(f"has more than {_MOST_ITEMS} groups, or groups too deep in one another")
                child, place = _child(group, name), f"{path}{name}/"
                if name != _VARIABLES and isinstance(child, h5py.Group):
                    waiting.append((place, child))
                elif isinstance(child, h5py.Group) and len(child):
                    yield Group(
                        "".join(_strings(child, "name")), {key: self.info(f"{place}{key}") for key in child}
                    )


@contextmanager
def opened(path: Path, *, for_arrays_only: bool = False) -> Iterator[KerasFile]:
    """The HDF5 file at the path, or inside the archive there; raises LoadError for all that fails.

    Before names or the configuration are read the whole file is looked through once (see `hdf5_heaps`);
    for arrays alone there is no need.
    """
    h5py = _h5py()
    with path.open("rb") as file, _unpacked(file) as (stream, config):
        if not for_arrays_only:
            require_sound(stream)
        try:
            with h5py.File(stream, "r") as hdf5:
                yield KerasFile(hdf5, config)
        except _BROKEN_HDF5 as error:
            reason = (str(error) or repr(error)).splitlines()[0]
            raise LoadError(
                f"holds no readable HDF5 file: {reason}. It may be cut short or damaged, or a Git LFS "
                "pointer; fetch it again."
            ) from error


def _h5py() -> ModuleType:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise LoadError(
            f"reading Keras files needs the package {error.name}: pip install 'argmaxable[keras]'"
        ) from error
    module: ModuleType = h5py
    return module


# ---------------------------------------------------------------------- inside HDF5


def _child(group: Any, path: str) -> Any:
    """What the path leads to from a group, through nothing but groups of the same file."""
    hard_link = _h5py().HardLink
    for part in path.split("/"):
        link = group.get(part, getlink=True)
        if not isinstance(link, hard_link):
            found = "nothing" if link is None else f"a link ({link!r})"
            raise LoadError(f"{path!r} leads to {found}, expected weights stored in the file itself")
        group = group[part]
    return group


def _require_stored(dataset: Any, info: TensorInfo) -> None:
    if dataset.external or dataset.is_virtual:
        raise LoadError(f"dataset {info} is kept in another file, which is not read. Save the model again.")
    stored = dataset.id.get_storage_size()
    if not stored or dataset.nbytes > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * stored):
        raise LoadError(
            f"dataset {info} would expand from {stored} to {dataset.nbytes} bytes, which no trained weights "
            "do: it looks like a bomb and was not read."
        )


def _strings(group: Any, key: str) -> list[str]:
    """An attribute that lists names; one that is too long for HDF5 is continued as key0, key1, …"""
    if key in group.attrs:
        return _read_strings(group, key)
    numbered = takewhile(
        lambda name: name in group.attrs, (f"{key}{number}" for number in range(_MOST_ITEMS))
    )
    return [name for part in numbered for name in _read_strings(group, part)]


def _read_strings(group: Any, key: str) -> list[str]:
    # An attribute of another type is not touched: the library crashes on some damaged ones. Where there are
    # no names Keras writes an empty list of floats.
    attribute, string = group.attrs.get_id(key), _h5py().h5t.TypeStringID
    if not isinstance(attribute.get_type(), string) or math.prod(attribute.shape or ()) > _MOST_ITEMS:
        return []
    values = np.ravel(group.attrs[key])
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _natural(path: str) -> list[tuple[int, str]]:
    """A key that sorts dense_10 after dense_9."""
    parts = re.split("([0-9]+)", path)
    return [(int(part[:18]), "") if part.isdigit() else (-1, part) for part in parts]


# ---------------------------------------------------------------------- inside a zip archive


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[tuple[IO[bytes], bytes | None]]:
    """The HDF5 file as a stream and, if it is in an archive, the configuration beside it."""
    is_archive = file.read(2) == b"PK"
    file.seek(0)
    if not is_archive:
        yield file, None
        return
    try:
        with zipfile.ZipFile(file) as archive:
            config = _member(archive, _CONFIG)
            if config.file_size > _LARGEST_CONFIG:
                raise LoadError(f"{_CONFIG} has {config.file_size} bytes, which no model's has.")
            with _stream(archive, _member(archive, _WEIGHTS), file) as stream:
                yield stream, archive.read(config)
    except _BROKEN_ARCHIVE as error:
        raise LoadError(
            f"is no readable .keras archive: {error}. It may be cut short or damaged; fetch it again."
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
def _stream(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A member as a stream to jump about in: where it lies, as Keras stores it, or decompressed to disk."""
    if info.compress_type == zipfile.ZIP_STORED:
        if info.header_offset < 0:
            raise zipfile.BadZipFile("a member begins before the archive does")
        file.seek(info.header_offset)
        lengths = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        start = info.header_offset + _LOCAL_HEADER.size + sum(lengths)
        yield io.BufferedReader(_Window(file, start, info.file_size))
        return
    if info.file_size > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * info.compress_size):
        raise LoadError(
            f"{info.filename} would expand from {info.compress_size} to {info.file_size} bytes, which no "
            "trained weights do: it looks like a zip bomb and was not read."
        )
    with tempfile.TemporaryFile() as unpacked, archive.open(info) as packed:
        shutil.copyfileobj(packed, unpacked)
        yield unpacked


class _Window(io.RawIOBase):
    """A part of a file, as a file of its own."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file, self._start, self._size, self._position = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self._size - self._position))
        self._file.seek(self._start + self._position)
        data = self._file.read(wanted)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
