"""Heads in NumPy's own files: an .npz archive with `W`, `b` and `labels`, a checkpoint of Marian or Nematus,
or an .npy with a bare matrix.

The headers are read here rather than by `numpy.load`, so that a declared size is compared with the bytes
that are really there before any memory is asked for. Pickled objects are never loaded.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from argmaxable.core.errors import InputError, LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.finding import Arrays, Finding, Labels, TensorInfo
from argmaxable.models.labels.vocabulary import labels_beside
from argmaxable.models.npz.layouts import Layout, layout_of
from argmaxable.models.zip_archive import require_one_reading

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

# Trained weights hardly compress (1.1:1, fp16 values in fp32 1.8:1) and labels, padded to the longest,
# about 15:1; deflate can reach 1032:1. A large array that expands this much is not a head but a zip bomb.
_SUSPICIOUS_EXPANSION = 200
_HARMLESS_BYTES = 64 * 2**20
# What zipfile and zlib raise for archives that are cut short, damaged (in names and offsets: ValueError or
# OSError), encrypted (RuntimeError) or of a kind zipfile does not know (NotImplementedError, a RuntimeError).
_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OSError)
# numpy writes only these; other decompressors raise errors of their own and are not needed.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What numpy's header parser, a reader of Python literals, raises for text that is not a header.
_BROKEN_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)

# How many bytes tell a header's length, by version. numpy refuses headers of more than 10,000 characters.
_LENGTHS = {(1, 0): 2, (2, 0): 4}
_LONGEST_HEADER = 2**16
_KEYS = re.compile(rb"['\"](descr|fortran_order|shape)['\"]\s*:")


@dataclass(frozen=True)
class _Header:
    """What an .npy stream declares about its array."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_bfloat16(self) -> bool:
        # numpy can't name bfloat16 in a header and writes two bytes of void; float16 has its own name.
        return self.dtype.kind == "V" and self.dtype.itemsize == 2 and self.dtype.names is None

    @property
    def looks_like_head(self) -> bool:
        return len(self.shape) == 2 and (self.dtype.kind == "f" or self.is_bfloat16)

    def __str__(self) -> str:
        dtype = "bfloat16" if self.is_bfloat16 else str(self.dtype)
        return f"{' × '.join(map(str, self.shape)) or 'scalar'} {dtype}"


def find(path: Path, options: ReadOptions) -> Finding:
    """The head in an .npz or .npy file; told apart by their first bytes. Raises LoadError."""
    with path.open("rb") as file:
        is_npy = file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX
        file.seek(0)
        if is_npy:
            return _find_npy(path, file, options)
        with opened(file) as archive:
            return _find_in_archive(path, archive, options)


