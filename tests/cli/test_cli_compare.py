"""argmaxable compare and table: kept runs side by side, and as tables of a paper."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keeping import BOX, CORNERS, LABELS, keep, keep_some, lossy, plan_of
from running import Command, is_one_clear_line

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.core.result import Cost
from argmaxable.report.published import UNNUMBERED
from argmaxable.store import PublishedVerdict, open_store


def tuned() -> am.Head:
    """The lossy head after training: the middle has moved out, the twin apart, and a class is new."""
    weight = np.vstack([CORNERS, [[0.0, 0.1]]])
    weight[1], weight[4], weight[5] = [1.0, -1.125], [3.0, 0.0], [0.5, 0.5]
    return am.Head(weight, np.zeros(7), (*LABELS, "new"), name="tuned.npz")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1: a head, 2: over another box, 3: tuned, 4: without labels, 5: stopped, 6: published by others."""
    path = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(path, lossy(), family="toys")
    keep(path, lossy(), am.Box(2, 3), family="toys")
    keep(path, tuned(), family="toys")
    keep(path, lossy(name="bare_1.npz", labels=None), family="bare_ones & more")
    keep_some(path, am.Head(CORNERS, np.ones(6), LABELS, name="cut"), (0, 4))
    with open_store(str(path)) as store:
        rows = [
            PublishedVerdict(UNNUMBERED, "middle", am.Status.ARGMAXABLE),
            PublishedVerdict(UNNUMBERED + 1, "c", am.Status.ARGMAXABLE),
        ]
        store.add_published("theirs", origin="a paper", family="toys", task="", rows=rows, domain=BOX)
    return path


# ---------------------------------------------------------------------- compare


def test_compare_names_the_classes_that_changed(command: Command, db: Path) -> None:
    ran = command("compare", "1", "3", "--db", db)
    assert ran.code == 0
    assert "6 classes matched by label; 1 only in the second." in ran.out
    assert "2 of 6 classes have a different verdict:" in ran.out
    assert "unargmaxable → argmaxable: 2\n    a  middle\n" in ran.out


def test_compare_of_two_domains_needs_no_second_model(command: Command, db: Path) -> None:
    record = command("compare", "1", "2", "--db", db, "--json").record
    assert [pair["label"] for pair in record["changed"]] == ["é", "c", "d"]
    assert record["statuses"] == [
        {"before": "argmaxable", "after": "unargmaxable", "classes": 3},
        {"before": "unargmaxable", "after": "unargmaxable", "classes": 3},
    ]


def test_margins_that_moved_for_certain_are_named_with_their_bounds(command: Command, db: Path) -> None:
    moved = command("compare", "1", "2", "--db", db, "--json").record["moved"]
    assert {pair["label"] for pair in moved} >= {"é", "c", "d"}
    for pair in moved:
        assert pair["by_at_least"] == pair["after"]["upper"] - pair["before"]["lower"] < 0


def test_leads_at_own_directions_that_moved_are_listed(command: Command, db: Path) -> None:
    said = "Largest changes of the lead in the class's own direction"
    assert said in command("compare", "1", "3", "--db", db).out
    shifted = command("compare", "1", "3", "--db", db, "--json").record["own_direction"]
    assert "é" in {pair["label"] for pair in shifted}
    assert all(pair["by"] == pair["after"]["lower"] - pair["before"]["lower"] for pair in shifted)


def test_runs_without_labels_are_matched_by_number_and_it_is_said(command: Command, db: Path) -> None:
    assert "6 classes matched by class number." in command("compare", "1", "4", "--db", db).out
    assert command("compare", "1", "4", "--db", db, "--json").record["matched_by"] == "class"


def test_no_change_is_said_in_words(command: Command, db: Path) -> None:
    assert "All 6 classes have the same verdict in both." in command("compare", "1", "1", "--db", db).out


def test_a_stopped_run_is_compared_as_far_as_it_got(command: Command, db: Path) -> None:
    record = command("compare", "1", "cut", "--db", db, "--json").record
    assert (record["matched"], record["only_before"], record["changed"]) == (2, 4, [])


def test_published_classes_without_numbers_are_matched_by_label(command: Command, db: Path) -> None:
    record = command("compare", "theirs", "1", "--db", db, "--json").record
    assert [(pair["label"], pair["before"]["class"]) for pair in record["changed"]] == [("middle", None)]


def test_published_classes_without_numbers_match_no_class_of_a_run_without_labels(
    command: Command, db: Path
) -> None:
    ran = command("compare", "theirs", "4", "--db", db)
    assert "0 classes matched by class number; 2 only in the first run; 6 only in the second." in ran.out
    assert "The runs have no class in common." in ran.out


def test_changes_as_csv_have_a_row_each(command: Command, db: Path) -> None:
    out = command("compare", "1", "2", "--format", "csv", "--db", db).out
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [(row["label"], row["class_before"], row["before"], row["after"]) for row in rows] == [
        ("é", "1", "argmaxable", "unargmaxable"),
        ("c", "2", "argmaxable", "unargmaxable"),
        ("d", "3", "argmaxable", "unargmaxable"),
    ]


