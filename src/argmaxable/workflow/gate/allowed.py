"""Classes that may be unargmaxable: a file of labels and class numbers, one a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.core.result import Result
from argmaxable.core.select import classes_by_name
from argmaxable.core.verdict import Status


@dataclass(frozen=True)
class AllowList:
    """The entries of a file, as they stand there."""

    name: str
    entries: tuple[str, ...]

    @staticmethod
    def read(path: Path) -> AllowList:
        """Raises InputError. Empty lines are passed over, and lines that start with '# '."""
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InputError(f"--allow {path}: can't read it ({error.strerror or error}).") from error
        except UnicodeDecodeError as error:
            raise InputError(f"--allow {path} is not a text in UTF-8: {error}.") from error
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        return AllowList(str(path), tuple(line for line in lines if line.strip() and line[:2] != "# "))

    def of(self, result: Result) -> Allowed:
        """What the entries stand for: a label, as it is or as it is printed, else a class number."""
        named = classes_by_name(result.head.labels or ())
        open_ids = {v.class_id for v in result.verdicts if v.status is not Status.ARGMAXABLE}
        classes: set[int] = set()
        unused = []
        for entry in self.entries:
            meant = set(named.get(entry, _number(entry))) & open_ids
            classes |= meant
            if not meant:
                unused.append(entry)
        return Allowed(self.name, frozenset(classes), tuple(unused))


@dataclass(frozen=True)
class Allowed:
    """The classes that are allowed to fail, and entries that stand for no class that would."""

    name: str = ""
    classes: frozenset[int] = frozenset()
    unused: tuple[str, ...] = ()


def _number(entry: str) -> list[int]:
    digits = entry.strip()
    return [int(digits)] if digits.isascii() and digits.isdecimal() and len(digits) < 10 else []
