"""The components of a spaCy pipeline, as its config.cfg lists them."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json

_NAME = "config.cfg"
# Pipelines in use have configurations of 10 kB.
_LARGEST = 2**20


@dataclass(frozen=True)
class Component:
    """A component of a pipeline: its name, its factory (what kind of component it is), and its folder."""

    name: str
    factory: str
    folder: Path


def read_components(folder: Path) -> list[Component]:
    """The components with a factory, in the order in which they run; raises LoadError."""
    config = _parse(_text(folder / _NAME))
    pipeline = _value(config, "nlp", "pipeline")
    if not isinstance(pipeline, list) or not all(isinstance(name, str) for name in pipeline):
        raise LoadError(f"{_NAME} lists no components (pipeline in [nlp]), so it is not a spaCy pipeline.")
    if len(set(pipeline)) < len(pipeline):
        raise ambiguous(f"{_NAME} lists a component twice")
    found = []
    for name in pipeline:
        factory = _value(config, f"components.{name}", "factory")
        if isinstance(factory, str):
            if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
                raise LoadError(f"{_NAME} has a component {name[:80]!r}, which can't be a folder's name.")
            found.append(Component(name, factory, folder / name))
    return found


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise LoadError(f"{path.name} has {path.stat().st_size:,} bytes, expected at most {_LARGEST:,}.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"{path.name} is not UTF-8. Fetch it again.") from error


def _parse(text: str) -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    config.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case, as in spaCy
    try:
        config.read_string(text)
    except (configparser.DuplicateSectionError, configparser.DuplicateOptionError) as error:
        raise ambiguous(f"{_NAME} says something twice ({error})") from error
    except configparser.Error as error:
        raise LoadError(f"{_NAME} can't be read ({error}). Fetch it again.") from error
    return config


def _value(config: configparser.ConfigParser, section: str, key: str) -> Any:
    """A value, which is written as JSON, or None if there is none."""
    text = config.get(section, key, fallback=None)
    return None if text is None else parse_json(text, f"{key} in [{section[:80]}] of {_NAME}")
