"""Ceilings in a bundle's folder (docs/proofs.md): a line for each class. Untrusted when read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.ceiling import Ceiling, Ceilings, Mixture
from argmaxable.core.domain import Domain
from argmaxable.core.errors import BundleError
from argmaxable.proofs.bundle import Evidence, finite_number, stored_point, whole_number
from argmaxable.proofs.claims_file import Arrays, Contents, Folder, Supplement
from argmaxable.questions.ceiling.nucleus import Entry, Membership, Nucleus, never_enters

CEILINGS = Supplement("ceilings", "ceilings", "argmaxable-ceilings-1")
# Claims keep nine digits, rounded to the weaker side: far finer than the tolerance, and weak enough to be
# proven again on a machine that sums in another order.
_DOWN, _UP = Context(prec=9, rounding=ROUND_FLOOR), Context(prec=9, rounding=ROUND_CEILING)


@dataclass(frozen=True, eq=False)
class CeilingClaim:
    """One line: what is claimed about a class, and the evidence given for it."""

    ceiling: Ceiling
    entry: Entry | None
    entry_point: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class CeilingBundle:
    """Ceilings as read: nothing in them has been checked but their form."""

    sha256: str
    domain: Domain
    temperature: float
    top_p: float | None
    claims: tuple[CeilingClaim, ...]


def write_ceilings(found: Ceilings, folder: Folder, members: Nucleus | None = None) -> None:
    """Write the ceilings, and what they say about a nucleus, into a bundle's folder."""
    evidence = Evidence()
    entries = {} if members is None else {member.class_id: member for member in members.members}
    lines = [_line(ceiling, entries.get(ceiling.class_id), evidence) for ceiling in found.classes]
    if members is not None:
        _take_back(lines, found.facts.classes, members.top_p)
    settings = {
        "temperature": found.temperature.hex(),
        "top_p": None if members is None else members.top_p.hex(),
        "complete": found.is_complete,
    }
    CEILINGS.write(folder, found.facts, found.domain, settings, lines, evidence)


def _line(ceiling: Ceiling, member: Membership | None, evidence: Evidence) -> dict[str, Any]:
    line: dict[str, Any] = {
        "class": ceiling.class_id,
        "label": ceiling.label,
        "lower": float(_DOWN.create_decimal_from_float(ceiling.lower)),
        "upper": min(1.0, float(_UP.create_decimal_from_float(ceiling.upper))),
    }
    if ceiling.point is not None:
        name, place = evidence.point(ceiling.point)
        line[name] = place
    if ceiling.mixture is not None:
        line["certificate"] = evidence.once(ceiling.mixture.certificate, evidence.certificates)
        line["margin"] = ceiling.mixture.margin.hex()
    if member is not None:
        line["nucleus"] = member.entry.value
        if member.point is not None and not _same(member.point, ceiling.point):
            name, place = evidence.point(member.point)
            line[f"nucleus_{name}"] = place
    return line


def _take_back(lines: list[dict[str, Any]], classes: int, top_p: float) -> None:
    """A class may be kept out of the nucleus by its ceiling, but not by the digits that are claimed of it."""
    for line in lines:
        if line["nucleus"] == Entry.NO and not never_enters(line["upper"], classes, top_p):
            line["nucleus"] = Entry.UNKNOWN.value


def _same(point: NDArray[np.float64], other: NDArray[np.float64] | None) -> bool:
    return other is not None and bool((point == other).all())


def read_ceilings(folder: Folder) -> CeilingBundle:
    """Read the ceilings of a bundle; raises BundleError for anything that is none."""
    contents, claims = CEILINGS.read(folder, _claim)
    try:
        temperature, top_p = (contents.about[name] for name in ("temperature", "top_p"))
        return CeilingBundle(
            sha256=contents.sha256,
            domain=contents.domain,
            temperature=_positive(float.fromhex(temperature)),
            top_p=None if top_p is None else _positive(float.fromhex(top_p)),
            claims=claims,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BundleError(f"the ceilings in {folder} can't be read: {error!r}.") from error


def _positive(value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{value!r} is not a finite number above 0")
    return value


def _claim(line: dict[str, Any], contents: Contents) -> CeilingClaim:
    arrays, certificates = contents.arrays, contents.certificates
    mixture = None
    if "certificate" in line:
        chosen = certificates[whole_number(line["certificate"], 0, len(certificates))]
        margin = float.fromhex(line["margin"])
        mixture = Mixture(chosen, finite_number(margin, 0.0))
    point = _point(line, arrays, "")
    entry_point = _point(line, arrays, "nucleus_")
    ceiling = Ceiling(
        class_id=whole_number(line["class"], 0, 2**62),
        label=str(line["label"]),
        lower=finite_number(line["lower"], 0.0),
        upper=finite_number(line["upper"], 1.0),
        point=point,
        mixture=mixture,
    )
    entry = Entry(line["nucleus"]) if "nucleus" in line else None
    return CeilingClaim(ceiling, entry, point if entry_point is None else entry_point)


def _point(line: dict[str, Any], arrays: Arrays, prefix: str) -> NDArray[np.float64] | None:
    for name in ("point32", "point64"):
        if prefix + name in line:
            return stored_point(arrays, name, line[prefix + name])
    return None
