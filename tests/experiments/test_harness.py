"""The harness of the experiments: what it keeps, where it goes on, and what it writes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import toy_experiment

from experiments.harness import command, places, running
from experiments.harness.cells import Cell, Experiment, Long, Scale, Settings
from experiments.harness.publishing import with_section

TOY = toy_experiment.EXPERIMENT
NEEDS_TEXT = replace(TOY, needs_text=True)
COMMITTED = sorted(path.stem for path in places.RESULTS.glob("*.json"))
PAGE = "# Results\n\nBefore.\n<!-- begin toy -->\nold\n<!-- end toy -->\nAfter.\n"
LONG_PAGE = PAGE + "<!-- begin toy_long -->\nnothing\n<!-- end toy_long -->\n"

Run = Callable[..., None]


class Threads(ThreadPoolExecutor):
    """Takes the place of processes, which take half a second each to start."""

    def __init__(self, workers: int, **_: object) -> None:
        super().__init__(workers)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of its own for what experiments write: results, page, figures, kept cells."""
    return _set_up(tmp_path, monkeypatch)


@pytest.fixture
def long_place(place: Path) -> Path:
    """The same, with a page that has room for a long run."""
    (place / "results.md").write_text(LONG_PAGE)
    return place


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call an experiment's main with these arguments; cells are measured in a thread of this process."""
    monkeypatch.setattr(running, "ProcessPoolExecutor", Threads)
    return _runner(monkeypatch)


@pytest.fixture(scope="module")
def gone_on(tmp_path_factory: pytest.TempPathFactory) -> GoneOn:
    """A run whose last cell failed, and then the same command once more, in processes of their own."""
    place = tmp_path_factory.mktemp("gone_on")
    with pytest.MonkeyPatch.context() as patch:
        run = _runner(patch)
        _set_up(place, patch)
        patch.setenv("TOY_FAILS", "1")
        with pytest.raises(ArithmeticError, match="can't square 1"):
            run()
        after_failure = measured(place), (place / "results.md").read_text()
        patch.delenv("TOY_FAILS")
        run()
    return GoneOn(place, *after_failure)


@dataclass(frozen=True)
class GoneOn:
    """Where it ran, and what was there after the failure: the numbers measured, and the page."""

    place: Path
    numbers: list[str]
    page: str


def _set_up(place: Path, patch: pytest.MonkeyPatch) -> Path:
    for name, path in [
        ("ROOT", ""), ("CACHE", ".cache"), ("RESULTS", "results"), ("FIGURES", "figures"),
        ("PAGE", "results.md"),
    ]:  # fmt: skip
        patch.setattr(places, name, place / path)
    (place / "results").mkdir()
    (place / "results.md").write_text(PAGE)
    patch.setenv("TOY_NOTES", str(place / "notes"))
    return place


def _runner(patch: pytest.MonkeyPatch) -> Run:
    # The harness sets these for the processes it starts: not for the tests that come after.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        patch.setenv(name, "2")

    def call(*arguments: str, experiment: Experiment = TOY) -> None:
        patch.setattr(sys, "argv", ["toy", "--workers", "1", *arguments])
        command.main(experiment, "A toy.")

    return call


def measured(place: Path) -> list[str]:
    """The numbers that were measured, in order."""
    return [line.split()[0] for line in _notes(place)]


def _notes(place: Path) -> list[str]:
    path = place / "notes"
    return path.read_text().splitlines() if path.exists() else []


def squares(place: Path) -> list[int]:
    record = json.loads((place / "results" / "toy.json").read_text())
    return [cell["found"]["square"] for cell in record["cells"]]


# ---------------------------------------------------------------------- running


def test_a_failed_cell_keeps_the_finished_ones(gone_on: GoneOn) -> None:
    assert gone_on.numbers == ["3", "2"]


def test_a_failed_cell_leaves_the_page_alone(gone_on: GoneOn) -> None:
    assert gone_on.page == PAGE


def test_an_unfinished_run_goes_on_with_what_is_missing(gone_on: GoneOn) -> None:
    assert measured(gone_on.place) == ["3", "2", "1"]


def test_heavy_cells_are_measured_first_and_recorded_in_their_own_order(gone_on: GoneOn) -> None:
    assert measured(gone_on.place) == ["3", "2", "1"]
    assert squares(gone_on.place) == [9, 1, 4]


