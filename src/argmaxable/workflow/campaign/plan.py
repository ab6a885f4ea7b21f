"""A campaign: a list of models to verify, read from a TOML file (docs/campaigns.md).

Options may stand in [defaults], in a [[family]] and at a [[family.model]], where the nearest counts. Every
mistake is reported with the file, the entry and the key.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argmaxable.core.domains import AUTO, parse_domain_or_auto
from argmaxable.core.errors import InputError
from argmaxable.core.select import SCRIPTS, Selection
from argmaxable.core.verdict import Algorithm
from argmaxable.models.fetch.pypi import parse as parse_packaged
from argmaxable.models.fetch.pypi import without_settings
from argmaxable.models.model_ref import ModelRef
from argmaxable.workflow.verify_model import Request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Each option with the type of its value. All but `cites` are those of `argmaxable verify`.
_OPTIONS: dict[str, type] = {
    "task": str,
    "cites": str,
    "domain": str,
    "only": list[int],
    "tokens": list[str],
    "script": str,
    "skip-special": bool,
    "skip-padding": bool,
    "method": str,
    "patience": int,
    "seed": int,
    "tensor": str,
    "bias-tensor": str,
    "transpose": bool,
    "labels": str,
    "revision": str,
    "subfolder": str,
}
_FAMILY_KEYS = {"name": str, "about": str, "model": list, **_OPTIONS}
_MODEL_KEYS = {"name": str, "model": str, "file": str, "inferred": bool, "note": str, **_OPTIONS}
_FILE_KEYS = {"title": str, "about": str, "defaults": dict, "family": list}
_TYPE_NAMES: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list[int]: "a list of whole numbers",
    list[str]: "a list of texts",
    list: "a list of tables, each after its own [[…]]",
    dict: "a table",
}

Options = dict[str, Any]


@dataclass(frozen=True)
class CampaignModel:
    """A model to verify. `source` is what the file calls it: a hub id, a package, a relative path.

    `cites` says where the model is known from, `is_inferred` that its name or place was concluded from
    that rather than read there.
    """

    request: Request
    source: str
    cites: str = ""
    is_inferred: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        return self.request.ref.name or self.source


@dataclass(frozen=True)
class CampaignFamily:
    """Models that share a line in a summary."""

    name: str
    about: str
    entries: tuple[CampaignModel, ...]


@dataclass(frozen=True)
class Campaign:
    """What to verify, in order."""

    title: str
    about: str
    families: tuple[CampaignFamily, ...]

    @property
    def entries(self) -> tuple[CampaignModel, ...]:
        return tuple(entry for family in self.families for entry in family.entries)


def read_campaign(path: Path, *, models: Path | None = None) -> Campaign:
    """The campaign in a TOML file. Paths of models and labels in it start at the folder `models`, or else
    at the file's own. Raises InputError that names the file, the entry and the key.
    """
    content = _content(path)
    _require_keys(content, _FILE_KEYS, f"{path}")
    defaults = content.get("defaults", {})
    _require_keys(defaults, _OPTIONS, f"{path}: [defaults]")
    families = tuple(
        _family(table, defaults, path.parent if models is None else models, f"{path}: family {number}")
        for number, table in enumerate(_tables(content.get("family"), f"{path}: [[family]]"), start=1)
    )
    campaign = Campaign(content.get("title", path.stem), content.get("about", "").strip(), families)
    _require_distinct([family.name for family in families], f"{path}: [[family]]")
    _require_distinct([entry.name for entry in campaign.entries], f"{path}: [[family.model]]")
    return campaign


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: can't be read ({error.strerror or error}). Pass a campaign file."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not a TOML file ({error}).") from error


def _tables(found: Any, where: str) -> list[Options]:
    if not found or not all(isinstance(table, dict) for table in found):
        raise InputError(f"{where}: expected at least one such table.")
    return list(found)


def _family(table: Options, defaults: Options, models: Path, where: str) -> CampaignFamily:
    _require_keys(table, _FAMILY_KEYS, where)
    name = table.get("name")
    if not name:
        raise InputError(f"{where}: key 'name' is missing.")
    where = f"{where} ({name})"
    shared = {**defaults, **{key: value for key, value in table.items() if key in _OPTIONS}}
    tables = _tables(table.get("model"), f"{where}: [[family.model]]")
    entries = (
        _entry(model, shared, name, models, f"{where}, model {number}")
        for number, model in enumerate(tables, start=1)
    )
    return CampaignFamily(name, table.get("about", "").strip(), tuple(entries))


def _entry(table: Options, shared: Options, family: str, models: Path, where: str) -> CampaignModel:
    _require_keys(table, _MODEL_KEYS, where)
    options = {**shared, **{key: value for key, value in table.items() if key in _OPTIONS}}
    if ("model" in table) == ("file" in table):
        raise InputError(f"{where}: expected either 'model' (a hub id or a package) or 'file' (a path).")
    source = table.get("model") or table.get("file", "")
    where = f"{where} ({table.get('name', source)})"
    _require_sense(options, where)
    for key, place in (("model", table.get("model", "")), ("labels", options.get("labels", ""))):
        _require_pinned(place, f"{where}: key '{key}'")
    return CampaignModel(
        request=_request(table, options, family, models),
        source=without_settings(source),
        cites=options.get("cites", ""),
        is_inferred=table.get("inferred", False),
        note=table.get("note", ""),
    )


def _request(table: Options, options: Options, family: str, models: Path) -> Request:
    return Request(
        ref=_ref(table, options, models),
        domain=options.get("domain", Request.domain),
        classes=Selection(
            only=None if "only" not in options else tuple(options["only"]),
            tokens=tuple(options.get("tokens", ())),
            script=options.get("script"),
            skip_special=options.get("skip-special", False),
            skip_padding=options.get("skip-padding", False),
        ),
        method=Algorithm(options.get("method", Algorithm.AUTO)),
        patience=options.get("patience"),
        seed=options.get("seed", 0),
        task=options.get("task", ""),
        family=family,
    )


def _ref(table: Options, options: Options, models: Path) -> ModelRef:
    labels = options.get("labels")
    return ModelRef(
        model=table["model"] if "model" in table else str(models / table["file"]),
        tensor=options.get("tensor"),
        bias_tensor=options.get("bias-tensor"),
        transpose=options.get("transpose", False),
        labels=labels if labels is None or labels.startswith("pypi:") else models / labels,
        revision=options.get("revision"),
        subfolder=options.get("subfolder"),
        name=table.get("name"),
    )


def _require_keys(table: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{where}: is {table!r}, expected a table.")
    for key, value in table.items():
        if key not in known:
            expected = ", ".join(sorted(known))
            raise InputError(f"{where}: key '{key}' is not known; expected one of {expected}.")
        if not _is_of(value, known[key]):
            raise InputError(f"{where}: key '{key}' is {value!r}, expected {_TYPE_NAMES[known[key]]}.")


def _is_of(value: Any, kind: Any) -> bool:
    if kind in (list[int], list[str]):
        member = int if kind == list[int] else str
        return isinstance(value, list) and all(type(each) is member for each in value)
    # type(), since true and false are whole numbers to isinstance.
    return type(value) is kind


def _require_sense(options: Options, where: str) -> None:
    """Complain now, rather than after hours of other models."""
    try:
        parse_domain_or_auto(options.get("domain", AUTO))
    except InputError as error:
        raise InputError(f"{where}: key 'domain': {error}") from error
    if options.get("script", "latin").lower() not in SCRIPTS:
        expected = ", ".join(sorted(SCRIPTS))
        raise InputError(
            f"{where}: key 'script' is {options['script']!r}, which is not known; expected one of {expected}."
        )
    if options.get("method", Algorithm.AUTO) not in tuple(Algorithm):
        raise InputError(
            f"{where}: key 'method' is {options['method']!r}, expected one of {', '.join(Algorithm)}."
        )


def _require_pinned(place: str, where: str) -> None:
    """A campaign is to be repeatable, so a file from an index has to be one certain file."""
    if not place.startswith("pypi:"):
        return
    try:
        parts = parse_packaged(place)
    except InputError as error:
        raise InputError(f"{where}: {place} {error}") from error
    for part in parts:
        if part.sha256 is None:
            raise InputError(f"{where}: {part} is not pinned; add #sha256=… of the wheel.")


def _require_distinct(names: list[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: the name '{name}' is used twice. Give each its own name.")
        seen.add(name)
