"""The conformance suite: `argmaxable check` and docs/checker.py give the expected answer to every bundle."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import argmaxable as am
from argmaxable.proofs.bundle import read_all
from conformance import forge

ROOT = Path(__file__).parents[2]
EXPECTED = json.loads((ROOT / "conformance" / "expected.json").read_text(encoding="utf-8"))
ANSWERS = {0: "proven", 1: "refused", 2: "refused", 3: "open"}
SCRIPT = ROOT / "docs" / "checker.py"


@functools.cache
def script() -> ModuleType:
    """docs/checker.py, compiled once for some thousand bundles: it has no state."""
    spec = importlib.util.spec_from_file_location("checker", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["Head"] = functools.cache(module.Head)  # a head is not changed by what is said about it
    return module


def by_the_script(folder: Path, head: Path) -> str:
    try:
        return ANSWERS[script().main(folder, head)]
    except Exception:  # as the script itself takes it
        return "refused"


def by_the_package(folder: Path, head: Path) -> str:
    try:
        found = [am.recheck(bundle, the_head(head)) for bundle in read_all(folder)]
    except am.BundleError:
        return "refused"
    if any(each.failures or each.contradictions for each in found):
        return "refused"
    return "open" if any(each.undecided or each.missing for each in found) else "proven"


@functools.cache
def the_head(path: Path) -> am.Head:
    """A head that some thousand bundles are about."""
    return am.load_head(str(path))


Checker = Callable[[Path, Path], str]
checkers = pytest.mark.parametrize("checker", [by_the_script, by_the_package])
bundles = pytest.mark.parametrize("name", EXPECTED)


@checkers
@bundles
def test_a_good_bundle_gets_the_expected_answer(name: str, checker: Checker) -> None:
    head = ROOT / "conformance" / EXPECTED[name]["head"]
    assert checker(ROOT / "conformance" / "good" / name, head) == EXPECTED[name]["answer"]


@functools.cache
def first_with() -> dict[tuple[str, str], str]:
    """For each format and each lie in the manifest or in labels, which no domain and no evidence changes: the
    first bundle that has it."""
    found: dict[tuple[str, str], str] = {}
    for name in EXPECTED:
        bundle = forge.Bundle.read(forge.GOOD / name)
        for lie, _ in (*forge.in_the_manifest(bundle), *forge.labels(bundle)):
            found.setdefault((bundle.manifest["format"], lie), name)
    return found


@bundles
def test_every_forgery_is_refused_by_both(name: str, tmp_path: Path) -> None:
    head = ROOT / "conformance" / EXPECTED[name]["head"]
    layout = forge.Bundle.read(forge.GOOD / name).manifest["format"]
    forged = list(forge.forgeries(name, forge.GOOD / name, tmp_path))
    assert len(forged) == len(set(forged)) > 20
    lies = {folder: folder.name.removeprefix(f"{name}--") for folder in forged}
    tried = [folder for folder, lie in lies.items() if first_with().get((layout, lie), name) == name]
    for checker in (by_the_script, by_the_package):
        assert [folder.name for folder in tried if checker(folder, head) != "refused"] == []


def test_the_suite_has_every_domain_and_every_kind_of_evidence() -> None:
    good = [forge.Bundle.read(forge.GOOD / name) for name in EXPECTED]
    kinds = {bundle.manifest["domain"]["kind"] for bundle in good}
    assert kinds == {"everywhere", "box", "ball", "rmsnorm", "layernorm", "hull"}
    keys = {key for bundle in good for line in bundle.lines for key in line}
    assert keys >= {"own", "point32", "point64", "point", "rival", "certificate", "weights", "tie", "reason"}
    assert {bundle.manifest["format"] for bundle in good} == {"argmaxable-proofs-1", "argmaxable-proofs-2"}
    assert {entry["answer"] for entry in EXPECTED.values()} == {"proven", "open"}


def test_the_checker_is_short_and_imports_nothing_but_numpy_and_the_standard_library() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", None) or alias.name for node in imports for alias in node.names}
    assert modules - set(sys.stdlib_module_names) == {"numpy"}
