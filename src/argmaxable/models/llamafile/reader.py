"""Heads in llamafiles: the GGUF inside is read where it lies.

A llamafile is a program for several systems with a zip archive at its end, whose directory is believed.
Models are members that are not compressed, so that they can be mapped into memory. Of several (a model that
sees has a second one for images) the arguments in the member `.args` say which is run.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.gguf.header import FileRegion, read_header
from argmaxable.models.gguf.reader import WANTED, find_in
from argmaxable.models.zip_archive import BROKEN_ZIP

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

_ARGUMENTS, _LONGEST_ARGUMENTS = ".args", 2**16
_MODEL_OPTIONS = ("-m", "--model")
_LENGTHS = struct.Struct("<26x2H")
_NAMES_SHOWN = 6


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of the model inside a llamafile. Raises LoadError."""
    try:
        with zipfile.ZipFile(path) as archive:
            region = _region(path, archive, _model(archive))
    except LoadError:  # is a ValueError
        raise
    except (*BROKEN_ZIP, struct.error) as error:
        raise LoadError(
            f"is not a readable llamafile: {error}. It may be cut short or damaged; fetch it again."
        ) from error
    return find_in(read_header(path, WANTED, region), options)


def _model(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    models = [each for each in archive.infolist() if each.filename.lower().endswith(".gguf")]
    repeated = twice(each.filename for each in models)
    if repeated is not None:
        raise ambiguous(f"two members of the archive are called {repeated[:80]!r}")
    if not models:
        raise LoadError(
            "is a llamafile without a model: it runs the GGUF that it is given with -m. Pass that file."
        )
    if len(models) == 1:
        return models[0]
    named = _named_model(archive)
    chosen = [each for each in models if each.filename == named]
    if not chosen:
        names = ", ".join(each.filename[:80] for each in models[:_NAMES_SHOWN])
        raise LoadError(
            f"holds {len(models)} models ({names}), and its {_ARGUMENTS} does not say which is run. Unpack "
            "one with unzip, and pass that."
        )
    return chosen[0]


def _named_model(archive: zipfile.ZipFile) -> str | None:
    """The model that the arguments name, which stand one to a line; None where they name none, or two."""
    entry = next((each for each in archive.infolist() if each.filename == _ARGUMENTS), None)
    if entry is None or entry.file_size > _LONGEST_ARGUMENTS:
        return None
    words = archive.read(entry).decode(errors="replace").split("\n")
    named = [words[place + 1] for place, word in enumerate(words[:-1]) if word in _MODEL_OPTIONS]
    return named[0].removeprefix("/zip/") if len(named) == 1 else None


def _region(path: Path, archive: zipfile.ZipFile, model: zipfile.ZipInfo) -> FileRegion:
    if model.compress_type != zipfile.ZIP_STORED:
        raise LoadError(f"has its model {model.filename[:80]!r} compressed. Unpack it, and pass that file.")
    archive.open(model).close()  # raises BadZipFile unless it begins where the directory says
    with path.open("rb") as file:
        file.seek(model.header_offset)
        start = model.header_offset + _LENGTHS.size + sum(_LENGTHS.unpack(file.read(_LENGTHS.size)))
    end = start + model.file_size
    if end > path.stat().st_size or model.compress_size != model.file_size:
        raise zipfile.BadZipFile(f"its model takes {model.file_size} bytes, which are not there")
    return FileRegion(start, end)
