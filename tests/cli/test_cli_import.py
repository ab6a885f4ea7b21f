"""argmaxable import: published verdicts become runs that can be set beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from keeping import keep, lossy
from running import Command, is_one_clear_line

from argmaxable.store import State, open_store

TABLE = """model,class,label,status,seconds
theirs,0,a,unargmaxable,0.5
theirs,1,é,argmaxable,0.5
theirs,4,middle,argmaxable,1
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "published.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_a_published_table_becomes_a_run(command: Command, table: Path, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    ran = command("import", table, "--origin", "a paper", "--family", "toys", "--db", db)
    assert (ran.code, ran.out) == (0, "run 1: theirs, 3 verdicts over box ±100\n")
    with open_store(str(db)) as store:
        run = store.run(1)
    assert (run.state, run.origin, run.family) == (State.IMPORTED, "a paper", "toys")
    assert (run.counts.argmaxable, run.counts.unargmaxable) == (2, 1)


def test_the_origin_is_the_files_name_and_no_path(command: Command, table: Path, tmp_path: Path) -> None:
    record = command("import", table, "--db", tmp_path / "runs.db", "--json").record
    assert [(run["run"], run["origin"], run["state"]) for run in record["imported"]] == [
        (1, "published.csv", "imported")
    ]


def test_the_same_table_twice_is_one_run(command: Command, table: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert command("import", table, "--db", tmp_path / "runs.db").code == 0
    assert len(command("runs", "--db", tmp_path / "runs.db", "--json").record["runs"]) == 1


def test_a_published_run_can_be_compared_with_ours(command: Command, table: Path, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    command("import", table, "--db", db)
    keep(db, lossy())
    record = command("compare", "theirs", "lossy.npz", "--db", db, "--json").record
    assert (record["matched_by"], record["matched"]) == ("label", 3)
    assert [pair["label"] for pair in record["changed"]] == ["middle"]


def test_a_published_run_is_shown_as_claims(command: Command, table: Path, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    command("import", table, "--db", db)
    out = command("show", "theirs", "--db", db).out
    assert out.startswith("Run 1 (published.csv): published verdicts without evidence, imported ")
    assert "\nDomain: box ±100.\n" in out
    assert "theirs: 3 classes; 0.0 s" in out


def test_what_we_export_can_be_imported(command: Command, tmp_path: Path) -> None:
    keep(tmp_path / "runs.db", lossy(labels=("=a", "b,c", 'd"e', "f\ng", "", "😀")))
    command("export", "1", "--format", "csv", "-o", tmp_path / "v.csv", "--db", tmp_path / "runs.db")
    assert command("import", tmp_path / "v.csv", "--db", tmp_path / "other.db").code == 0
    with open_store(str(tmp_path / "runs.db")) as ours, open_store(str(tmp_path / "other.db")) as theirs:
        assert [(v.class_id, v.label, v.status) for v in theirs.verdicts(1)] == [
            (v.class_id, v.label, v.status) for v in ours.verdicts(1)
        ]
        assert theirs.run(1).counts.solved == ours.run(1).counts.solved


def test_a_fault_anywhere_in_the_table_imports_nothing(command: Command, table: Path, tmp_path: Path) -> None:
    table.write_text(TABLE + "other,0,x,sometimes,0\n", encoding="utf-8")
    ran = command("import", table, "--db", tmp_path / "runs.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "row 5: status is sometimes" in ran.err
    assert command("runs", "--db", tmp_path / "runs.db", "--json").record == {"runs": [], "sets": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["none.csv"], "No such file"), (["{table}", "--domain", "cube"], "'cube' is not a domain")],
)
def test_a_wrong_wish_is_one_clear_line(
    command: Command, table: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ran = command("import", *(text.format(table=table) for text in arguments), "--db", tmp_path / "runs.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err
