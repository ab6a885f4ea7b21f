"""The GGML file that whisper.cpp reads: settings, filters, tokens, and tensors one after the other.

Nothing in it says how long a tensor is: that follows from its type and shape, and the last must end where the
file does.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import BinaryReader, mapped
from argmaxable.models.gguf.header import StoredTensor
from argmaxable.models.gguf.tensors import info, is_quantised, stored_bytes

_MAGIC = 0x67676D6C
_NOT_READ = "is not a readable model of whisper.cpp"
_DAMAGED = "It may be cut short, damaged, or another program's; fetch it again, or use a GGUF."
# Larger than any: Whisper has 51,866 tokens of at most a few dozen bytes.
_MOST_TOKENS, _LONGEST_TOKEN, _LONGEST_NAME = 2**20, 2**12, 2**8
_MOST_DIMENSIONS = 4
# ftype is 1000 times the version of the quantisations, plus the type. The gguf package knows the second.
_VERSION_FACTOR, _VERSION = 1000, 2


@dataclass(frozen=True)
class WhisperFile:
    """Sizes, the tokens that are stored (more follow by number) and tensors by name."""

    vocabulary: int
    features: int
    tokens: tuple[bytes, ...]
    tensors: Mapping[str, StoredTensor]


def read_file(path: Path) -> WhisperFile:
    """What a file of whisper.cpp holds; raises LoadError."""
    with mapped(path, "a model of whisper.cpp") as data:
        return _read(BinaryReader(data, _DAMAGED), path, data)


def _read(reader: BinaryReader, path: Path, data: mmap.mmap) -> WhisperFile:
    (magic,) = reader.numbers("I", "its first number")
    if magic != _MAGIC:
        raise LoadError(f"{_NOT_READ}: it begins with {magic:#x}. {_DAMAGED}")
    vocabulary, *_, features, _, _, _, kind = reader.numbers("11i", "the settings")
    bands, length = reader.numbers("2i", "the sizes of the filters")
    reader.skip(4 * bands * length if min(bands, length) >= 0 else -1, "the filters")
    (count,) = reader.numbers("i", "the number of tokens")
    if not 0 <= count <= min(vocabulary, _MOST_TOKENS):
        raise LoadError(f"{_NOT_READ}: it has {count} tokens of {vocabulary}. {_DAMAGED}")
    tokens = tuple(_bytes(reader, data, _LONGEST_TOKEN, "a token") for _ in range(count))
    tensors: dict[str, StoredTensor] = {}
    while reader.left:
        tensor = _tensor(reader, path, data)
        if tensor.name in tensors:
            raise ambiguous(f"two tensors are called {tensor.name!r}")
        if is_quantised(tensor) and kind // _VERSION_FACTOR != _VERSION:
            raise LoadError(
                f"is quantised in version {kind // _VERSION_FACTOR} of GGML's formats; version {_VERSION} "
                "can be read. Quantise the model again."
            )
        tensors[tensor.name] = tensor
    return WhisperFile(vocabulary, features, tokens, tensors)


def _bytes(reader: BinaryReader, data: mmap.mmap, longest: int, what: str) -> bytes:
    (length,) = reader.numbers("I", f"the length of {what}")
    if length > longest:
        raise LoadError(f"{_NOT_READ}: {what} has {length} bytes, more than {longest}. {_DAMAGED}")
    start = reader.skip(length, what)
    return data[start : start + length]


def _tensor(reader: BinaryReader, path: Path, data: mmap.mmap) -> StoredTensor:
    dimensions, length, type_id = reader.numbers("3i", "a tensor's numbers")
    if not (1 <= dimensions <= _MOST_DIMENSIONS and 1 <= length <= _LONGEST_NAME):
        raise LoadError(
            f"{_NOT_READ}: a tensor has {dimensions} axes and a name of {length} bytes. {_DAMAGED}"
        )
    shape = reader.numbers(f"{dimensions}i", "a tensor's shape")
    start = reader.skip(length, "a tensor's name")
    name = data[start : start + length].decode(errors="backslashreplace")
    tensor = StoredTensor(path, name, shape, type_id, reader.position, len(data))
    size = stored_bytes(tensor) if min(shape) > 0 else 0
    if not size:
        raise LoadError(
            f"has a tensor {info(tensor)} whose size is unknown. It may need a newer gguf package "
            "(pip install 'argmaxable[gguf]')."
        )
    reader.skip(size, f"tensor {name[:80]!r}")
    return tensor
