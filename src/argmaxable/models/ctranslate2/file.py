"""The layout of CTranslate2's model.bin: which variables it holds, where they lie, which names are aliases.

A file is a version, the name and revision of the model's specification, the variables one after the other,
each with its numbers, and the aliases, as CTranslate2's `ModelSpec._serialize` writes them and `Model::load`
reads them (src/models/model.cc). Every declared size is compared with the bytes that are there before it is
believed; no numbers are read before somebody asks for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import BinaryReader, mapped

NEWEST_VERSION = 6
_WITH_SPECIFICATION, _WITH_ALIASES, _WITH_TYPES = 2, 3, 4  # since which version a file has them
# In the order of the enumeration DataType. Before version 4 a file told only how wide its numbers are.
_TYPES = (("float32", 4), ("int8", 1), ("int16", 2), ("int32", 4), ("float16", 2), ("bfloat16", 2))
_TYPE_OF_WIDTH = {4: "float32", 2: "int16", 1: "int8"}
# Variables or aliases in a file. A model with 126 layers has about 2,000 variables.
_MOST_ENTRIES = 2**20
_OF_OPENNMT_TF = ("", "TransformerBase", "TransformerBig", "TransformerSpec")
# How CTranslate2 renames the variables of OpenNMT-tf, with which those specifications began: the first
# occurrence of each, in this order (map_v1_variable_name). Those inside attention blocks are left out.
_RENAMED = (
    ("transformer/", ""),
    (":0", ""),
    ("w_embs", "embeddings/weight"),
    ("kernel", "weight"),
    ("LayerNorm", "layer_norm"),
    ("dense", "projection"),
)
DAMAGED = "The file is cut short or damaged; fetch it again."


@dataclass(frozen=True)
class StoredVariable:
    """An array in the file: its name, shape and dtype, and the byte at which its numbers start."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int


@dataclass(frozen=True)
class ModelFile:
    """`variables` has an entry for each name, aliases included: two names of one array have equal entries."""

    version: int
    specification: str
    revision: int
    variables: Mapping[str, StoredVariable]


def parse(path: Path) -> ModelFile:
    """What a model.bin holds; raises LoadError when it is not one, cut short or damaged."""
    with mapped(path, "a model of CTranslate2") as data:
        return _parse(_Reader(data, DAMAGED))


class _Reader(BinaryReader):
    """Reads numbers, counts and names."""

    def number(self, layout: str, what: str) -> int:
        (value,) = self.numbers(layout, what)
        return int(value)

    def count(self, what: str) -> int:
        count = self.number("I", f"the number of {what}")
        if count > _MOST_ENTRIES:
            raise LoadError(f"declares {count} {what}, expected at most {_MOST_ENTRIES}. {DAMAGED}")
        return count

    def name(self, what: str) -> str:
        """A text that ends in a zero, which counts in its length."""
        length = self.number("H", what)
        start = self.skip(length, what)
        raw = self.data[start : start + length]
        if not raw.endswith(b"\0"):
            raise LoadError(f"{what} has no zero at its end. {DAMAGED}")
        if b"\0" in raw[:-1]:
            raise ambiguous(f"{what} has a zero byte inside: {raw[:80]!r}")
        try:
            return raw[:-1].decode()
        except UnicodeDecodeError as error:
            raise LoadError(f"{what} is not UTF-8: {raw[:80]!r}. {DAMAGED}") from error


def _parse(reader: _Reader) -> ModelFile:
    version = reader.number("I", "the version")
    if not 1 <= version <= NEWEST_VERSION:
        raise LoadError(
            f"is a model of CTranslate2 of version {version}; versions 1 to {NEWEST_VERSION} can be read. "
            "Convert the model with an earlier CTranslate2, or pass the model it was converted from."
        )
    specification, revision = "", 1
    if version >= _WITH_SPECIFICATION:
        specification = reader.name("the name of the specification")
        revision = reader.number("I", "the revision")
    is_renamed = revision == 1 and specification in _OF_OPENNMT_TF
    variables: dict[str, StoredVariable] = {}
    for _ in range(reader.count("variables")):
        variable = _read_variable(reader, version)
        name = _renamed(variable.name) if is_renamed else variable.name
        if name in variables:
            raise ambiguous(f"two variables are called {name[:80]!r}")
        variables[name] = variable
    if version >= _WITH_ALIASES:
        _read_aliases(reader, variables)
    if reader.left:
        raise LoadError(
            f"has {reader.left} bytes after its end, which no model of CTranslate2 has. {DAMAGED}"
        )
    return ModelFile(version, specification, revision, variables)


def _read_variable(reader: _Reader, version: int) -> StoredVariable:
    name = reader.name("the name of a variable")
    what = f"variable {name[:80]!r}"
    shape = tuple(reader.number("I", what) for _ in range(reader.number("B", what)))
    kind, declared = reader.number("B", what), reader.number("I", what)
    if version >= _WITH_TYPES:
        known = kind < len(_TYPES)
        dtype, width = _TYPES[kind] if known else ("", 0)
    else:
        known, dtype, width = kind in _TYPE_OF_WIDTH, _TYPE_OF_WIDTH.get(kind, ""), kind
        declared *= width  # a number of items
    if not known:
        raise LoadError(f"{what} has numbers of the unknown type {kind}. {DAMAGED}")
    nbytes = math.prod(shape) * width
    if declared != nbytes:
        raise LoadError(f"{what} of shape {shape[:8]} and type {dtype} declares {declared} bytes. {DAMAGED}")
    return StoredVariable(name, shape, dtype, reader.skip(nbytes, what))


def _renamed(name: str) -> str:
    for old, new in _RENAMED:
        name = name.replace(old, new, 1)
    return name


def _read_aliases(reader: _Reader, variables: dict[str, StoredVariable]) -> None:
    """Enter the aliases, each with the scale of a quantised array; those of absent variables do nothing."""
    for _ in range(reader.count("aliases")):
        alias, name = reader.name("an alias"), reader.name("the variable of an alias")
        for part in ("", "_scale", "_zero"):
            variable = variables.get(name + part)
            if variable is not None and variables.setdefault(alias + part, variable) != variable:
                raise ambiguous(f"two variables or aliases are called {(alias + part)[:80]!r}")
