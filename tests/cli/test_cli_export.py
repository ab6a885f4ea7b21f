"""argmaxable export: every format gives back the verdicts that were kept."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from keeping import BOX, CORNERS, keep, keep_some, lossy
from running import PROGRAM, Command, is_one_clear_line, without_progress

import argmaxable as am
from argmaxable.report.published import UNNUMBERED
from argmaxable.report.rows import COLUMNS, as_rows
from argmaxable.store import PublishedVerdict, open_store

NASTY = (
    '=HYPERLINK("http://x.test")',
    "comma, quote\" and 'tick'",
    "two\r\nlines",
    "\x1b[31m",
    "",
    "词\ud800",
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run 1 has labels of every unpleasant kind, run 2 was stopped, run 3 was published by others."""
    path = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(path, lossy(name="nasty", labels=NASTY))
    keep_some(path, lossy(), (0, 1, 5))
    with open_store(str(path)) as store:
        rows = [
            PublishedVerdict(0, "a", am.Status.ARGMAXABLE),
            PublishedVerdict(UNNUMBERED, "b", am.Status.UNARGMAXABLE),
        ]
        store.add_published("theirs", origin="a paper", family="", task="", rows=rows, domain=BOX)
    return path


def expected(db: Path, run_id: int = 1) -> list[dict[str, Any]]:
    """The rows as Python sees them."""
    with open_store(str(db)) as store:
        name = store.run(run_id).facts.name
        return list(as_rows(name, store.verdicts(run_id)))


def as_csv(row: dict[str, Any]) -> list[str]:
    return [
        "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell) for cell in row.values()
    ]


def without_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# ---------------------------------------------------------------------- rows


def test_rows_have_the_verdicts_in_full() -> None:
    result = am.verify(lossy(), BOX, engine=am.Engine(workers=1))
    rows = list(as_rows("model", result.verdicts))
    assert [row["class"] for row in rows] == list(range(6))
    assert [row["status"] for row in rows] == [verdict.status for verdict in result.verdicts]
    assert [row["upper"] for row in rows] == [verdict.upper for verdict in result.verdicts]
    assert all(list(row) == list(COLUMNS) for row in rows)


def test_tied_classes_name_the_first_of_their_group() -> None:
    rows = list(as_rows("model", am.verify(lossy(), BOX, engine=am.Engine(workers=1)).verdicts))
    assert [row["tie_group"] for row in rows] == [0, None, None, None, None, 0]


def test_every_cell_is_of_its_columns_type_or_missing() -> None:
    for row in as_rows("model", am.verify(lossy(), am.Everywhere(), engine=am.Engine(workers=1)).verdicts):
        assert all(row[name] is None or type(row[name]) is kind for name, kind in COLUMNS.items())
        assert all(cell is None or math.isfinite(cell) for cell in row.values() if isinstance(cell, float))


# ---------------------------------------------------------------------- formats


def test_json_lines_give_the_rows_back(command: Command, db: Path) -> None:
    ran = command("export", "1", "--db", db)
    assert ran.code == 0
    assert [json.loads(line) for line in ran.out.splitlines()] == expected(db)


def test_json_lines_in_a_file_are_those_that_are_printed(command: Command, db: Path, tmp_path: Path) -> None:
    assert command("export", "1", "-o", tmp_path / "v.jsonl", "--db", db).out == ""
    assert (tmp_path / "v.jsonl").read_bytes().decode() == command("export", "1", "-o", "-", "--db", db).out


def test_csv_gives_the_rows_back(command: Command, db: Path, tmp_path: Path) -> None:
    assert command("export", "nasty", "--format", "csv", "-o", tmp_path / "v.csv", "--db", db).code == 0
    with (tmp_path / "v.csv").open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    assert heading == list(COLUMNS)
    assert rows == [[without_surrogates(cell) for cell in as_csv(row)] for row in expected(db)]


def test_csv_ends_its_lines_as_the_rfc_says(command: Command, db: Path, tmp_path: Path) -> None:
    command("export", "3", "--format", "csv", "-o", tmp_path / "v.csv", "--db", db)
    assert (tmp_path / "v.csv").read_bytes().count(b"\r\n") == 3


def test_a_label_that_looks_like_a_formula_stays_what_it_is(command: Command, db: Path) -> None:
    rows = csv.DictReader(command("export", "1", "--format", "csv", "--db", db).out.splitlines(keepends=True))
    assert next(rows)["label"] == NASTY[0]


def test_parquet_gives_the_rows_back(command: Command, db: Path, tmp_path: Path) -> None:
    assert command("export", "1", "--format", "parquet", "-o", tmp_path / "v.parquet", "--db", db).code == 0
    table = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    rows = [row | {"label": without_surrogates(row["label"])} for row in expected(db)]
    assert table.to_pylist() == rows
    assert table.schema.field("lower").type == pyarrow.float64()