def test_changes_can_be_markdown_and_latex(command: Command, db: Path) -> None:
    assert (
        "| é | 1 | 1 | argmaxable | unargmaxable | "
        in command("compare", "1", "2", "--format", "markdown", "--db", db).out
    )
    assert (
        "é & 1 & 1 & argmaxable & unargmaxable & "
        in command("compare", "1", "2", "--format", "latex", "--db", db).out
    )


def test_proven_verdicts_that_contradict_each_other_are_an_error_of_ours(
    command: Command, tmp_path: Path
) -> None:
    db, head = tmp_path / "runs.db", lossy()
    keep(db, head)
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    forged = [replace(v, status=am.Status.UNARGMAXABLE, lower=-1.0, upper=-0.5) for v in result.verdicts]
    with open_store(str(db)) as store, store.begin(plan_of(head, seed=1), centre=centre_of(head)) as run:
        run.record(forged, Cost())
        run.finish(Cost())
    ran = command("compare", "1", "2", "--db", db)
    assert ran.code == 4
    assert "contradict each other: class 1 can't be argmaxable and unargmaxable" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "1", "77"], "argmaxable runs"),
        (["compare", "1", "2", "--json", "--format", "csv"], "can't be used together"),
        (["table", "77"], "argmaxable runs"),
        (["table", "1", "--family", "toys"], "pass RUN or filters, not both"),
        (["table", "--family", "none of these"], "no runs to write a table of"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(command: Command, db: Path, arguments: list[str], said: str) -> None:
    ran = command(*arguments, "--db", db)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err


# ---------------------------------------------------------------------- table


def rows_of(command: Command, db: Path, *arguments: str) -> list[dict[str, str]]:
    out = command("table", *arguments, "--format", "csv", "--db", db).out
    return list(csv.DictReader(io.StringIO(out, newline="")))


def test_a_table_has_the_papers_columns_for_each_run_in_the_order_given(command: Command, db: Path) -> None:
    rows = rows_of(command, db, "3", "lossy.npz", "1")
    assert [row["model"] for row in rows] == ["tuned.npz", "lossy.npz", "lossy.npz"]
    assert [row["domain"] for row in rows] == ["box ±100", "box [2, 3]", "box ±100"]
    assert [row["unargmaxable"] for row in rows] == ["2", "6", "3"]
    first = rows[0]
    assert (first["classes"], first["features"], first["bias"], first["undecided"]) == ("7", "2", "true", "0")
    assert int(first["needed_lp"]) >= 0
    assert float(first["mean_steps"]) >= 0
    assert float(first["seconds"]) > 0


def test_a_table_of_no_runs_named_has_the_newest_of_each_model(command: Command, db: Path) -> None:
    rows = rows_of(command, db)
    assert [row["model"] for row in rows] == ["bare_1.npz", "cut", "lossy.npz", "theirs", "tuned.npz"]
    assert [row["domain"] for row in rows if row["model"] == "lossy.npz"] == ["box [2, 3]"]


def test_classes_without_a_verdict_yet_are_undecided_in_a_table(command: Command, db: Path) -> None:
    assert rows_of(command, db, "cut")[0]["undecided"] == "4"
    assert "| undecided |" in command("table", "cut", "1", "--db", db).out
    assert "undecided" not in command("table", "1", "2", "--db", db).out


def test_what_is_not_known_of_a_published_model_is_left_out_of_a_table(command: Command, db: Path) -> None:
    row = rows_of(command, db, "theirs")[0]
    assert (row["features"], row["bias"], row["unargmaxable"]) == ("", "", "0")


def test_a_table_can_be_latex_with_names_escaped(command: Command, db: Path) -> None:
    out = command("table", "4", "--format", "latex", "--db", db).out
    assert r"bare\_1.npz & 6 & 2 & yes & box $\pm$100 & " in out


def test_a_table_can_be_markdown_with_names_escaped(command: Command, db: Path) -> None:
    out = command("table", "4", "--db", db).out
    assert out.splitlines()[0].startswith("| model | C | d | bias | domain | needed LP | unargmaxable |")
    assert "| bare_1.npz | 6 | 2 | yes | box ±100 |" in out


def test_the_summary_has_a_row_for_each_family_and_one_for_all(command: Command, db: Path) -> None:
    rows = rows_of(command, db, "--summary", "1", "3", "4")
    assert [row["family"] for row in rows] == ["toys", "bare_ones & more", "all"]
    assert [row["models"] for row in rows] == ["2", "1", "3"]
    assert [row["models_with_unargmaxable"] for row in rows] == ["2", "1", "3"]
    assert [(row["min_classes"], row["max_classes"]) for row in rows] == [("6", "7"), ("6", "6"), ("6", "7")]
    assert [row["unargmaxable"] for row in rows] == ["5", "3", "8"]
    assert float(rows[2]["seconds"]) == pytest.approx(sum(float(row["seconds"]) for row in rows[:2]))


def test_the_summary_of_one_family_has_no_row_for_all(command: Command, db: Path) -> None:
    assert [row["family"] for row in rows_of(command, db, "--summary", "1", "3")] == ["toys"]
