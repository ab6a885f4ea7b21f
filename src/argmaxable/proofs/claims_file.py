"""What else a bundle's folder may hold about its head: NAME.json says what it is about, NAME.jsonl has a line
for each class, NAME.npz the arrays they refer to (docs/proofs.md). Like the bundle, untrusted when read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.domain import Domain
from argmaxable.core.domains import domain_from_record
from argmaxable.core.errors import BundleError
from argmaxable.core.result import Facts
from argmaxable.core.verdict import Certificate
from argmaxable.proofs.bundle import (
    EVIDENCE_ARRAYS,
    MALFORMED,
    Evidence,
    certificates_of,
    evidence_arrays,
    read_arrays,
)

Arrays = dict[str, NDArray[Any]]
Folder = str | os.PathLike[str]
Claim = TypeVar("Claim")


@dataclass(frozen=True, eq=False)
class Contents:
    """A supplement as read: nothing in it has been checked but its form."""

    sha256: str
    domain: Domain
    about: dict[str, Any]
    arrays: Arrays
    certificates: list[Certificate]


@dataclass(frozen=True)
class Supplement:
    """One kind of supplement: its name, what to call it, and its format."""

    name: str
    title: str
    format: str

    def is_in(self, folder: Folder) -> bool:
        return self._path(folder, "json").exists()

    def write(
        self,
        folder: Folder,
        facts: Facts,
        domain: Domain,
        settings: dict[str, Any],
        lines: Iterable[dict[str, Any]],
        evidence: Evidence,
    ) -> None:
        """Write the lines and the evidence they refer to; raises BundleError."""
        about = {"format": self.format, "head": {"sha256": facts.sha256}, "domain": domain.as_record()}
        text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._path(folder, "jsonl").write_text(text, encoding="utf-8", errors="backslashreplace")
            arrays = evidence_arrays(evidence, facts)
            np.savez_compressed(self._path(folder, "npz"), allow_pickle=False, **arrays)
            record = json.dumps(about | settings, indent=2)
            self._path(folder, "json").write_text(record + "\n", encoding="utf-8")
        except OSError as error:
            raise BundleError(
                f"can't write the {self.title} to {folder}: {error.strerror or error}."
            ) from error

    def remove(self, folder: Folder) -> None:
        """Remove what an earlier run left in a folder: it need not be about the same head."""
        for suffix in ("json", "jsonl", "npz"):
            self._path(folder, suffix).unlink(missing_ok=True)

    def read(
        self, folder: Folder, claim: Callable[[dict[str, Any], Contents], Claim]
    ) -> tuple[Contents, tuple[Claim, ...]]:
        """The contents, and each line as `claim` understands it; raises BundleError."""
        path = self._path(folder, "json")
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            if about["format"] != self.format:
                raise BundleError(f"{path} is not of the format {self.format}.")
            arrays = read_arrays(self._path(folder, "npz"), EVIDENCE_ARRAYS)
            certificates = list(certificates_of(arrays, arrays["points32"].shape[1]))
            contents = Contents(
                about["head"]["sha256"], domain_from_record(about["domain"]), about, arrays, certificates
            )
            return contents, tuple(self._claims(folder, claim, contents))
        except BundleError:  # says it better
            raise
        except (OSError, *MALFORMED) as error:
            raise BundleError(f"{path} can't be read: {error!r}.") from error

    def _claims(
        self, folder: Folder, claim: Callable[[dict[str, Any], Contents], Claim], contents: Contents
    ) -> Iterable[Claim]:
        path = self._path(folder, "jsonl")
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield claim(json.loads(line), contents)
                except MALFORMED as error:
                    raise BundleError(f"{path}, line {number}: {error!r}.") from error

    def _path(self, folder: Folder, suffix: str) -> Path:
        return Path(folder) / f"{self.name}.{suffix}"