def test_the_suffix_of_the_output_decides_the_format(command: Command, db: Path, tmp_path: Path) -> None:
    for name, form in (("v.parquet", "parquet"), ("v.CSV", "csv"), ("v.jsonl", "jsonl"), ("v.txt", "jsonl")):
        assert command("export", "1", "-o", tmp_path / name, "--db", db).code == 0
        assert command("export", "1", "--format", form, "-o", tmp_path / f"{name}.told", "--db", db).code == 0
        assert (tmp_path / name).read_bytes() == (tmp_path / f"{name}.told").read_bytes()
    assert command("export", "1", "--format", "csv", "-o", tmp_path / "w.jsonl", "--db", db).code == 0
    assert (tmp_path / "w.jsonl").read_bytes() == (tmp_path / "v.CSV").read_bytes()


def test_parquet_is_written_in_batches_of_any_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argmaxable.report import parquet

    monkeypatch.setattr(parquet, "_BATCH", 4)
    rows = list(as_rows("model", am.verify(lossy(), BOX, engine=am.Engine(workers=1)).verdicts))
    parquet.write_parquet(iter(rows), tmp_path / "v.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "v.parquet")
    assert file.metadata.num_row_groups == 2
    assert file.read().to_pylist() == rows
    file.close()


def test_a_bundle_is_accepted_by_check(command: Command, tmp_path: Path) -> None:
    weight = np.random.default_rng(3).normal(size=(300, 8)).astype(np.float32)
    np.savez(tmp_path / "model.npz", W=weight)
    keep(tmp_path / "runs.db", am.load_head(str(tmp_path / "model.npz")))
    ran = command(
        "export", "1", "--format", "bundle", "-o", tmp_path / "proofs", "--db", tmp_path / "runs.db"
    )
    assert ran.code == 0
    checked = command("check", tmp_path / "proofs", tmp_path / "model.npz")
    assert (checked.code, checked.out[:26]) == (0, "300 of 300 verdicts proven")


def test_a_bundle_of_a_stopped_run_proves_what_was_decided(
    command: Command, db: Path, tmp_path: Path
) -> None:
    command("export", "2", "--format", "bundle", "-o", tmp_path / "proofs", "--db", db)
    found = am.recheck(am.read_bundle(tmp_path / "proofs"), lossy())
    assert (found.proven, found.missing, found.failures) == (3, 3, ())
    assert json.loads((tmp_path / "proofs" / "manifest.json").read_text())["complete"] is False


def test_published_verdicts_are_exported_without_what_they_do_not_tell(command: Command, db: Path) -> None:
    rows = [json.loads(line) for line in command("export", "theirs", "--db", db).out.splitlines()]
    assert sorted((row["class"] is None, row["label"], row["status"]) for row in rows) == [
        (False, "a", "argmaxable"),
        (True, "b", "unargmaxable"),
    ]
    assert all(row["lower"] is None and row["upper"] is None for row in rows)


# ---------------------------------------------------------------------- what can go wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["1", "--format", "parquet"], "Pass --output PATH"),
        (["1", "--format", "bundle", "-o", "-"], "Pass --output PATH"),
        (["3", "--format", "bundle", "-o", "proofs"], "without evidence"),
        (["4"], "argmaxable runs"),
        (["1", "-o", "no/such/folder/v.jsonl"], "can't write no/such/folder/v.jsonl: No such file"),
        (["1", "--format", "parquet", "-o", "no/such/v.parquet"], "can't write no/such/v.parquet: "),
    ],
)
def test_a_wrong_wish_is_one_clear_line(command: Command, db: Path, arguments: list[str], said: str) -> None:
    ran = command("export", *arguments, "--db", db)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_full_disk_is_one_clear_line(command: Command, db: Path, form: str) -> None:
    ran = command("export", "1", "--format", form, "-o", "/dev/full", "--db", db)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "No space left" in ran.err


def test_without_pyarrow_the_extra_is_named(
    command: Command, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = command("export", "1", "--format", "parquet", "-o", "v.parquet", "--db", db)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "argmaxable[parquet]" in ran.err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    # More lines than a pipe holds; with so many features no class is hard to decide.
    keep(db, am.Head(np.random.default_rng(0).normal(size=(2000, 64)), name="many"))
    shell = subprocess.Popen(
        [*PROGRAM, "export", "1", "--db", db], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert shell.stdout is not None
    assert shell.stdout.readline().startswith(b'{"model": "many"')
    shell.stdout.close()
    assert shell.stderr is not None
    assert without_progress(shell.stderr.read().decode()) == ""
    shell.stderr.close()
    assert shell.wait() == 0


def test_exports_have_no_path_in_them(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", W=CORNERS)
    keep(tmp_path / "runs.db", am.load_head(str(tmp_path / "model.npz")))
    for form in ("jsonl", "csv", "parquet"):
        command("export", "1", "--format", form, "-o", tmp_path / f"out.{form}", "--db", tmp_path / "runs.db")
    command("export", "1", "--format", "bundle", "-o", tmp_path / "proofs", "--db", tmp_path / "runs.db")
    for path in [*tmp_path.glob("out.*"), *(tmp_path / "proofs").iterdir()]:
        assert str(tmp_path).encode() not in path.read_bytes()
