"""HDF5 files that were made to exhaust memory, time or the library: a LoadError, and no harm done."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from keras_writer import dense, listed, sequential, write

from argmaxable.core.errors import LoadError
from argmaxable.models.keras import hdf5, hdf5_reader
from argmaxable.models.keras.hdf5 import Extent, Outline, outline_of

KERNEL = np.arange(20, dtype=np.float32).reshape(4, 5)
LAYERS = {"output": {"output/kernel:0": KERNEL, "output/bias:0": np.ones(5, np.float32)}}
MODEL = listed(LAYERS, sequential(dense("output", 5, "softmax")), names="text")

# Loads a file and prints what came of it, how many megabytes it took at most, and the seconds of computing.
MEASURED = r"""
import json, re, resource, sys
from pathlib import Path
from argmaxable.models import load_head
from argmaxable.models.keras import hdf5
hdf5._SECONDS = int(sys.argv[2])
try:
    outcome = load_head(sys.argv[1]).weight.tolist()
except Exception as error:
    outcome = f"{type(error).__name__}: {error}"
# Not what getrusage says of this process: that begins with the size of the process that started it.
own = int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
reader = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([outcome, max(own, reader.ru_maxrss) / 1024, reader.ru_utime + reader.ru_stime]))
"""


def measured(path: Path, *, limit: int = hdf5._SECONDS) -> tuple[Any, float, float]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, path, str(limit)],
        check=True, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    outcome, megabytes, seconds = json.loads(done.stdout)
    return outcome, megabytes, seconds


def text_reference(data: bytes) -> int:
    """Where an attribute refers to its text: four bytes of length, then the address of the heap it is in."""
    heap = data.index(b"GCOL")
    return data.index(heap.to_bytes(8, "little")) - 4


def forged_text(data: bytes) -> bytes:
    place = text_reference(data)
    return data[:place] + (2**32 - 1).to_bytes(4, "little") + data[place + 4 :]


def endless_heap(data: bytes) -> bytes:
    """A heap of texts whose free space has no length, through which the library walks forever."""
    heap = data.index(b"GCOL")
    length = int.from_bytes(data[heap + 24 : heap + 32], "little")  # of the heap's first object
    free = heap + 32 + -(-length // 8) * 8
    return data[:free] + bytes(16) + data[free + 16 :]


limited = pytest.mark.skipif(sys.platform != "linux", reason="the system may not limit a process's memory")


@limited
def test_an_ordinary_file_takes_little_memory_and_time(tmp_path: Path) -> None:
    outcome, megabytes, seconds = measured(write(tmp_path / "m.h5", MODEL))
    assert outcome == KERNEL.T.tolist()
    assert megabytes < 200
    assert seconds < 2


@limited
def test_a_forged_length_of_4_gigabytes_ends_in_an_error_and_takes_little_memory(tmp_path: Path) -> None:
    outcome, megabytes, seconds = measured(write(tmp_path / "m.h5", forged_text(MODEL)))
    assert outcome.startswith("LoadError")
    assert "HDF5" in outcome
    assert megabytes < 600
    assert seconds < 8


@limited
def test_a_heap_in_which_the_library_runs_forever_ends_in_an_error(tmp_path: Path) -> None:
    # It runs until the limit: a second shows that as well as the five that users wait.
    outcome, megabytes, seconds = measured(write(tmp_path / "m.h5", endless_heap(MODEL)), limit=1)
    assert outcome.startswith("LoadError")
    assert megabytes < 600
    assert seconds < 4


@limited
def test_a_forged_chunk_of_2_gigabytes_ends_in_an_error_and_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", data=KERNEL, maxshape=(None, None), chunks=(4, 5), compression="gzip")
    shape, forged = (struct.pack("<3I", *sides, 4) for sides in ((4, 5), (2**14, 2**15)))
    data = path.read_bytes()
    assert data.count(shape) == 1
    outcome, megabytes, seconds = measured(write(path, data.replace(shape, forged)))
    assert outcome.startswith("LoadError")
    assert megabytes < 600
    assert seconds < 8


# ---------------------------------------------------------------------- what the outline says


def outline(path: Path) -> Outline:
    return outline_of(Extent(path, 0, path.stat().st_size))


def odd_float() -> Any:
    """A float of 32 bits with another bias of the exponent, so that the stored bits mean half as much."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(128)
    return kind


@pytest.mark.parametrize("layout", ["one piece", "compact", "chunks", "gzip", "big-endian", "odd float"])
def test_values_are_those_the_library_reads(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        if layout in ("compact", "odd float"):
            settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            settings.set_layout(h5py.h5d.COMPACT if layout == "compact" else h5py.h5d.CONTIGUOUS)
            kind = odd_float() if layout == "odd float" else h5py.h5t.IEEE_F32LE
            space = h5py.h5s.create_simple(KERNEL.shape)
            h5py.h5d.create(file.id, b"x", kind, space, settings).write(h5py.h5s.ALL, h5py.h5s.ALL, KERNEL)
        else:
            chunks = (2, 2) if layout in ("chunks", "gzip") else None
            packed = "gzip" if layout == "gzip" else None
            kind = ">f4" if layout == "big-endian" else "<f4"
            file.create_dataset("x", data=KERNEL, dtype=kind, chunks=chunks, compression=packed)
    found = outline(path)
    dataset = found.dataset("x")
    assert (dataset.offset is None) == (layout not in ("one piece", "big-endian"))
    assert found.read(dataset.info).tolist() == KERNEL.tolist()


def test_a_damaged_offset_is_no_way_out_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "m.h5", MODEL)
    found = outline(path)
    info = next(each.info for each in found.datasets.values() if each.info.shape == KERNEL.shape)
    beyond = replace(found.dataset(info.name), offset=path.stat().st_size - 8)
    moved = replace(found, datasets={info.name: beyond})
    assert moved.read(info).tolist() == KERNEL.tolist()


def test_a_crash_of_the_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = tmp_path / "reader.py"
    crash.write_text("import os; os.abort()")
    monkeypatch.setattr(hdf5_reader, "__file__", str(crash))
    with pytest.raises(LoadError, match=r"the HDF5 library crashed on it \(-?\d+\).*fetch it again"):
        outline(write(tmp_path / "m.h5", MODEL))
