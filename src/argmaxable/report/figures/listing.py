"""Files that list runs for figures: a run a line, in groups that are drawn side by side.

# comment
[PP-OCR]                  a group; runs before the first one have none
3                         a run's number, or a model's name for its newest run
rec.onnx = PP-OCRv5       what follows = is written in figures instead of the model's name
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import InputError

_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Listed:
    """A line: the run as the user names it, its group, and the name to write (None: the model's)."""

    run: str
    group: str
    name: str | None


def is_database(path: Path) -> bool:
    """Whether the file is a database of runs and no list; raises InputError when it can't be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror or error}.") from error


def read_listing(path: Path) -> list[Listed]:
    """The lines of a list of runs; raises InputError when it is none."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is neither a list of runs (UTF-8 text) nor an SQLite database.") from None
    listed, group = [], ""
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
            continue
        run, separator, name = (part.strip() for part in f" {line} ".partition(" = "))
        if not run or (separator and not name):
            raise InputError(f"{path}, line {number}: expected RUN or RUN = NAME, found '{line}'.")
        listed.append(Listed(run, group, name or None))
    if not listed:
        raise InputError(f"{path} lists no runs: write a run's number or a model's name on each line.")
    return listed
