"""All kinds of domains: as the command line writes them, as JSON, and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argmaxable.core.balls import Ball, LayerNorm, RMSNorm
from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.errors import DomainError
from argmaxable.core.hull import Hull
from argmaxable.core.reach import Reach

KINDS: dict[str, type[Domain]] = {
    domain.kind: domain for domain in (Everywhere, Box, Ball, RMSNorm, LayerNorm, Hull, Reach)
}
# The tightest domain that a model's file itself proves.
AUTO = "auto"
_FILE_FORMAT = "argmaxable domain 1"


def parse_domain(text: str) -> Domain:
    """The domain a user wrote: everywhere, box:100, box:LO:HI, ball:R, hull:FILE.npy for the mixtures of
    saved feature vectors, reach:FILE.npz for what one user can reach, or file:PATH for a domain that a file
    holds."""
    return _parsed(text, more="")


def parse_domain_or_auto(text: str) -> Domain | None:
    """The domain a user wrote about a model; None for `auto`, which is up to the model's file."""
    return None if text == AUTO else _parsed(text, more=f"{AUTO} (what the model's file proves), ")


def _parsed(text: str, more: str) -> Domain:
    """The domain; the error lists `more` beside the usual ways to write one."""
    kind, _, rest = text.strip().partition(":")
    if kind == "file":
        return read_domain(rest)
    if kind == "hull" and rest:
        return Hull.read(rest)
    if kind == "reach" and rest:
        return Reach.read(rest)
    if kind == "everywhere" and ":" not in text:
        return Everywhere()
    try:
        values = [float(number) for number in rest.split(":")]
    except ValueError:
        values = []
    if kind == "box" and len(values) == 1:
        if not values[0] > 0:
            raise DomainError(f"'{text}': a box ±R needs R above 0.")
        return Box(-values[0], values[0])
    if kind == "box" and len(values) == 2:
        return Box(values[0], values[1])
    if kind == "ball" and len(values) == 1:
        return Ball(values[0])
    raise DomainError(
        f"'{text}' is not a domain. Write {more}everywhere, box:100 (±100), box:0:inf (lo:hi), ball:10, "
        "hull:FILE.npy, reach:FILE.npz or file:PATH."
    )


def write_domain(path: str | Path, domain: Domain, about: Mapping[str, Any] | None = None) -> None:
    """Write a domain file: JSON with the domain's record, and whatever else is worth knowing about it."""
    content = {"format": _FILE_FORMAT, "domain": domain.as_record(), "about": dict(about or {})}
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_domain(path: str | Path) -> Domain:
    """The domain of a file that `write_domain` wrote. Raises DomainError on anything else."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DomainError(f"domain file {path} can't be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise DomainError(f"domain file {path} is not JSON ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != _FILE_FORMAT:
        raise DomainError(f'{path} is not a domain file: its "format" should be "{_FILE_FORMAT}".')
    return domain_from_record(content.get("domain"))


def domain_from_record(record: Any) -> Domain:
    """Inverse of `Domain.as_record`; raises DomainError on anything else."""
    try:
        kind = record["kind"]
        if kind in KINDS:
            return KINDS[kind].from_record(record)
    except DomainError:  # says it better
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DomainError(f"unreadable domain record: {error!r}") from error
    raise DomainError(f"unknown kind of domain: {kind!r}.")
