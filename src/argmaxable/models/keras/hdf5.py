"""HDF5 files without the risk of the HDF5 library, which runs in a process of its own (`hdf5_reader`) with a
limit on memory and time. What it can do to that process, a file can't do to this one.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.finding import TensorInfo
from argmaxable.models.keras import hdf5_reader

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Python, NumPy and the library take 120 MB of address space, an outline of 16,000 datasets 30 MB.
_MEMORY = 512 * 2**20
# Bytes of memory for each byte of an array: what the library reads, what it hands over, a copy in order.
_COPIES = 3
# Seconds of computing time: to begin with, and to go on for each byte of the file whose outline is made (a
# dataset takes 0.4 ms, and 500 bytes at least) or of the array that is decompressed (at 100 MB/s or more).
_SECONDS = 5
_SECONDS_A_BYTE_OUTLINED, _SECONDS_A_BYTE_READ = 4 / 2**20, 0.1 / 2**20
_MOST_SECONDS = 60
# Where the system can't limit computing time, and for disks that don't answer: the same on a busy machine.
_PATIENCE = 10
# Trained weights hardly compress, but gzip can reach 1032:1, and a dataset that was never written takes no
# space at all. What is large and expands this much is not a weight but a bomb.
_SUSPICIOUS_EXPANSION = 200
_HARMLESS_BYTES = 64 * 2**20
_DAMAGED = "It may be cut short or damaged, or a Git LFS pointer; fetch it again."


@dataclass(frozen=True)
class Extent:
    """Where an HDF5 file lies: all of a file, or a part of one."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True)
class Dataset:
    """An array: what it is, how many bytes it takes in the file, and where, if it lies there as it is."""

    info: TensorInfo
    layout: str
    stored: int
    is_elsewhere: bool
    offset: int | None

    @property
    def nbytes(self) -> int:
        return math.prod(self.info.shape) * np.dtype(self.layout).itemsize


@dataclass(frozen=True)
class Outline:
    """What is in an HDF5 file, by path: datasets, groups with the lists of names they have, links."""

    extent: Extent
    datasets: Mapping[str, Dataset]
    groups: Mapping[str, Mapping[str, list[str]]]
    links: Mapping[str, str]

    def dataset(self, path: str) -> Dataset:
        """The dataset at a path; raises LoadError when the path leads to none in this file."""
        if path in self.datasets:
            return self.datasets[path]
        if path in self.groups:
            raise LoadError(f"{path!r} is not a dataset in the file")
        parts = path.split("/")
        link = next((self.links[way] for way in _ways(parts) if way in self.links), None)
        found = "nothing" if link is None else f"a link ({link})"
        raise LoadError(f"{path!r} leads to {found}, expected weights stored in the file itself")

    def read(self, info: TensorInfo) -> NDArray[Any]:
        """The values of a dataset of floats; raises LoadError."""
        if info.dtype not in FLOAT_DTYPES:
            raise LoadError(f"dataset {info} holds no floats. Use a model with float weights.")
        dataset = self.dataset(info.name)
        _require_stored(dataset)
        values = _in_place(self.extent, dataset)
        if values is None:
            raw = _ask(
                self.extent,
                info.name,
                memory=_MEMORY + _COPIES * dataset.nbytes,
                seconds=_SECONDS + math.ceil(_SECONDS_A_BYTE_READ * dataset.nbytes),
            )
            values = np.frombuffer(raw, np.dtype(dataset.layout).newbyteorder("<"))
        if values.nbytes != dataset.nbytes:
            raise LoadError(
                f"dataset {info} has {values.nbytes} bytes, expected {dataset.nbytes}. {_DAMAGED}"
            )
        native = values.astype(values.dtype.newbyteorder("="), copy=False).reshape(info.shape)
        return native.view(FLOAT_DTYPES["bfloat16"]) if info.dtype == "bfloat16" else native


def outline_of(extent: Extent) -> Outline:
    """What the HDF5 file holds; raises LoadError when it can't be read within the limits."""
    with extent.path.open("rb") as file:
        file.seek(extent.start)
        start = file.read(len(_SIGNATURE))
    if start != _SIGNATURE:
        raise LoadError(f"holds no HDF5 file as Keras writes them (it begins with {start!r}). {_DAMAGED}")
    seconds = min(_MOST_SECONDS, _SECONDS + math.ceil(_SECONDS_A_BYTE_OUTLINED * extent.size))
    answer = json.loads(_ask(extent, None, memory=_MEMORY, seconds=seconds))
    datasets = {path: _dataset(path, record) for path, record in answer["datasets"].items()}
    return Outline(extent, datasets, answer["groups"], answer["links"])


def _ways(parts: list[str]) -> list[str]:
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _dataset(path: str, record: Mapping[str, Any]) -> Dataset:
    layout = np.dtype(record["dtype"])
    is_bfloat16 = layout.kind == "V" and layout.itemsize == 2
    name = "bfloat16" if is_bfloat16 else str(layout.newbyteorder("="))
    info = TensorInfo(path, tuple(record["shape"]), name)
    return Dataset(info, record["dtype"], record["stored"], record["is_elsewhere"], record["offset"])


def _require_stored(dataset: Dataset) -> None:
    info, stored = dataset.info, dataset.stored
    if dataset.is_elsewhere:
        raise LoadError(
            f"dataset {info} is stored in another file, which can't be read. Save the model in one file."
        )
    if not stored or dataset.nbytes > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * stored):
        raise LoadError(
            f"dataset {info} would expand from {stored} to {dataset.nbytes} bytes, which no trained weights "
            "do: it looks like a bomb and was not read."
        )


def _in_place(extent: Extent, dataset: Dataset) -> NDArray[Any] | None:
    """The values, if they lie in one piece inside the HDF5 file; then nobody else need be asked."""
    if dataset.offset is None or not 0 <= dataset.offset <= extent.size - dataset.nbytes:
        return None
    count = math.prod(dataset.info.shape)
    return np.fromfile(extent.path, dataset.layout, count, offset=extent.start + dataset.offset)


def _ask(extent: Extent, dataset: str | None, *, memory: int, seconds: int) -> bytes:
    if not is_installed("h5py"):
        raise LoadError("reading Keras files needs the package h5py: pip install 'argmaxable[keras]'")
    question = {
        "path": os.fspath(extent.path.resolve()),
        "start": extent.start,
        "size": extent.size,
        "dataset": dataset,
        "memory": memory,
        "seconds": seconds,
    }
    return ask(hdf5_reader.__file__, question, "HDF5")


def ask(program: str, question: Mapping[str, Any], library: str) -> bytes:
    """What a program answers that reads a file of untrusted content in a process of its own, within the
    question's `memory` and `seconds`; raises LoadError where it does not."""
    # Threads of a linear algebra library would only take address space, and no plugin may run for a file.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", program],
            input=json.dumps({**question, "sys_path": sys.path}).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=_PATIENCE * question["seconds"],
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LoadError(
            f"holds a file that the {library} library takes too long to read. {_DAMAGED}"
        ) from error
    if done.returncode == 0:
        return done.stdout
    if done.returncode == hdf5_reader.UNFIT:
        raise LoadError(f"{done.stdout.decode(errors='replace')}.")
    crashed = f"the {library} library crashed on it ({done.returncode})"
    reason = done.stdout.decode(errors="replace") if done.returncode == hdf5_reader.FAILED else crashed
    raise LoadError(f"holds no readable {library} file: {reason}. {_DAMAGED}")


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without doing so."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # how import hooks that forbid a package say so
        return False