def array_start(stream: IO[bytes]) -> tuple[int, str]:
    """Where in an .npy stream the values begin, and their order: "C" by rows, "F" by columns."""
    header = _read_header(stream, "the array")
    return stream.tell(), "F" if header.column_major else "C"


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file; raises LoadError."""
    with path.open("rb") as file, opened(file) as archive:
        return {name: read_member(archive, name) for name in read_headers(archive)}


@contextmanager
def opened(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        require_one_reading(file)
        with zipfile.ZipFile(file) as archive:
            yield archive
    except InputError:  # says it better
        raise
    except _BROKEN_ARCHIVE as error:
        raise LoadError(
            f"is not a readable .npz archive: {error}. It may be cut short or damaged; save it again."
        ) from error


def _find_npy(path: Path, file: IO[bytes], options: ReadOptions) -> Finding:
    if options.tensor is not None or options.bias_tensor is not None:
        raise LoadError(
            "an .npy file holds one array without a name, so tensor= and bias_tensor= (--tensor, "
            "--bias-tensor) can't choose any. Leave them out, or save an .npz."
        )
    header = _read_header(file, "the array")
    present = os.fstat(file.fileno()).st_size - file.tell()
    _require_size(header, present, "the array")

    def read() -> Arrays:
        with path.open("rb") as again:
            weight = _read_array(again, _read_header(again, "the array"), "the array")
            return _oriented(weight, options.transpose), None

    classes, features = _matrix_shape(header, "the array", options.transpose)
    return Finding("npy", _info("the array", header), None, classes, features, "the only array", read)


def _find_in_archive(path: Path, archive: zipfile.ZipFile, options: ReadOptions) -> Finding:
    headers = read_headers(archive)
    layout = _layout(headers, options)
    weight, bias = layout.weight, _bias(headers, layout, options)
    is_flipped = layout.rows_are_classes == options.transpose
    classes, features = _matrix_shape(headers[weight], weight, is_flipped)

    def read() -> Arrays:
        with path.open("rb") as file, opened(file) as again:
            return (
                _oriented(read_member(again, weight), is_flipped),
                None if bias is None else read_member(again, bias),
            )

    return Finding(
        format="npz",
        weight=_info(weight, headers[weight]),
        bias=None if bias is None else _info(bias, headers[bias]),
        classes=classes,
        features=features,
        why="chosen by name" if options.tensor else layout.why,
        read=read,
        labels=_labels(path, archive, layout, classes),
        alternatives=tuple(
            _info(name, header)
            for name, header in headers.items()
            if header.looks_like_head and name != weight
        ),
    )


def _layout(headers: Mapping[str, _Header], options: ReadOptions) -> Layout:
    _require_one_name(headers, options)
    layout = layout_of(headers, options.tensor)
    if layout is not None:
        return layout
    name = _required(headers, "W" if options.tensor is None else options.tensor, "tensor")
    return Layout("chosen by name", name, "b", has_vocabulary=False)


def _require_one_name(headers: Mapping[str, _Header], options: ReadOptions) -> None:
    """Raise AmbiguousError where a weight or a bias has two names, or one of each pair: a bias under the name
    that goes with the other weight would be passed over."""
    if options.tensor is None and {"W", "weight"} <= headers.keys():
        raise ambiguous("it has arrays W and weight", "Choose one with tensor= (--tensor).")
    for weight, other in (("W", "bias"), ("weight", "b")):
        is_chosen = weight in headers and options.tensor in (None, weight)
        if is_chosen and other in headers and options.bias_tensor is None:
            raise ambiguous(
                f"it has the arrays {weight} and {other}, and {weight} goes with "
                f"{'b' if weight == 'W' else 'bias'}",
                "Name the bias with bias_tensor= (--bias-tensor), or rename it.",
            )


def _bias(headers: Mapping[str, _Header], layout: Layout, options: ReadOptions) -> str | None:
    named = options.bias_tensor
    name = layout.bias if named is None else _required(headers, named, "bias_tensor")
    # An empty array is how some writers say "no bias".
    return name if name in headers and 0 not in headers[name].shape else None


def _labels(path: Path, archive: zipfile.ZipFile, layout: Layout, classes: int) -> Labels | None:
    if "labels.npy" in archive.namelist():
        names = tuple(as_labels(read_member(archive, "labels")))
        return Labels(names, "the array labels", is_inside=True)
    return labels_beside(path.parent, classes) if layout.has_vocabulary else None


def _info(name: str, header: _Header) -> TensorInfo:
    return TensorInfo(name, header.shape, "bfloat16" if header.is_bfloat16 else str(header.dtype))


def _matrix_shape(header: _Header, name: str, is_flipped: bool) -> tuple[int, int]:
    _require_plain(header, repr(name))
    if len(header.shape) != 2:
        raise LoadError(
            f"weight must be a matrix (classes × features), found {name} of shape {header.shape}."
        )
    rows, columns = header.shape
    return (columns, rows) if is_flipped else (rows, columns)


def read_headers(archive: zipfile.ZipFile) -> dict[str, _Header]:
    headers = {}
    names = set(archive.namelist())
    for info in archive.infolist():
        if f"{info.filename}.npy" in names:  # numpy.load gives either of them that name
            raise ambiguous(f"two arrays are called {info.filename!r}, with and without the ending .npy")
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            continue
        if info.compress_type not in _COMPRESSIONS:
            raise zipfile.BadZipFile(f"{name!r} is compressed in a way numpy does not use")
        with archive.open(info) as member:
            headers[name] = _read_header(member, repr(name))
    return headers


def _required(headers: Mapping[str, _Header], name: str, option: str) -> str:
    if name in headers:
        return name
    found = ", ".join(f"{key} ({header})" for key, header in headers.items()) or "none"
    likely = ", ".join(key for key, header in headers.items() if header.looks_like_head) or "none"
    flag = option.replace("_", "-")
    raise LoadError(
        f"array {name!r} not found. Arrays in the archive: {found}; two-dimensional floats, which look "
        f"like heads: {likely}. Choose one with {option}= (--{flag})."
    )


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > max(_HARMLESS_BYTES, _SUSPICIOUS_EXPANSION * info.compress_size):
        raise LoadError(
            f"array {name!r} would expand from {info.compress_size} to {info.file_size} bytes, which no "
            "trained weights do: it looks like a zip bomb and was not read. If you trust the file, save it "
            "again with numpy.savez (uncompressed)."
        )
    with archive.open(info) as member:
        header = _read_header(member, repr(name))
        _require_size(header, info.file_size - member.tell(), repr(name))
        return _read_array(member, header, repr(name))


def _read_header(stream: IO[bytes], name: str) -> _Header:
    try:
        version = npy.read_magic(stream)
        if version not in _LENGTHS:  # (3, 0) exists for structured arrays only
            raise ValueError(f"version {version} is not 1.0 or 2.0")
        parse = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        stored = stream.read(_LENGTHS[version])
        length = int.from_bytes(stored, "little")
        if length > _LONGEST_HEADER:
            raise ValueError(f"it declares {length} bytes of it")
        text = stream.read(length)
        shape, column_major, dtype = parse(io.BytesIO(stored + text))
    except _BROKEN_HEADER as error:
        raise LoadError(f"{name} has no valid .npy header: {error}. Save the file again.") from error
    # Python takes the last of two values, programs that search for the key the first.
    repeated = twice(key.decode() for key in _KEYS.findall(text))
    if repeated is not None:
        raise ambiguous(f"the header of {name} has the key {repeated!r} twice")
    return _Header(shape, column_major, dtype)


def _require_size(header: _Header, present: int, name: str) -> None:
    # Objects are pickled, so their declared size means nothing: they are refused when read.
    if header.nbytes != present and not header.dtype.hasobject:
        raise LoadError(
            f"{name} declares {header} = {header.nbytes} bytes but {present} are there. The file is cut "
            "short or damaged; copy or save it again."
        )


def _require_plain(header: _Header, name: str) -> None:
    if header.dtype.hasobject:
        raise LoadError(
            f"{name} holds pickled Python objects, which can run code when loaded, so it was not read. Save "
            "numbers as floats and labels as strings: numpy.array(labels, dtype=str)."
        )


def _read_array(stream: IO[bytes], header: _Header, name: str) -> NDArray[Any]:
    _require_plain(header, name)
    data = stream.read()
    try:
        array: NDArray[Any] = np.ndarray(
            header.shape, header.dtype, data, order="F" if header.column_major else "C"
        )
    except (ValueError, TypeError) as error:  # a negative dimension, or bytes missing despite the checks
        raise LoadError(f"{name} can't be read as {header}: {error}. Save the file again.") from error
    return array.view(ml_dtypes.bfloat16) if header.is_bfloat16 else array


def _oriented(weight: NDArray[Any], is_flipped: bool) -> NDArray[Any]:
    return np.ascontiguousarray(weight.T if is_flipped else weight)


def _code_points(array: NDArray[np.str_]) -> NDArray[np.uint32]:
    """The numbers that NumPy stores for the characters. It checks none when it reads them."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).view(np.uint32)


def as_labels(array: NDArray[Any]) -> list[str]:
    """Strings from an array of them, or of UTF-8; raises LoadError."""
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise LoadError(
            f"'labels' has shape {array.shape} and dtype {array.dtype}; expected one string per class. "
            "Save them as numpy.array(labels, dtype=str)."
        )
    if array.dtype.kind == "U":
        if _code_points(array).max(initial=0) > sys.maxunicode:
            raise LoadError("'labels' holds numbers beyond Unicode: the file is damaged. Save it again.")
        return [str(label) for label in array]
    try:
        return [bytes(label).decode() for label in array]
    except UnicodeDecodeError as error:
        raise LoadError(f"'labels' holds bytes that are not UTF-8: {error}. Save them as str.") from error
