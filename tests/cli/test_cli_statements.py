"""argmaxable export --format smt2 and vipr: from a stored run or a bundle, with the model's weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import z3
from keeping import BOX, CORNERS, keep
from running import Command, Ran, is_one_clear_line
from vipr_checker import proven_range

import argmaxable as am
from argmaxable.core.verdict import Certificate
from argmaxable.store import PublishedVerdict, open_store


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose classes 0, 4 and 5 are unargmaxable, another model, and a bundle; run 1 is over the same
    box, run 2 over a ball, and run 3 holds published verdicts."""
    folder = tmp_path_factory.mktemp("statements")
    np.savez(folder / "model.npz", W=CORNERS)
    np.savez(folder / "other.npz", W=2 * CORNERS)
    head = am.load_head(str(folder / "model.npz"))
    keep(folder / "runs.db", head, BOX)
    keep(folder / "runs.db", head, am.Ball(1.0))
    am.write_bundle(am.verify(head, BOX, engine=am.Engine(workers=1)), folder / "proofs")
    with open_store(str(folder / "runs.db")) as store:
        published = [PublishedVerdict(0, "a", am.Status.UNARGMAXABLE)]
        store.add_published("theirs", origin="a paper", family="", task="", rows=published, domain=BOX)
    return folder


@pytest.mark.parametrize("source", ["1", "proofs"])
def test_a_run_and_a_bundle_are_stated_for_smt_solvers(
    command: Command, place: Path, tmp_path: Path, source: str
) -> None:
    named = place / source if source == "proofs" else source
    ran = command(
        *("export", named, "--format", "smt2", "--model", place / "model.npz"),
        *("-o", tmp_path, "--db", place / "runs.db"),
    )
    assert (ran.code, ran.out) == (0, f"3 unargmaxable classes written to {tmp_path} as smt2.\n")
    assert {path.name for path in tmp_path.iterdir()} == {f"class-{c}.smt2" for c in (0, 4, 5)}
    for path in tmp_path.iterdir():
        solver = z3.Solver()
        solver.from_file(str(path))
        assert solver.check() == z3.unsat


def test_a_run_becomes_vipr_certificates_of_chosen_classes(
    command: Command, place: Path, tmp_path: Path
) -> None:
    ran = command(
        *("export", "1", "--format", "vipr", "--model", place / "model.npz", "--only", "1-4"),
        *("-o", tmp_path, "--db", place / "runs.db"),
    )
    assert (ran.code, ran.out) == (0, f"1 unargmaxable class written to {tmp_path} as vipr.\n")
    assert proven_range((tmp_path / "class-4.vipr").read_text(encoding="utf-8")) == ("-inf", "0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["1", "--format", "smt2", "-o", "out"], "Pass --model MODEL"),
        (["1", "--format", "vipr", "--model", "model.npz"], "Pass --output PATH"),
        (["1", "--format", "smt2", "--model", "other.npz", "-o", "out"], "about another head"),
        (["proofs", "--format", "vipr", "--model", "other.npz", "-o", "out"], "about another head"),
        (["2", "--format", "smt2", "--model", "model.npz", "-o", "out"], "--domain box:100"),
        (["3", "--format", "smt2", "--model", "model.npz", "-o", "out"], "without evidence"),
        (["1", "--format", "csv", "--model", "model.npz"], "only work with --format smt2 and --format vipr"),
        (["1", "--format", "smt2", "--model", "model.npz", "--only", "x", "-o", "out"], "--only x"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(
    command: Command, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(place)
    ran = command("export", *arguments, "--db", "runs.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err
    assert not (place / "out").exists()


def test_weights_that_can_not_be_made_exact_are_told(command: Command, tmp_path: Path) -> None:
    """Four weights for two equations, near a solution. The first two rows are all but equal: as the only
    unknowns they would take up the rounding of the others a billionfold, and one of them is negative."""
    rows = np.array([[0.0], [0.1], [0.1 + 2.0**-30], [-1.0], [1.0]])
    small = 2.0**-27
    last = (1 - 2 * small - (rows[1, 0] + rows[2, 0]) * small) / 2
    certificate = Certificate(np.arange(1, 5), np.array([small, small, 1 - 2 * small - last, last]), 4)
    np.savez(tmp_path / "model.npz", W=rows)
    result = am.verify(
        am.load_head(str(tmp_path / "model.npz")), am.Everywhere(), engine=am.Engine(workers=1)
    )
    first = replace(result.verdicts[0], certificate=certificate, upper=0.0)
    am.write_bundle(replace(result, verdicts=(first,)), tmp_path / "proofs")

    def exported(form: str) -> Ran:
        model, folder = tmp_path / "model.npz", tmp_path / form
        return command("export", tmp_path / "proofs", "--format", form, "--model", model, "-o", folder)

    ran = exported("vipr")
    assert ran.code == 3
    assert "1 left out, whose weights could not be made exact (0)" in ran.out
    assert exported("smt2").code == 0
    solver = z3.Solver()
    solver.from_file(str(tmp_path / "smt2" / "class-0.smt2"))
    assert solver.check() == z3.unsat
