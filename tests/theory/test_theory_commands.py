"""argmaxable regions and argmaxable ranking: answers, exit codes and machine output."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx_writer
import pytest
from onnx_writer import node
from order_truths import ranks_so
from running import Command, is_one_clear_line

import argmaxable as am
from argmaxable.theory.regions import regions_table

# ---------------------------------------------------------------------- regions


@pytest.mark.parametrize("bias", [False, True])
def test_csv_has_a_row_for_each_number_of_classes(command: Command, bias: bool) -> None:
    ran = command(
        "regions", "--classes", "9", "--dims", "4", "--format", "csv", *(["--bias"] if bias else [])
    )
    rows = [[int(cell) for cell in row] for row in csv.reader(io.StringIO(ran.out))]
    expected = regions_table(9, 4, bias=bias).tolist()
    assert ran.code == 0
    assert rows == [[number, *counts] for number, counts in enumerate(expected, start=1)]


def test_the_table_of_the_paper_is_what_is_printed_by_default(command: Command) -> None:
    lines = command("regions").out.splitlines()
    assert lines[0].split() == ["C", "\\", "d", *map(str, range(1, 11))]
    assert " ".join(lines[7].split()) == "7 2 42 352 1512 3600 5040 5040 5040 5040 5040"
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 11


def test_latex_prints_the_first_complete_count_bold(command: Command) -> None:
    out = command("regions", "--classes", "5", "--dims", "5", "--bias", "--format", "latex").out
    assert "5 & 11 & 46 & 96 & \\textbf{120} & 120 \\\\" in out.splitlines()
    assert out.count("\\textbf") == 4
    assert out.startswith("\\begin{tabular}{r|rrrrr}\n\\toprule\n")


def test_a_table_without_rows_is_bad_input(command: Command) -> None:
    assert command("regions", "--classes", "0").code == 2


# ---------------------------------------------------------------------- ranking


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Four classes in the plane; "mid" lies halfway between "cat" and "dog"."""
    path = tmp_path / "pets.npz"
    weight = np.array([[1, 0], [-1, 2], [0, 1], [0, -1]], np.float32)
    bias = np.array([0, 0, -0.25, 1], np.float32)
    np.savez(path, W=weight, b=bias, labels=np.array(["cat", "dog", "mid", ">"]))
    return path


def head_of(path: Path) -> am.Head:
    return am.load_head(path)


def test_a_feasible_order_exits_with_0_and_says_so(command: Command, model: Path) -> None:
    ran = command("ranking", model, "dog > cat > rest")
    assert ran.code == 0
    assert ran.out.splitlines()[:2] == [
        "pets.npz: 4 classes × 2 features, with bias",
        "dog > cat > every other class",
    ]
    assert "Feasible: some input ranks the classes in this order" in ran.out


def test_the_witness_of_the_json_ranks_so(command: Command, model: Path) -> None:
    record = command("ranking", model, "dog > cat > rest", "--json").record
    assert record["status"] == "feasible"
    assert record["order"] == ["dog > cat > every other class"]
    assert record["chains"] == [{"classes": [1, 0], "above_rest": True}]
    witness = np.array(record["witness"])
    assert ranks_so(head_of(model), am.Box(-100, 100), witness, [(1, 0), (0, 2), (0, 3)])
    assert record["margin"] > 0
    assert record["certificate"] is None


def test_an_infeasible_order_exits_with_1_and_names_the_conflict(command: Command, model: Path) -> None:
    ran = command("ranking", model, "mid > cat", "mid > dog")
    assert ran.code == 1
    assert "Infeasible: no input ranks the classes in this order." in ran.out
    assert "  mid > cat  (weight 0.5)" in ran.out
    assert "  mid > dog  (weight 0.5)" in ran.out


def test_the_certificate_of_the_json_proves_it(command: Command, model: Path) -> None:
    ran = command("ranking", model, "mid > rest", "--json", "--domain", "everywhere")
    assert ran.code == 1
    head = head_of(model)
    gap, offset = np.zeros(2, dtype=object), Fraction(0)
    for entry in ran.record["certificate"]:
        above, below, weight = entry["above"], entry["below"], int(entry["weight"], 16)
        assert (above, weight > 0) == (2, True)
        gap = gap + weight * np.array([Fraction(float(v)) for v in head.weight[above] - head.weight[below]])
        offset += weight * Fraction(float(head.bias[above] - head.bias[below]))  # type: ignore[index]
    assert not gap.any()
    assert offset <= 0
    assert ran.record["domain"] == {"kind": "everywhere"}


def test_the_domain_can_change_the_answer(command: Command, model: Path) -> None:
    order = '">" > cat > rest'
    assert command("ranking", model, order).code == 0
    assert command("ranking", model, "cat > rest", "--domain", "box:-1:0.1").code == 1
    assert command("ranking", model, "cat > rest", "--domain", "ball:5").code == 0


def test_domain_auto_takes_what_the_file_proves(command: Command, tmp_path: Path) -> None:
    # Behind a ReLU no feature is negative, so the row of −1 never beats the row of 0.
    weight = np.array([[-1.0, 0.0], [-1.0, 0.0]], np.float32)
    graph = onnx_writer.build([node("Relu", "x", "h"), node("MatMul", "h W", "y")], {"W": weight})
    path = onnx_writer.save(tmp_path, graph)
    assert command("ranking", path, "0 > 1", "--domain", "box:100").code == 0
    ran = command("ranking", path, "0 > 1")
    assert ran.code == 1
    assert "Domain: box [0, inf], which the file itself proves" in ran.out


def test_the_domain_is_an_assumption_where_the_file_says_nothing(command: Command, model: Path) -> None:
    ran = command("ranking", model, "cat > dog")
    assert ran.code == 0
    assert "Domain: box ±100, an assumption" in ran.out


def test_a_ranking_that_is_out_of_time_is_undecided(command: Command, model: Path) -> None:
    ran = command("ranking", model, "dog > cat > rest", "--time-limit", "1e-9")
    assert ran.code == 3
    assert "Undecided: out of time." in ran.out


@pytest.mark.parametrize("order", ["cat", "cat > mouse", "cat > #4", "cat > cat > rest", "> > dog"])
def test_an_order_that_is_not_clear_is_bad_input(command: Command, model: Path, order: str) -> None:
    ran = command("ranking", model, order)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_the_only_class_of_a_head_is_above_the_rest(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", W=np.ones((1, 2), np.float32))
    record = command("ranking", tmp_path / "one.npz", "0 > rest", "--json").record
    assert (record["status"], record["margin"]) == ("feasible", None)
