"""Proof bundles: a folder with verdicts, or sets of labels, and their evidence, for anyone to check
(docs/proofs.md).

Claims of other kinds about the same head may be in the folder too.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from argmaxable.core.errors import BundleError
from argmaxable.core.result import Record
from argmaxable.core.verdict import Verdict
from argmaxable.core.version import VERSION
from argmaxable.proofs.claims_file import Folder, are_in, read_claims, remove_claims, write_claims
from argmaxable.proofs.kind import Bundle
from argmaxable.proofs.kinds import KINDS
from argmaxable.proofs.verdicts import VERDICTS


def write_bundle(record: Record, folder: Folder) -> None:
    """Write a new bundle into the folder, creating it; claims of an earlier bundle, of any kind, are removed.

    Raises BundleError when that fails.
    """
    header = {
        "complete": record.is_complete,
        "argmaxable": len(record.argmaxable),
        "unargmaxable": len(record.unargmaxable),
        "tied": len(record.tied),
        "undecided": len(record.undecided),
        "versions": {"argmaxable": VERSION, "numpy": np.__version__, "python": platform.python_version()},
    }
    write_claims(
        VERDICTS, folder, record.verdicts,
        facts=record.facts, domain=record.domain, header=header, centre=record.centre,
    )  # fmt: skip
    for kind in KINDS:
        if kind is not VERDICTS:
            remove_claims(kind, folder)


def read_bundle(folder: Folder) -> Bundle[Verdict, None]:
    """Read the verdicts of a bundle; raises BundleError for anything that is not one."""
    return read_claims(VERDICTS, folder)


def read_all(folder: Folder) -> tuple[Bundle[Any, Any], ...]:
    """Read the claims of every kind in a bundle's folder, its verdicts first; raises BundleError where none
    makes it a bundle, and where not all are over the same domain."""
    found = [kind for kind in KINDS if are_in(kind, folder)]
    if not any(kind.stands_alone for kind in found):
        found = [VERDICTS]  # what is missing, as an error will say
    bundles = tuple(read_claims(kind, folder) for kind in found)
    for bundle in bundles:
        if bundle.domain != bundles[0].domain:
            raise BundleError(
                f"the {bundle.kind.plural} in {folder} are about the domain {bundle.domain}, its "
                f"{bundles[0].kind.plural} about {bundles[0].domain}. Write them into folders of their own."
            )
    return bundles
