"""Which argmaxable classes survive rounding, and how the command says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from running import Command

from argmaxable import Box, Everywhere, Head, LayerNorm, RMSNorm, verify
from argmaxable.check.checker import Checker
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.questions.arithmetic.norm_surface import surface_of
from argmaxable.questions.arithmetic.survival import Outcome, survival
from argmaxable.run.plan import ONE_PROCESS
from argmaxable.search.ascent import ascend, onto_surface

SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def square_and(*rows: list[float]) -> Head:
    return Head(np.concatenate([SQUARE, np.array(rows)]))


def outcomes(head: Head, number: str) -> list[Outcome]:
    return [fate.outcome for fate in survival(verify(head, Box(-100, 100), engine=ONE_PROCESS), number).fates]


# ---------------------------------------------------------------------- outcomes


@pytest.mark.parametrize("number", Float)
def test_corners_of_a_square_survive_every_format(number: Float) -> None:
    assert outcomes(square_and([0.25, 0.5]), number) == [Outcome.SURVIVES] * 4


def test_a_class_just_outside_the_hull_is_on_paper_only() -> None:
    # bf16 has all these numbers, so no row is lost. The lead is 2^-8 of the logits, each of which may be off
    # by as much when it is rounded.
    peak = Head(np.concatenate([SQUARE * np.array([1.0, 1 - 2.0**-8]), [[0.0, 1.0]]]))
    assert outcomes(peak, "bf16")[-1] is Outcome.ON_PAPER_ONLY
    assert outcomes(peak, "fp32")[-1] is Outcome.SURVIVES


def test_a_class_whose_rounded_row_is_unargmaxable_is_lost() -> None:
    head = square_and([0.0, 1 + 2.0**-12])
    assert outcomes(head, "bf16")[-1] is Outcome.UNARGMAXABLE
    assert outcomes(head, "fp32")[-1] is Outcome.SURVIVES


def test_rows_that_become_the_same_are_named_as_merged() -> None:
    head = square_and([1.0, 1 + 2.0**-12])
    assert survival(verify(head, Box(-100, 100), engine=ONE_PROCESS), "bf16").merged == ((0, 4),)


def test_rows_that_were_the_same_before_are_not_merged() -> None:
    head = square_and([1.0, 1.0])
    assert survival(verify(head, Box(-100, 100), engine=ONE_PROCESS), "bf16").merged == ()


def test_only_argmaxable_classes_have_a_fate() -> None:
    result = verify(square_and([0.5, 0.5]), Box(-100, 100), engine=ONE_PROCESS)
    assert [fate.class_id for fate in survival(result, "bf16").fates] == [0, 1, 2, 3]


def test_a_witness_that_does_not_survive_is_improved() -> None:
    rng = np.random.default_rng(0)
    result = verify(
        Head(rng.normal(size=(300, 12)), rng.normal(size=300) * 4), Box(-100, 100), engine=ONE_PROCESS
    )
    found = survival(result, "bf16")
    assert found.improved > 0
    assert len(found.having(Outcome.SURVIVES)) > 0.9 * len(found.fates)


def test_the_thinnest_leads_come_first() -> None:
    rng = np.random.default_rng(1)
    result = verify(Head(rng.normal(size=(100, 3)), rng.normal(size=100)), Box(-100, 100), engine=ONE_PROCESS)
    units = [fate.units for fate in survival(result, "fp32").having(Outcome.SURVIVES)]
    assert units == sorted(units)


# ---------------------------------------------------------------------- ascent


@pytest.mark.parametrize("domain", [Box(-2, 3), RMSNorm(1.0), LayerNorm(1.0)])
def test_ascent_stays_in_the_domain(domain: Box | RMSNorm | LayerNorm) -> None:
    points, _ = ascend(
        lambda _, z, __: (z.sum(axis=1), np.ones_like(z) + z),
        np.random.default_rng(2).normal(size=(50, 6)),
        domain.nearest,
        steps=50,
    )
    checker = Checker(Head(np.zeros((2, 6)), [1.0, 0.0]), domain)
    assert (checker.gaps(np.zeros(50, np.intp), points).lower > 0).all()  # −∞ outside


def test_ascent_never_makes_a_point_worse() -> None:
    start = np.random.default_rng(3).normal(size=(50, 4))
    _, values = ascend(lambda _, z, __: (-(z**2).sum(axis=1), z), start, Everywhere().nearest, steps=20)
    assert (values >= -(start**2).sum(axis=1)).all()


def test_ascent_leaves_points_alone_that_are_good_enough() -> None:
    start = np.array([[1.0], [3.0]])
    points, values = ascend(
        lambda _, z, __: (z[:, 0], np.ones_like(z)), start, Everywhere().nearest, steps=50, enough=2.0
    )
    assert points[1] == values[1] == 3.0
    assert 2.0 < values[0] < 2.3


def test_the_centre_of_a_solid_is_moved_to_its_surface_too() -> None:
    for solid in (RMSNorm(1.0), LayerNorm(1.0)):
        assert np.allclose(np.square(onto_surface(solid)(np.zeros((1, 5)))).sum(), 5)


# ---------------------------------------------------------------------- surfaces of norms


def central(height: float) -> Head:
    """A class that wins where |x₁| and |x₂| are below the height, and the four that win elsewhere."""
    weight = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return Head(weight, [height, 0.0, 0.0, 0.0, 0.0])


def test_a_class_that_wins_only_inside_is_solid_only() -> None:
    surface = surface_of(verify(central(0.9), RMSNorm(1.0), engine=ONE_PROCESS))
    assert surface is not None
    assert (surface.classes, surface.solid_only) == (5, (0,))


def test_a_class_whose_region_meets_the_surface_anywhere_is_not() -> None:
    # ‖z‖ = √2 meets |x₁|, |x₂| < 1.1 near the corners (±1, ±1) only.
    surface = surface_of(verify(central(1.1), RMSNorm(1.0), engine=ONE_PROCESS))
    assert surface is not None
    assert surface.solid_only == ()


def test_without_bias_and_shift_every_witness_reaches_the_surface() -> None:
    rng = np.random.default_rng(4)
    surface = surface_of(
        verify(Head(rng.normal(size=(50, 4))), LayerNorm(rng.normal(size=4)), engine=ONE_PROCESS)
    )
    assert surface is not None
    assert surface.solid_only == ()


def test_a_shift_alone_can_make_a_class_solid_only() -> None:
    # Class 0 wins around x = (3, 3) + z, where the shift puts it in the middle of its region.
    weight = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    head = Head(weight, [0.5, -3.0, 3.0, -3.0, 3.0])
    surface = surface_of(verify(head, RMSNorm(1.0, 3.0), engine=ONE_PROCESS))
    assert surface is not None
    assert surface.solid_only == (0,)


def test_other_domains_have_no_surface_to_speak_of() -> None:
    assert surface_of(verify(central(0.9), Box(-1, 1), engine=ONE_PROCESS)) is None


# ---------------------------------------------------------------------- the command


@pytest.fixture
def thin(tmp_path: Path) -> Path:
    path = tmp_path / "thin.npz"
    weight = np.concatenate([SQUARE, [[0.0, 1 + 2.0**-12], [1.0, 1 + 2.0**-12]]])
    np.savez(path, W=weight, labels=np.array(["a", "b", "c", "d", "peak", "twin"]))
    return path


def test_verify_names_what_is_lost_in_a_format(command: Command, thin: Path) -> None:
    ran = command("verify", thin, "--no-db", "--dtype", "bf16")
    assert "In bf16: " in ran.out
    assert "can never be predicted with weights rounded to bf16, proven:\n" in ran.out
    assert "2 classes in a group have the same row and bias once rounded: they tie." in ran.out


def test_verify_says_it_in_json(command: Command, thin: Path) -> None:
    record = json.loads(command("verify", thin, "--no-db", "--dtype", "bf16", "--json").out)["arithmetic"]
    assert record["dtype"] == "bf16"
    assert record["argmaxable"] == record["survive"] + len(record["unargmaxable"]) + len(
        record["on_paper_only"]
    )
    assert "peak" in [each["label"] for each in record["unargmaxable"]]
    assert record["merged"] == [[0, 5]]


def test_a_run_that_is_found_again_is_looked_at_as_well(command: Command, thin: Path) -> None:
    first = command("verify", thin, "--dtype", "fp16", "--json").record
    again = command("verify", thin, "--dtype", "fp16", "--json").record
    assert again["run"] == first["run"]
    assert again["arithmetic"] == first["arithmetic"]


def test_a_head_with_nothing_argmaxable_has_nothing_to_lose(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "same.npz", W=np.ones((3, 2)))
    ran = command("verify", tmp_path / "same.npz", "--no-db", "--dtype", "bf16")
    assert "In bf16: no class is argmaxable." in ran.out


def test_verdicts_of_a_rounded_copy_can_be_compared_with_the_original(command: Command, thin: Path) -> None:
    command("verify", thin)
    command("verify", thin, "--round-to", "bf16")
    ran = command("compare", "thin.npz", "thin.npz in bf16")
    assert ran.code == 0
    assert "The runs are about different weights." in ran.out
    assert "argmaxable → unargmaxable: " in ran.out
    assert "peak" in ran.out


def test_proofs_about_a_rounded_copy_are_checked_against_it(
    command: Command, thin: Path, tmp_path: Path
) -> None:
    ran = command("verify", thin, "--round-to", "int8", "--output", tmp_path / "proofs")
    assert "--round-to int8" in ran.out
    assert command("check", tmp_path / "proofs", thin, "--round-to", "int8").code == 0
    assert command("check", tmp_path / "proofs", thin).code == 2


def test_verify_counts_solid_only_witnesses(command: Command, tmp_path: Path) -> None:
    from argmaxable.core.domains import write_domain

    head = central(0.9)
    np.savez(tmp_path / "head.npz", W=head.weight, b=head.biases())
    write_domain(tmp_path / "solid.json", RMSNorm(1.0))
    where = f"file:{tmp_path / 'solid.json'}"
    ran = command("verify", tmp_path / "head.npz", "--no-db", "--domain", where)
    assert "1 of 5 argmaxable classes solid only" in ran.out
    ran = command("verify", tmp_path / "head.npz", "--no-db", "--domain", where, "--json")
    assert json.loads(ran.out)["solid_only"] == [0]