def test_a_cell_computes_on_one_thread(gone_on: GoneOn) -> None:
    assert {line.split()[1] for line in _notes(gone_on.place)} == {"1"}


def test_a_cell_computes_on_as_many_threads_as_asked_for_and_records_them(place: Path, run: Run) -> None:
    run("--threads", "2")
    assert {line.split()[1] for line in _notes(place)} == {"2"}
    record = json.loads((place / "results" / "toy.json").read_text())
    assert [cell["threads"] for cell in record["cells"]] == [2, 2, 2]


@pytest.mark.parametrize(("threads", "processes"), [("1", 6), ("4", 1), ("8", 1)])
def test_processes_share_the_cores_with_their_threads(
    monkeypatch: pytest.MonkeyPatch, threads: str, processes: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(sys, "argv", ["toy", "--threads", threads])
    run = running.run_of(TOY, None, Path(), command._options(TOY, None))
    assert (run.workers, run.threads) == (processes, int(threads))


def test_a_finished_run_writes_record_figure_and_page(gone_on: GoneOn) -> None:
    record = json.loads((gone_on.place / "results" / "toy.json").read_text())
    assert record["scale"] == "committed"
    assert {"date", "commit", "machine", "processor_seconds"} <= record.keys()
    assert (gone_on.place / "figures" / "toy_squares.png").exists()
    assert (gone_on.place / "results.md").read_text() == with_section(PAGE, TOY, record)


def test_fresh_measures_kept_cells_again(place: Path, run: Run, gone_on: GoneOn) -> None:
    shutil.copytree(gone_on.place / ".cache", place / ".cache")
    run("--fresh")
    assert measured(place) == ["3", "2", "1"]


def test_kept_cells_are_not_measured_again(place: Path, run: Run, gone_on: GoneOn) -> None:
    shutil.copytree(gone_on.place / ".cache", place / ".cache")
    run()
    assert measured(place) == []
    assert squares(place) == [9, 1, 4]


def test_the_commit_is_that_of_the_measuring_code(place: Path, run: Run, gone_on: GoneOn) -> None:
    shutil.copytree(gone_on.place / ".cache", place / ".cache")
    for path, commit in zip(sorted((place / ".cache" / "toy").iterdir()), ["aaa", "bbb", "bbb"], strict=True):
        path.write_text(json.dumps({**json.loads(path.read_text()), "commit": commit}))
    run()
    assert set(json.loads((place / "results" / "toy.json").read_text())["commit"].split(", ")) == {
        "aaa",
        "bbb",
    }


def test_only_cells_measured_now_are_compared_with_the_committed_ones(
    place: Path, run: Run, gone_on: GoneOn, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (".cache", "results"):
        shutil.copytree(gone_on.place / folder, place / folder, dirs_exist_ok=True)
    run()
    assert "no cell that is committed was measured again" in capsys.readouterr().out
    run("--fresh")
    assert "3 numbers of 3 cells compared with the committed ones, all within 1%." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--workers", "0"], "0 is not a number of processes"),
        (["--fresh", "--smoke"], "--fresh has nothing to forget"),
        (["--fresh", "--redraw"], "--fresh has nothing to forget"),
        (["--again"], "--again measures cells of --paper and --long"),
        (["--paper", "--parts", "small"], "--parts and --mixtures choose among the cells of --long"),
        (["--paper", "--mixtures", "3"], "--parts and --mixtures choose among the cells of --long"),
        (
            ["--long", "--mixtures", "three"],
            "'three' is not a list of whole numbers; expected one like 0,1,2",
        ),
    ],
)
def test_options_without_a_meaning_are_refused(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit):
        run(*arguments)
    assert complaint in capsys.readouterr().err


