"""Notices: findings about one model, in the words that every format shares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Level(StrEnum):
    """How much a finding matters: it fails, should be looked at, is worth knowing, or is accepted."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "notice"
    ACCEPTED = "accepted"


@dataclass(frozen=True)
class Notice:
    """A finding. `rule` is a short name for findings of its kind, `key` tells it from others of that rule
    in the same model. `is_new` is None without a baseline; `why_accepted` is for accepted ones."""

    rule: str
    key: str
    level: Level
    title: str
    text: str
    is_new: bool | None = None
    why_accepted: str = ""


@dataclass(frozen=True)
class ModelNotices:
    """All findings about a model; `passed` says in words what was found in order, with `seconds` spent."""

    model: str
    file: str | None
    notices: tuple[Notice, ...]
    passed: str
    seconds: float = 0.0


def shown_file(model: str) -> str | None:
    """The path of a model's file from the working directory, None for what is not a file or not below it.

    Paths outside would tell about the machine, and no viewer could open them.
    """
    path, here = Path(model).resolve(), Path.cwd().resolve()
    return path.relative_to(here).as_posix() if path.exists() and path.is_relative_to(here) else None
