"""The program that reads HDF5 files, in a process of its own. It is the only one that imports `h5py`.

The HDF5 library believes the lengths in a file: a forged one makes it fill gigabytes, run forever or crash.
So `models/keras/hdf5.py` runs this file as a script, which first of all limits its own memory. It imports
nothing of this package, which would take longer than all of its work.

On stdin it gets one question in JSON, where the HDF5 file is and which dataset is wanted. Without one it
answers with an outline of the file in JSON, with one by its values as bytes; if it fails, with the reason.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import IO, Any

FAILED = 3
# The same where the file is readable but does not hold what was asked for.
UNFIT = 4
# A model has some thousand groups, no more than six deep in one another.
_MOST_ITEMS = 2**14
_DEEPEST_GROUP = 16
# The attributes in which Keras keeps names and the configuration.
_ATTRIBUTES = ("model_config", "layer_names", "weight_names", "name")


class _Window(io.RawIOBase):
    """A part of a file, as a file of its own: an archive's member, where it lies."""

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


def main() -> int:
    """Answer the question on stdin; the exit status is 0, or FAILED when the answer is a reason."""
    question = json.load(sys.stdin)
    sys.path[:] = question["sys_path"]
    try:
        limit_oneself(question["memory"], question["seconds"])
        found = answer(question)
    except MemoryError:
        sys.stdout.write("it asks for more memory than any model needs")
        return FAILED
    except Exception as error:  # the library raises all kinds for damaged files
        sys.stdout.write((str(error) or repr(error)).splitlines()[0])
        return FAILED
    sys.stdout.buffer.write(found)
    return 0


def answer(question: dict[str, Any]) -> bytes:
    """The outline of the file, or the values of a dataset. Whatever the library raises is raised."""
    import h5py

    with open(question["path"], "rb") as file:
        window = io.BufferedReader(_Window(file, question["start"], question["size"]))
        with h5py.File(window, "r") as hdf5:
            wanted = question["dataset"]
            return json.dumps(_outline(h5py, hdf5)).encode() if wanted is None else _values(hdf5, wanted)


def limit_oneself(memory: int, seconds: int) -> None:
    """Bounds on what this process may take, before it meets the file."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        return
    limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: seconds}
    for kind, limit in limits.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _values(file: Any, path: str) -> bytes:
    values = file[path][()]
    return bytes(values.astype(values.dtype.newbyteorder("<")).tobytes())


def _outline(h5py: Any, file: Any) -> dict[str, Any]:
    """All groups, datasets, links and names in the file, by path; links to anything else are not followed."""
    outline: dict[str, Any] = {"groups": {}, "datasets": {}, "links": {}}
    waiting: list[tuple[str, Any]] = [("", file)]
    seen = 0
    while waiting:
        path, group = waiting.pop()
        outline["groups"][path] = _names(h5py, group)
        for name in group:
            seen += 1  # a group may contain itself
            if seen > _MOST_ITEMS or path.count("/") > _DEEPEST_GROUP:
                raise ValueError(f"more than {_MOST_ITEMS} groups, or groups too deep in one another")
            place = f"{path}/{name}" if path else name
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                outline["links"][place] = repr(link)
                continue
            child = group[name]
            if isinstance(child, h5py.Group):
                waiting.append((place, child))
            elif isinstance(child, h5py.Dataset):
                outline["datasets"][place] = _described(h5py, child)
    return outline


def _described(h5py: Any, dataset: Any) -> dict[str, Any]:
    # Where the values lie, if they lie there as they are: in one piece, in a type that needs no conversion.
    is_plain = dataset.chunks is None and dataset.id.get_type() == h5py.h5t.py_create(dataset.dtype)
    return {
        "shape": dataset.shape or (),
        "dtype": dataset.dtype.str,
        "stored": dataset.id.get_storage_size(),
        "is_elsewhere": bool(dataset.external or dataset.is_virtual),
        "offset": dataset.id.get_offset() if is_plain else None,
    }


def _names(h5py: Any, group: Any) -> dict[str, list[str]]:
    present = frozenset(group.attrs)
    found = {key: list(_strings(h5py, group, key, present)) for key in _ATTRIBUTES}
    return {key: names for key, names in found.items() if names}


def _strings(h5py: Any, group: Any, key: str, present: frozenset[str]) -> Iterator[str]:
    """An attribute that lists names; one that is too long for HDF5 is continued as key0, key1, …"""
    numbered = (f"{key}{number}" for number in range(_MOST_ITEMS))
    for name in [key] if key in present else takewhile(present.__contains__, numbered):
        # An attribute of another type is not touched. Where there are no names Keras writes an empty list of
        # floats.
        attribute = group.attrs.get_id(name)
        is_text = isinstance(attribute.get_type(), h5py.h5t.TypeStringID)
        if is_text and math.prod(attribute.shape or ()) <= _MOST_ITEMS:
            values = group.attrs[name]
            for value in values.ravel().tolist() if hasattr(values, "ravel") else [values]:
                yield value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    sys.exit(main())