def test_a_model_that_can_not_be_read_is_no_traceback(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_REFUSES", "1")
    with pytest.raises(SystemExit, match=r"toy: no file 1\. Finished cells are stored"):
        run()
    assert measured(place) == ["3", "2"]


def test_an_interrupt_that_reaches_only_the_first_process_ends_the_others(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    started = subprocess.Popen(
        [sys.executable, "-m", "toy_experiment", "--smoke", "--workers", "1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={
            **os.environ, "PYTHONPATH": f"{root}{os.pathsep}{Path(__file__).parent}",
            "TOY_HANGS": "1", "TOY_NOTES": str(tmp_path / "notes"),
        },
        # What a shell starts in the background ignores SIGINT, and so would this process.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert started.stdout is not None
    worker = int(started.stdout.readline())
    started.send_signal(signal.SIGINT)
    _, said = started.communicate()  # ends when the worker, too, has closed its ends of the pipes
    assert started.returncode == 1
    assert said.endswith("(--smoke stores nothing).\n")
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_all_experiments_ask_for_a_text_before_the_first_begins(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "--text", str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Some experiments: no text. No valid part in" in done.stderr
    assert not done.stdout


def test_a_smoke_run_shows_its_table_and_writes_nothing(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--smoke")
    assert "| 2 | 4 |" in capsys.readouterr().out
    assert (place / "results.md").read_text() == PAGE
    assert sorted(path.name for path in place.iterdir()) == ["notes", "results", "results.md"]
    assert not list((place / "results").iterdir())


def test_redraw_measures_nothing_and_writes_the_same_page(place: Path, run: Run, gone_on: GoneOn) -> None:
    shutil.copytree(gone_on.place / "results", place / "results", dirs_exist_ok=True)
    run("--redraw")
    assert measured(place) == []
    assert (place / "results.md").read_text() == (gone_on.place / "results.md").read_text()


def test_redraw_without_results_says_what_to_do(run: Run) -> None:
    with pytest.raises(SystemExit, match=r"toy has no results in .*: run it without --redraw first"):
        run("--redraw")


# ---------------------------------------------------------------------- text


def test_missing_text_is_an_error_that_names_the_option(place: Path, run: Run) -> None:
    with pytest.raises(SystemExit, match=r"no text\. No valid part in .* --text DIRECTORY"):
        run("--text", str(place / "none"), experiment=NEEDS_TEXT)
    assert measured(place) == []


def test_text_reaches_the_cells_and_paper_scale_leaves_page_and_committed_results_alone(
    place: Path, run: Run
) -> None:
    text = place / "text"
    text.mkdir()
    for name in ("valid.txt", "test.txt"):
        (text / name).write_text("a b c\n")
    run("--paper", "--text", str(text), experiment=NEEDS_TEXT)
    assert {line.split()[2] for line in _notes(place)} == {str(text)}
    assert [path.name for path in (place / "results").iterdir()] == ["paper"]
    assert {path.name for path in (place / "results" / "paper").iterdir()} == {
        "toy.json",
        "toy.md",
        "toy_squares.png",
    }
    assert (place / "results.md").read_text() == PAGE


def test_what_one_text_gave_is_no_result_of_another(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for words in ("a b c\n", "a b d\n", "a b c\n"):
        texts.append(place / f"text{len(texts)}")
        texts[-1].mkdir()
        for name in ("valid.txt", "test.txt"):
            (texts[-1] / name).write_text(words)
    counts, digests = [], []
    for text in texts:
        run("--text", str(text), experiment=NEEDS_TEXT)
        counts.append(len(measured(place)))
        digests.append(json.loads((place / "results" / "toy.json").read_text())["text"])
    assert 0 < counts[0] < counts[1] == counts[2]  # the third has the first one's words
    assert digests[0] == digests[2] != digests[1]
    assert capsys.readouterr().out.count("of another text than the committed numbers") == 2


def test_a_smoke_run_needs_no_text(place: Path, run: Run) -> None:
    run("--smoke", "--text", str(place / "none"), experiment=NEEDS_TEXT)
    assert len(measured(place)) == 2


# ---------------------------------------------------------------------- the page


def record_of(*numbers: int) -> dict[str, object]:
    cells = [{"settings": {"number": n}, "found": {"square": n * n}, "seconds": 30.0} for n in numbers]
    return {"scale": "committed", "date": "2026-01-01", "commit": "abc", "machine": "a machine, 2 cores",
            "processor_seconds": 30.0 * len(numbers), "cells": cells}  # fmt: skip


def test_with_section_replaces_what_is_between_the_markers_only() -> None:
    page = with_section(PAGE, TOY, record_of(5))
    assert page.startswith("# Results\n\nBefore.\n<!-- begin toy -->\n")
    assert page.endswith("\n<!-- end toy -->\nAfter.\n")
    assert "old" not in page
    assert "*Euclid, Elements.* The paper reports: squares." in page
    assert "| 5 | 25 |" in page
    assert "2026-01-01 · commit abc · a machine, 2 cores · 0.5 processor minutes" in page


def test_with_section_again_changes_nothing() -> None:
    page = with_section(PAGE, TOY, record_of(5))
    assert with_section(page, TOY, record_of(5)) == page


@pytest.mark.parametrize("page", ["# Results\n", "<!-- begin toy -->\n", "<!-- end toy -->\n"])
def test_a_page_without_the_place_is_an_error_that_names_the_lines(page: str) -> None:
    with pytest.raises(ValueError, match="add the lines <!-- begin toy --> and <!-- end toy -->"):
        with_section(page, TOY, record_of(5))


@pytest.mark.parametrize("name", COMMITTED)
def test_the_page_shows_what_the_committed_results_say(name: str) -> None:
    experiment: Experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    record = json.loads((places.RESULTS / f"{name}.json").read_text())
    page = places.PAGE.read_text(encoding="utf-8")
    assert page == with_section(page, experiment, record), f"python -m experiments.{name} --redraw"


@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_results_are_of_the_cells_the_experiment_has_now(name: str) -> None:
    experiment: Experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    record = json.loads((places.RESULTS / f"{name}.json").read_text())
    wanted = json.loads(json.dumps([dict(cell) for cell in experiment.cells(Scale.COMMITTED)]))
    assert [cell["settings"] for cell in record["cells"]] == wanted


# ---------------------------------------------------------------------- a part of the cells

HEADED = replace(
    TOY, cells=lambda scale: [{"number": number, "head": f"h{number}", "seed": number} for number in (1, 2)]
)


def test_only_the_heads_asked_for_are_measured(place: Path, run: Run) -> None:
    run("--paper", "--heads", "h2", experiment=HEADED)
    assert measured(place) == ["2"]
    assert "1 of 2 cells are not finished." in (place / "results" / "paper" / "toy.md").read_text()


def test_a_head_that_no_cell_has_is_an_error(run: Run) -> None:
    with pytest.raises(SystemExit, match=r"toy has no head h3: choose among h1, h2\."):
        run("--paper", "--heads", "h3", experiment=HEADED)


def _long_cells(search: Sequence[Cell]) -> list[Settings]:
    return [{"part": cell.settings["part"], "number": 10 * cell.settings["number"]} for cell in search]


SEARCHED = replace(
    TOY,
    long=Long(
        lambda: [{"part": "small", "number": 4}, {"part": "large", "number": 5}],
        _long_cells,
        2,
        lambda search, cells: f"{len(search)} tried, {len(cells)} measured.",
    ),
)


def _long_record(place: Path) -> Any:
    return json.loads((place / "results" / "long" / "toy.json").read_text())


def test_only_the_part_asked_for_is_searched_and_measured(long_place: Path, run: Run) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    assert measured(long_place) == ["4", "40"]


MIXED = replace(
    TOY,
    long=Long(
        lambda: [{"number": count, "shape": {"mixtures": count}} for count in (3, 15)],
        lambda search: [{**cell.settings, "number": 10 * cell.settings["number"]} for cell in search],
        2,
    ),
)


def test_only_mixtures_of_the_size_asked_for_are_searched_and_measured(long_place: Path, run: Run) -> None:
    run("--long", "--mixtures", "3", experiment=MIXED)
    assert measured(long_place) == ["3", "30"]


def test_a_size_of_mixture_that_no_cell_has_is_an_error(run: Run) -> None:
    with pytest.raises(SystemExit, match=r"toy has no mixtures 4: choose among 3, 15\."):
        run("--long", "--mixtures", "4", experiment=MIXED)


def test_another_machine_continues_from_the_cells_in_the_repository(long_place: Path, run: Run) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    shutil.rmtree(long_place / ".cache")
    run("--long", experiment=SEARCHED)
    assert measured(long_place) == ["4", "40", "5", "50"]
    assert [cell["found"]["square"] for cell in _long_record(long_place)["cells"]] == [1600, 2500]


def test_a_long_run_has_a_place_of_its_own_on_the_page(long_place: Path, run: Run) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    before, _, section = (long_place / "results.md").read_text().partition("<!-- begin toy_long -->\n")
    assert before == PAGE
    assert section.startswith("| number | square |\n|--:|--:|\n| 40 | 1600 |\n\n1 tried, 1 measured.\n\n")
    assert "`python -m experiments.toy --long` · " in section
    assert (long_place / "figures" / "long_toy_squares.png").exists()


def test_a_page_says_how_many_cells_of_a_long_run_are_missing(
    long_place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "40")
    with pytest.raises(ArithmeticError):
        run("--long", experiment=SEARCHED)
    run(experiment=SEARCHED)
    run("--redraw", experiment=SEARCHED)
    assert "\n\n1 of 2 cells are not finished.\n\n" in (long_place / "results.md").read_text()


def test_cells_that_the_search_has_not_got_to_are_missing_too(long_place: Path, run: Run) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    assert "\n\n1 of 2 cells are not finished.\n\n" in (long_place / "results.md").read_text()


def test_a_long_run_that_fails_has_written_its_finished_cells(
    long_place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "40")
    with pytest.raises(ArithmeticError, match="can't square 40"):
        run("--long", experiment=SEARCHED)
    record = _long_record(long_place)
    assert [cell["found"]["square"] for cell in record["search"]] == [16, 25]
    assert [cell["found"]["square"] for cell in record["cells"]] == [2500]


def test_a_finished_cell_is_measured_again_and_the_page_says_what_came_of_it(
    long_place: Path, run: Run
) -> None:
    run("--long", experiment=SEARCHED)
    run("--long", "--again", "--parts", "small", experiment=SEARCHED)
    assert measured(long_place) == ["5", "4", "50", "40", "40"]
    (entry,) = _long_record(long_place)["again"]
    assert (entry["settings"]["number"], entry["numbers"], entry["different"]) == (40, 1, 0)
    said = "small. Except for times, all 1 numbers are identical."
    assert said in (long_place / "results.md").read_text()


def test_what_is_different_the_second_time_is_counted(
    long_place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--long", experiment=SEARCHED)
    monkeypatch.setenv("TOY_ERRS", "0.001")
    run("--long", "--again", "--parts", "small", experiment=SEARCHED)
    monkeypatch.setenv("TOY_ERRS", "0.5")
    run("--long", "--again", "--parts", "large", experiment=SEARCHED)
    entries = _long_record(long_place)["again"]
    assert [(entry["different"], entry["beyond_tolerance"]) for entry in entries] == [(1, 0), (1, 1)]
    page = (long_place / "results.md").read_text()
    assert "small. Of 1 numbers, 1 are not identical, and 0 differ by more than 1%." in page
    assert "large. Of 1 numbers, 1 are not identical, and 1 differ by more than 1%." in page
    assert f"with commit {entries[0]['commit']} after {entries[0]['first_commit']}: " in page


def test_what_was_measured_again_stays_in_the_record_of_a_run_that_continues(
    long_place: Path, run: Run
) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    run("--long", "--again", experiment=SEARCHED)
    run("--long", experiment=SEARCHED)
    record = _long_record(long_place)
    assert (len(record["cells"]), len(record["again"])) == (2, 1)


def test_a_second_measurement_of_a_cell_that_is_replaced_leaves_the_record(
    long_place: Path, run: Run
) -> None:
    run("--long", "--parts", "small", experiment=SEARCHED)
    run("--long", "--again", experiment=SEARCHED)
    other = Long(lambda: [{"part": "small", "number": 4}], lambda found: [{"part": "small", "number": 41}], 1)
    run("--long", experiment=replace(SEARCHED, long=other))
    record = _long_record(long_place)
    assert [cell["settings"]["number"] for cell in record["cells"]] == [41]
    assert record["again"] == []


def test_again_without_a_finished_cell_says_what_to_do(run: Run) -> None:
    with pytest.raises(SystemExit, match="no finished cell to measure again"):
        run("--long", "--again", experiment=SEARCHED)


def test_steps_try_a_machine_and_write_nothing(place: Path, run: Run) -> None:
    run("--paper", "--steps", "1")
    assert list((place / "results").iterdir()) == []
    assert not (place / ".cache").exists()


def test_a_device_that_is_not_there_is_an_error(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--device", "cuda:99")
    assert "--device cuda:99" in capsys.readouterr().err
