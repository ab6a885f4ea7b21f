"""Ceilings in a bundle: what is written is proven when read, forgeries and broken files are refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convex_truth import DOMAINS, random_head

import argmaxable as am
from argmaxable.proofs.ceilings import CEILINGS, write_ceilings
from argmaxable.proofs.claims_file import read_claims, remove_claims

FILES = ("ceilings.json", "ceilings.jsonl", "ceilings.npz")
Lines = list[dict[str, Any]]


def written(folder: Path, domain: am.Domain, *, seed: int = 0, top_p: float | None = 0.3) -> am.Head:
    head = random_head(seed)
    found = am.ceilings(head, domain, temperature=1.5)
    write_ceilings(found, folder, None if top_p is None else am.nucleus(head, found, top_p))
    return head


def failures(folder: Path, head: am.Head) -> dict[int, str]:
    return {failure.key: failure.why for failure in am.recheck(read_claims(CEILINGS, folder), head).failures}


def rewrite(folder: Path, change: Callable[[Lines], None]) -> None:
    path = folder / "ceilings.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(lines)
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")


def rewrite_about(folder: Path, **changes: Any) -> None:
    path = folder / "ceilings.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def rewrite_arrays(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with np.load(folder / "ceilings.npz") as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(folder / "ceilings.npz", **arrays)


# ---------------------------------------------------------------------- what holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_what_was_written_is_proven(tmp_path: Path, domain: am.Domain, seed: int) -> None:
    head = written(tmp_path, domain, seed=seed)
    found = am.recheck(read_claims(CEILINGS, tmp_path), head)
    assert found.failures == ()
    assert (found.proven, found.missing) == (head.classes, 0)


def test_the_claims_are_weaker_than_what_was_found_but_hardly(tmp_path: Path) -> None:
    head, domain = random_head(0), am.Ball(2.0)
    found = am.ceilings(head, domain)
    write_ceilings(found, tmp_path)
    for claim, ceiling in zip(read_claims(CEILINGS, tmp_path).claims, found.classes, strict=True):
        assert ceiling.lower - 1e-8 <= claim.ceiling.lower <= ceiling.lower
        assert ceiling.upper <= claim.ceiling.upper <= ceiling.upper + 1e-8


def test_the_only_class_is_proven_without_evidence(tmp_path: Path) -> None:
    head = am.Head(np.ones((1, 3)))
    write_ceilings(am.ceilings(head), tmp_path)
    assert failures(tmp_path, head) == {}


def test_a_part_of_the_classes_is_proven_and_the_rest_missing(tmp_path: Path) -> None:
    head = random_head(0)
    write_ceilings(am.ceilings(head, only=[1, 3]), tmp_path)
    found = am.recheck(read_claims(CEILINGS, tmp_path), head)
    assert (found.proven, found.missing, found.failures) == (2, head.classes - 2, ())


def test_removed_ceilings_are_gone(tmp_path: Path) -> None:
    written(tmp_path, am.Ball(2.0))
    remove_claims(CEILINGS, tmp_path)
    remove_claims(CEILINGS, tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- forgeries


def _raise_lower(line: dict[str, Any]) -> None:
    line["lower"] = min(line["lower"] + 1e-4, line["upper"])
    line["upper"] = 1.0


def _lower_upper(line: dict[str, Any]) -> None:
    line["upper"] = line["upper"] * (1 - 1e-4)
    line["lower"] = 0.0


def _swap_ends(line: dict[str, Any]) -> None:
    line["lower"], line["upper"] = 0.9, 0.1


def _above_one(line: dict[str, Any]) -> None:
    line["upper"] = 1.5


def _drop_point(line: dict[str, Any]) -> None:
    line.pop("point64", None)
    line.pop("point32", None)


def _other_class(line: dict[str, Any]) -> None:
    line["class"] = 77


FORGERIES = [_raise_lower, _lower_upper, _swap_ends, _above_one, _drop_point, _other_class]


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__[1:])
@pytest.mark.parametrize("name", ["box", "ball", "LayerNorm", "everywhere", "ReLU"])
def test_a_forged_line_is_refused(tmp_path: Path, name: str, forge: Callable[[dict[str, Any]], None]) -> None:
    head = written(tmp_path, DOMAINS[name], top_p=None)
    line_of: dict[str, int] = {}

    def change(lines: Lines) -> None:
        line_of["forged"] = next(i for i, line in enumerate(lines) if line["upper"] < 0.9)
        forge(lines[line_of["forged"]])
        line_of["class"] = lines[line_of["forged"]]["class"]

    rewrite(tmp_path, change)
    assert set(failures(tmp_path, head)) == {line_of["class"]}


def test_a_class_claimed_twice_is_refused(tmp_path: Path) -> None:
    head = written(tmp_path, am.Ball(2.0))
    rewrite(tmp_path, lambda lines: lines.append(lines[0]))
    assert failures(tmp_path, head) == {0: "the class is claimed twice"}


def test_points_outside_the_domain_are_refused(tmp_path: Path) -> None:
    head = written(tmp_path, am.Ball(2.0), top_p=None)
    rewrite_about(tmp_path, domain=am.Ball(1.0).as_record())
    assert len(failures(tmp_path, head)) == head.classes


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_points_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    head = written(tmp_path, am.Ball(2.0), top_p=None)
    rewrite_arrays(tmp_path, lambda arrays: arrays["points64"].fill(value))
    rewrite_arrays(tmp_path, lambda arrays: arrays["points32"].fill(np.float32(np.inf)))
    assert len(failures(tmp_path, head)) == head.classes


def test_another_temperature_refutes_the_ceilings(tmp_path: Path) -> None:
    head = written(tmp_path, am.Ball(2.0), top_p=None)
    rewrite_about(tmp_path, temperature=(0.5).hex())
    assert failures(tmp_path, head)


def _on_itself(arrays: dict[str, Any]) -> None:
    arrays["certificate_classes"][:] = 0


def _negative(arrays: dict[str, Any]) -> None:
    arrays["certificate_weights"][:] *= -1


def _uneven(arrays: dict[str, Any]) -> None:
    arrays["certificate_weights"][0] *= 1.001
    arrays["certificate_basis"][:] = 0


@pytest.mark.parametrize("forge", [_on_itself, _negative, _uneven], ids=lambda forge: forge.__name__[1:])
def test_a_forged_mixture_is_refused(tmp_path: Path, forge: Callable[[dict[str, Any]], None]) -> None:
    head = am.Head([[0.0], [-1.0], [1.0]], [1.0, 0.0, 0.0])
    write_ceilings(am.ceilings(head, am.Everywhere()), tmp_path)
    assert failures(tmp_path, head) == {}
    rewrite_arrays(tmp_path, forge)
    assert set(failures(tmp_path, head)) == {0}


def test_a_mixture_with_too_small_a_margin_is_refused(tmp_path: Path) -> None:
    head = am.Head([[0.0], [-1.0], [1.0]], [1.0, 0.0, 0.0])
    write_ceilings(am.ceilings(head, am.Everywhere()), tmp_path)
    rewrite(tmp_path, lambda lines: lines[0].update(margin=(0.999).hex()))
    assert set(failures(tmp_path, head)) == {0}


def test_a_forged_entry_into_the_nucleus_is_refused(tmp_path: Path) -> None:
    rows = random_head(2).rows(slice(None)) * 0.1
    head = am.Head(rows, [-20.0] + [0.0] * 8)
    found = am.ceilings(head, am.Ball(1.0))
    write_ceilings(found, tmp_path, am.nucleus(head, found, 0.9))
    assert failures(tmp_path, head) == {}

    def swap(lines: Lines) -> None:
        lines[0]["nucleus"], lines[1]["nucleus"] = "yes", "no"

    rewrite(tmp_path, swap)
    assert set(failures(tmp_path, head)) == {0, 1}


def test_a_no_that_hangs_on_digits_that_are_not_claimed_is_taken_back(tmp_path: Path) -> None:
    head, upper = random_head(0), 0.05 + 1e-12
    found = am.ceilings(head, am.Ball(2.0))
    ceiling = dataclasses.replace(found.classes[0], lower=0.0, upper=upper)
    member = am.Membership(0, "0", am.Entry.NO, 1.0, None)
    members = am.Nucleus(top_p=float(1 - 9 * Fraction(upper)) - 1e-16, members=(member,))
    write_ceilings(dataclasses.replace(found, classes=(ceiling,)), tmp_path, members)
    assert read_claims(CEILINGS, tmp_path).claims[0].entry is am.Entry.UNKNOWN


def test_an_answer_about_the_nucleus_needs_its_mass(tmp_path: Path) -> None:
    head = written(tmp_path, am.Ball(2.0))
    rewrite_about(tmp_path, top_p=None)
    assert len(failures(tmp_path, head)) == head.classes


# ---------------------------------------------------------------------- files


def test_ceilings_of_another_head_are_refused(tmp_path: Path) -> None:
    written(tmp_path, am.Ball(2.0))
    with pytest.raises(am.BundleError, match="another head"):
        am.recheck(read_claims(CEILINGS, tmp_path), random_head(1))


def test_a_domain_of_another_size_is_refused(tmp_path: Path) -> None:
    head = written(tmp_path, am.Ball(2.0))
    rewrite_about(tmp_path, domain=am.Box(np.zeros(5), np.ones(5)).as_record())
    with pytest.raises(am.BundleError, match="does not fit"):
        am.recheck(read_claims(CEILINGS, tmp_path), head)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"{", b"[]\n", b'{"format": 3}\n', b"\xff\xfe\x00", b"PK\x03\x04"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    written(tmp_path, am.Ball(2.0))
    (tmp_path / name).write_bytes(content)
    if (name, content) == ("ceilings.jsonl", b""):
        assert read_claims(CEILINGS, tmp_path).claims == ()  # nothing is claimed
        return
    with pytest.raises(am.BundleError, match="ceilings"):
        read_claims(CEILINGS, tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, am.Ball(2.0))
    (tmp_path / name).unlink()
    with pytest.raises(am.BundleError):
        read_claims(CEILINGS, tmp_path)


@pytest.mark.parametrize("temperature", ["0x0p+0", "-0x1p+0", "inf", "nan", "x", 1.0, None])
def test_a_temperature_that_is_none_is_refused(tmp_path: Path, temperature: Any) -> None:
    written(tmp_path, am.Ball(2.0))
    rewrite_about(tmp_path, temperature=temperature)
    with pytest.raises(am.BundleError):
        read_claims(CEILINGS, tmp_path)
