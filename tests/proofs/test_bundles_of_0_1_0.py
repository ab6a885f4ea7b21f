"""Bundles that 0.1.0 wrote (tests/fixtures): accepted whole, refused when changed, written the same way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from running import Command

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.proofs.bundle import read_all
from argmaxable.proofs.ceilings import CEILINGS
from argmaxable.proofs.claims_file import read_claims
from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter
from argmaxable.proofs.kind import ClaimKind
from argmaxable.proofs.ranks import RANKS
from argmaxable.proofs.verdicts import VERDICTS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles-0.1.0"
FOLDERS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
Kind = ClaimKind[Any, Any]
Lines = list[dict[str, Any]]
Arrays = dict[str, NDArray[Any]]

KINDS = (VERDICTS, CEILINGS, RANKS)  # those of 0.1.0
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
folders = pytest.mark.parametrize("name", FOLDERS)


def model_of(name: str) -> Path:
    return FIXTURES / f"{name.split('-')[0]}.npz"


def lines_of(kind: Kind, folder: Path) -> Lines:
    text = (folder / kind.files.lines).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def arrays_of(kind: Kind, folder: Path) -> Arrays:
    with np.load(folder / kind.files.arrays) as archive:
        return {key: archive[key] for key in archive.files}


# ---------------------------------------------------------------------- accepted


@folders
def test_every_claim_of_every_kind_is_proven(name: str) -> None:
    head = am.load_head(str(model_of(name)))
    bundles = read_all(FIXTURES / name)
    assert [bundle.kind for bundle in bundles] == list(KINDS)
    for bundle in bundles:
        assert am.recheck(bundle, head, rational=True) == am.Recheck(len(bundle.claims), 0, 0, ())


@folders
def test_the_command_says_so(name: str, command: Command) -> None:
    ran = command("check", FIXTURES / name, model_of(name))
    assert ran.code == 0
    assert ran.out.startswith("12 of 12 verdicts proven over the domain ")
    assert "12 of 12 ceilings proven at temperature 1.5." in ran.out
    assert "bounds on best ranks proven." in ran.out


def test_the_bundles_hold_every_kind_of_evidence() -> None:
    keys = {
        key for name in FOLDERS for kind in KINDS for line in lines_of(kind, FIXTURES / name) for key in line
    }
    evidence = {"own", "point32", "point64", "rival", "certificate", "tie", "margin", "nucleus", "proof"}
    assert evidence <= keys


# ---------------------------------------------------------------------- refused


def negate(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = -arrays[name]

    change.__name__ = name
    return change


@pytest.mark.parametrize(
    "change",
    [negate("points32"), negate("points64"), negate("certificate_weights")],
    ids=lambda c: c.__name__,
)
@kinds
@folders
def test_changed_arrays_are_refused(
    name: str, kind: Kind, change: Callable[[Arrays], None], tmp_path: Path
) -> None:
    arrays = arrays_of(kind, FIXTURES / name)
    if not arrays[change.__name__].size:
        return  # this bundle has no such evidence
    folder = shutil.copytree(FIXTURES / name, tmp_path / "changed")
    change(arrays)
    np.savez(folder / kind.files.arrays, **arrays)
    assert am.recheck(read_claims(kind, folder), am.load_head(str(model_of(name)))).failures


@folders
def test_a_changed_status_is_refused(name: str, tmp_path: Path, command: Command) -> None:
    folder = shutil.copytree(FIXTURES / name, tmp_path / "changed")
    verdicts = KINDS[0]
    lines = lines_of(verdicts, folder)
    other = {"argmaxable": "unargmaxable", "unargmaxable": "argmaxable"}
    lines[3]["status"] = other[lines[3]["status"]]
    (folder / verdicts.files.lines).write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = command("check", folder, model_of(name))
    assert ran.code == 1
    assert "class 3: verdict NOT PROVEN" in ran.out


@kinds
@folders
def test_a_head_with_another_weight_is_refused(name: str, kind: Kind) -> None:
    head = am.load_head(str(model_of(name)))
    weight = head.weight.copy()
    weight[4, 1] += 1
    with pytest.raises(am.BundleError, match="another head"):
        am.recheck(read_claims(kind, FIXTURES / name), am.Head(weight, head.bias))


# ---------------------------------------------------------------------- written alike


@kinds
@folders
def test_claims_read_are_written_again_as_they_were(name: str, kind: Kind) -> None:
    folder = FIXTURES / name
    reader, writer = EvidenceReader.of(folder / kind.files.arrays, kind.arrays), EvidenceWriter()
    for line in lines_of(kind, folder):
        again = kind.encode(kind.decode(line, reader), writer)
        for end in ("lower", "upper"):  # bounds of verdicts are rounded once more
            found, expected = again.pop(end), line.pop(end)
            assert found == expected or abs(found - expected) <= 2e-3 * abs(expected)
        assert again == line
    head = am.load_head(str(model_of(name)))
    written = writer.arrays(Facts.of(head), head.features)
    for key, array in arrays_of(kind, folder).items():
        if key != "centre":
            assert written[key].dtype == array.dtype
            np.testing.assert_array_equal(written[key], array)
