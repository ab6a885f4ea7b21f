"""Bundles of label sets: alone, beside verdicts, and what both checkers say to good and forged ones."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.proofs.bundle import read_all
from argmaxable.proofs.sets import SETS
from conformance import forge_sets

ROOT = Path(__file__).parents[2]
EXPECTED = json.loads((ROOT / "conformance" / "expected_sets.json").read_text(encoding="utf-8"))
ANSWERS = {0: "proven", 1: "refused", 2: "refused", 3: "open"}
ONE = am.Engine(workers=1)
DOMAIN = am.Box(-1.0, 1.0)
bundles = pytest.mark.parametrize("name", EXPECTED)


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        spec = importlib.util.spec_from_file_location("set_checker", ROOT / "docs" / "set_checker.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        vars(module)["Head"] = functools.cache(module.Head)  # a head is not changed by what is said about it
        yield module
    finally:
        sys.path.remove(str(ROOT / "docs"))


def by_the_script(script: ModuleType, folder: Path, head: Path) -> str:
    try:
        return ANSWERS[script.main(folder, head)]
    except Exception:  # as the script itself takes it
        return "refused"


def by_the_package(folder: Path, head: Path) -> str:
    try:
        found = [am.recheck(bundle, the_head(head)) for bundle in read_all(folder)]
    except am.BundleError:
        return "refused"
    if any(each.failures or each.contradictions for each in found):
        return "refused"
    return "open" if any(each.undecided for each in found) else "proven"


@functools.cache
def the_head(path: Path) -> am.Head:
    """A head that hundreds of bundles are about."""
    return am.load_head(str(path))


@bundles
def test_both_checkers_give_the_expected_answer_to_a_good_bundle(name: str, script: ModuleType) -> None:
    folder, head = forge_sets.GOOD_SETS / name, ROOT / "conformance" / EXPECTED[name]["head"]
    assert by_the_script(script, folder, head) == by_the_package(folder, head) == EXPECTED[name]["answer"]


@bundles
def test_both_checkers_refuse_every_forgery(name: str, script: ModuleType, tmp_path: Path) -> None:
    head = ROOT / "conformance" / EXPECTED[name]["head"]
    forged = list(forge_sets.forgeries(name, forge_sets.GOOD_SETS / name, tmp_path))
    assert len(forged) == len(set(forged)) > 10
    assert [folder.name for folder in forged if by_the_script(script, folder, head) != "refused"] == []
    assert [folder.name for folder in forged if by_the_package(folder, head) != "refused"] == []


def test_the_second_checker_is_short_and_imports_nothing_of_argmaxable() -> None:
    text = (ROOT / "docs" / "set_checker.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", None) or alias.name for node in imports for alias in node.names}
    assert modules - set(sys.stdlib_module_names) == {"checker"}


def some_head() -> am.Head:
    generator = np.random.default_rng(0)
    return am.Head(generator.normal(size=(9, 2)), generator.normal(size=9), labels="abcdefghi")


def test_a_folder_with_nothing_but_sets_is_a_bundle(tmp_path: Path) -> None:
    head = some_head()
    am.write_sets(am.sets(head, DOMAIN, [[0], [1, 2], []], engine=ONE), tmp_path)
    (bundle,) = read_all(tmp_path)
    assert bundle.kind is SETS
    assert am.recheck(bundle, head) == am.Recheck(3, 0, 0, ())


def test_sets_are_not_written_beside_verdicts_about_another_domain(tmp_path: Path) -> None:
    head = some_head()
    am.write_bundle(am.verify(head, am.Ball(1.0), engine=ONE), tmp_path)
    with pytest.raises(am.BundleError, match="another head or domain"):
        am.write_sets(am.sets(head, DOMAIN, [[0]], engine=ONE), tmp_path)


def test_a_set_may_name_a_label_that_another_set_names(tmp_path: Path) -> None:
    head = some_head()
    am.write_sets(am.sets(head, DOMAIN, [[0], [0, 1]], kind="top", engine=ONE), tmp_path)
    assert am.recheck(read_all(tmp_path)[0], head).proven == 2


def test_check_names_the_set_that_is_not_proven(tmp_path: Path, command: Command) -> None:
    head = some_head()
    np.savez(tmp_path / "head.npz", W=head.weight, b=head.bias, labels=np.array(head.labels))
    am.write_sets(am.sets(head, DOMAIN, [[0], [1, 2]], engine=ONE), tmp_path / "proofs")
    ran = command("check", str(tmp_path / "proofs"), str(tmp_path / "head.npz"))
    assert (ran.code, "2 of 2 sets proven over the domain box ±1." in ran.out) == (0, True)
    bundle = forge_sets.SetBundle.read(tmp_path / "proofs")
    bundle.lines[1] |= {"status": "feasible", "lower": 9.0, "upper": None}
    bundle.write(tmp_path / "forged")
    ran = command("check", str(tmp_path / "forged"), str(tmp_path / "head.npz"))
    assert ran.code == 1
    assert "set {1, 2}: set NOT PROVEN" in ran.out
