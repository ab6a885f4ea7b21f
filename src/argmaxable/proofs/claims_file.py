"""The files of claims, the same for every kind: a JSON header that names head, domain and the other two files
by their SHA-256, a line for each class, and the arrays they refer to (docs/proofs.md). Untrusted when read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.domains import domain_from_record
from argmaxable.core.errors import BundleError, DomainError
from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter
from argmaxable.proofs.kind import Bundle, C, ClaimKind, S
from argmaxable.proofs.values import parsed_json

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Facts

Folder = str | os.PathLike[str]

# What a header or a line raises that is not JSON, or not of the form expected.
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)


def are_in(kind: ClaimKind[Any, Any], folder: Folder) -> bool:
    """Whether a folder has claims of this kind."""
    return (Path(folder) / kind.files.header).exists()


def remove_claims(kind: ClaimKind[Any, Any], folder: Folder) -> None:
    """Remove claims that an earlier run left in a folder: they need not be about the same head."""
    for name in (kind.files.header, kind.files.lines, kind.files.arrays):
        (Path(folder) / name).unlink(missing_ok=True)


# ---------------------------------------------------------------------- writing


def write_claims(
    kind: ClaimKind[C, S],
    folder: Folder,
    claims: Iterable[C],
    *,
    facts: Facts,
    domain: Domain,
    header: dict[str, Any],
    centre: Vector | None = None,
) -> None:
    """Write the claims into the folder, creating it; claims of the same kind are replaced.

    `header` is what it says besides head and domain. Raises BundleError.
    """
    folder = Path(folder)
    evidence = EvidenceWriter()
    lines = [_json(kind.encode(claim, evidence), separators=(",", ":")) for claim in claims]
    about = {
        "format": kind.format,
        "model": facts.name,
        "head": {
            "sha256": facts.sha256,
            "classes": facts.classes,
            "features": facts.features,
            "labels_sha256": facts.labels_sha256 or None,
        },
        "domain": domain.as_record(),
    }
    arrays = evidence.arrays(facts, domain.point_size(facts.features))
    if centre is not None:
        arrays["centre"] = centre.astype(np.float32)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_text(folder / kind.files.lines, "".join(line + "\n" for line in lines))
        stored = {name: arrays[name] for name in kind.arrays}
        np.savez_compressed(folder / kind.files.arrays, allow_pickle=False, **stored)
        files = {name: _digest(folder / name) for name in (kind.files.lines, kind.files.arrays)}
        _write_text(folder / kind.files.header, _json(about | header | {"files": files}, indent=2) + "\n")
    except OSError as error:
        raise BundleError(f"can't write the {kind.plural} to {folder}: {error.strerror or error}.") from error


def _json(record: dict[str, Any], **layout: Any) -> str:
    return json.dumps(record, ensure_ascii=False, **layout)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_text(path: Path, text: str) -> None:
    # Backslashes keep the lone surrogates that a label may hold, as JSON's own escapes.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


# ---------------------------------------------------------------------- reading


def read_claims(kind: ClaimKind[C, S], folder: Folder) -> Bundle[C, S]:
    """Read the claims of one kind; raises BundleError for anything else."""
    folder = Path(folder)
    header = _read_header(kind, folder)
    try:
        domain = domain_from_record(header["domain"])
        settings = kind.read_settings(header)
    except DomainError as error:
        raise BundleError(f"{folder / kind.files.header}: {error}") from error
    except _MALFORMED as error:
        raise BundleError(f"{folder / kind.files.header}: {error!r}.") from error
    evidence = EvidenceReader.of(folder / kind.files.arrays, kind.arrays, header["head"].get("features"))
    text = _read_text(folder / kind.files.lines)
    claims = tuple(_read_lines(kind, folder / kind.files.lines, text, evidence))
    digests = {
        kind.files.lines: hashlib.sha256(text).hexdigest(),
        kind.files.arrays: evidence.sha256,
    }
    return Bundle(kind, header, domain, settings, evidence.centre, claims, digests)


def _read_header(kind: ClaimKind[C, S], folder: Path) -> dict[str, Any]:
    path = folder / kind.files.header
    try:
        header = parsed_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(
            f"there is no proof bundle in {folder}: can't read {path.name} ({error.strerror})."
        ) from error
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(header, dict) or header.get("format") not in (kind.format, kind.earlier_format):
        raise BundleError(f"{path} is not of the format {kind.format}, nor of {kind.earlier_format}.")
    if not isinstance(header.get("domain"), dict) or not isinstance(header.get("head"), dict):
        raise BundleError(f"{path} does not name a domain and a head.")
    return header


def _read_text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error}.") from error


def _read_lines(kind: ClaimKind[C, S], path: Path, text: bytes, evidence: EvidenceReader) -> Iterator[C]:
    for number, line in enumerate(io.BytesIO(text), 1):
        try:
            yield kind.decode(parsed_json(line.decode("utf-8")), evidence)
        except _MALFORMED as error:
            raise BundleError(f"{path}, line {number}: {error!r}.") from error
