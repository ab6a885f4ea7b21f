"""What every experiment shares: cells that run in processes of their own and are kept as they finish,
progress, the committed JSON, and the tables in docs/results.md.

An experiment is a list of *cells* (settings that JSON can hold) and a function that measures one. A finished
cell is kept in .cache/experiments (of each text by itself), so the same command resumes after a stop. Runs of
days are committed cell by cell, and another machine continues from the committed ones. Each process computes
on one thread unless told otherwise: small models gain nothing from a second, and the numbers do not depend on
the machine's cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import InputError
from benchmarks._record import circumstances
from experiments._again import compare, measured_twice, name_of, say_again
from experiments._corpus import text_files
from experiments._means import Means, using
from experiments._options import DEFAULT_TEXT, checked, positive, require_text, scale_of, text_of
from experiments._progress import Shown, Waiting, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "experiments"
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "results.md"
FIGURES = ROOT / "docs" / "results"

Settings = Mapping[str, Any]
Measure = Callable[[Settings, Path | None], Mapping[str, Any]]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LOOK_EVERY = 1.0  # seconds
# The options that choose among cells, and what of a cell's settings (or its model's shape) each looks at.
_CHOICES = {"parts": "part", "heads": "head", "mixtures": "mixtures", "seeds": "seed"}


class Scale(StrEnum):
    """How much of an experiment is run."""

    SMOKE = "smoke"  # seconds: everything runs once, the numbers mean nothing
    COMMITTED = "committed"  # the results in the repository: minutes on two cores
    PAPER = "paper"  # the paper's own sizes, for whoever has the machine
    LONG = "long"  # until training converges, with rates searched first: hours to days on two cores


@dataclass(frozen=True)
class Cell:
    """One measurement: its settings and what it found, with the processor seconds it took, the commit of the
    code that took them, and on how many threads (which the last digits may depend on)."""

    settings: Settings
    found: Mapping[str, Any]
    seconds: float
    commit: str = ""
    threads: int = 1


@dataclass(frozen=True)
class Long:
    """Runs that take hours: cells that search (learning rates, say), and cells that use what these found.
    `count` is how many of the latter there will be. `table` shows the search and what the cells cost, after
    the experiment's own table."""

    search: Callable[[], Sequence[Settings]]
    cells: Callable[[Sequence[Cell]], Sequence[Settings]]
    count: int
    table: Callable[[Sequence[Cell], Sequence[Cell]], str] = lambda search, cells: ""


@dataclass(frozen=True)
class Experiment:
    """A claim of a paper and how it is tried.

    `measure` is a function of a module, so that other processes find it; it gets a cell's settings and the
    directory of text (None unless `needs_text`, and in a smoke run, which makes a text of its own). `weight`
    guesses a cell's cost in any unit: it orders the cells (long ones first) and makes the time left honest.
    """

    name: str
    source: str
    expected: str
    cells: Callable[[Scale], Sequence[Settings]]
    measure: Measure
    table: Callable[[Sequence[Cell]], str]
    figures: Callable[[Sequence[Cell]], Mapping[str, Figure]]
    weight: Callable[[Settings], float] = lambda settings: 1.0
    needs_text: bool = False
    long: Long | None = None
    reporter: str = "The paper reports"


def main(experiment: Experiment, description: str | None) -> None:
    """The command line of one experiment."""
    options = _options(experiment, description)
    scale = _scale(options)
    if options.redraw:
        _publish(experiment, _committed(experiment))
        if (path := _record_path(experiment, Scale.LONG)).exists():
            _publish(experiment, json.loads(path.read_text()))
        return
    text = _text(experiment, scale, options.text)
    if options.again:
        _measure_again(experiment, scale, text, options)
        return
    is_trial = scale is Scale.SMOKE or options.steps is not None
    with _kept_in(experiment, text, is_trial=is_trial) as folder:
        if options.fresh:
            _forget(folder)
        elif not is_trial:
            _restore(experiment, scale, text, folder)
        run = _run(experiment, text, folder, options)
        try:
            measured = _measure_all(run, scale, options)
        finally:
            # Of a run of days that was stopped, too, everybody may see what there is.
            search = _kept(folder, _searched(experiment, scale))
            wanted = _wanted(experiment, scale, search)
            cells = _kept(folder, wanted)
            record = _record(experiment, scale, text, cells, search)
            if scale is not Scale.COMMITTED:
                record["missing"] = _planned(experiment, scale) - len(cells)
                record["again"] = _measured_twice(_record_path(experiment, scale))
            if not is_trial and scale is not Scale.COMMITTED:
                _write_json(_record_path(experiment, scale), record)
    if is_trial:
        _try_out(experiment, record)
    elif scale is Scale.COMMITTED:
        _say_whether_again(experiment, record, measured)
        _write_json(_record_path(experiment), record)
        _publish(experiment, record)
    elif not record["cells"]:
        sys.exit(f"{experiment.name}: no cell is finished.")
    elif scale is Scale.LONG:
        _publish(experiment, json.loads(json.dumps(record)))
    else:
        _publish_beside(experiment, record)


def _options(experiment: Experiment, description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{experiment.name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"From {experiment.source}. {experiment.reporter}: {experiment.expected}",
    )
    scale_of(parser, has_long=experiment.long is not None).add_argument(
        "--redraw", action="store_true", help="only draw figures and tables again from the committed results"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the cells stored by earlier runs")
    parser.add_argument(
        "--again",
        action="store_true",
        help="of --paper and --long: measure finished cells a second time and record whether they agree",
    )
    parser.add_argument(
        "--workers", type=positive, help="processes (default: as many as there are cores for)"
    )
    parser.add_argument(
        "--threads",
        type=positive,
        default=1,
        help="threads of each process (default: 1); with more, a long cell ends sooner, and the last digits "
        "of its numbers may be different",
    )
    if experiment.needs_text:
        text_of(parser)
    else:
        parser.set_defaults(text=DEFAULT_TEXT)
    options = checked(parser)
    if options.fresh and (options.redraw or options.smoke):
        parser.error(
            "--fresh has nothing to forget here: --redraw measures nothing, and --smoke stores nothing."
        )
    if options.again and not (options.paper or options.long):
        parser.error("--again measures cells of --paper and --long: give one of these.")
    return options


def _scale(options: argparse.Namespace) -> Scale:
    for scale in (Scale.SMOKE, Scale.PAPER, Scale.LONG):
        if getattr(options, scale.value):
            return scale
    return Scale.COMMITTED


def _text(experiment: Experiment, scale: Scale, path: Path) -> Path | None:
    if not experiment.needs_text or scale is Scale.SMOKE:
        return None
    require_text(experiment.name, path)
    return path.resolve()


def _measure_all(run: _Run, scale: Scale, options: argparse.Namespace) -> list[Settings]:
    """Search where there is a search, then measure the cells asked for; returns those measured now. For parts
    and heads that were not asked for, nothing is searched."""
    experiment = run.experiment
    searched = _searched(experiment, scale)
    if searched:
        run.measure(_chosen(experiment, searched, options, ("parts", "heads", "mixtures")))
    wanted = _wanted(experiment, scale, _kept(run.folder, searched))
    return run.measure(_chosen(experiment, wanted, options))


def _measure_again(
    experiment: Experiment, scale: Scale, text: Path | None, options: argparse.Namespace
) -> None:
    """Measure finished cells a second time, beside the first, and note in the record what came of it."""
    path = _record_path(experiment, scale)
    record = json.loads(path.read_text()) if path.exists() else {"cells": []}
    chosen = _chosen(experiment, [cell["settings"] for cell in record["cells"]], options)
    if not chosen:
        sys.exit(f"{experiment.name}: no finished cell to measure again. Run it without --again first.")
    with _kept_in(experiment, text, is_trial=False) as kept:
        folder = kept / "again"
        folder.mkdir(exist_ok=True)
        if options.fresh:
            _forget(folder)
        run = _run(experiment, text, folder, options)
        run.measure(chosen)
        now = json.loads(json.dumps([asdict(cell) for cell in _kept(folder, chosen)]))
    others = [entry for entry in record.get("again", ()) if entry["settings"] not in chosen]
    record["again"] = [*others, *measured_twice(record["cells"], now)]
    _write_json(path, record)
    print(f"{experiment.name}: {say_again(record['again'])}")
    if scale is Scale.LONG:
        _publish(experiment, record)


def _measured_twice(path: Path) -> list[Any]:
    return list(json.loads(path.read_text()).get("again", ())) if path.exists() else []


def _searched(experiment: Experiment, scale: Scale) -> Sequence[Settings]:
    """The cells of the search, where there is one."""
    return experiment.long.search() if scale is Scale.LONG and experiment.long else []


def _wanted(experiment: Experiment, scale: Scale, search: Sequence[Cell]) -> Sequence[Settings]:
    """The cells of the scale; of a long run those that the search has got to."""
    if scale is Scale.LONG and experiment.long:
        return experiment.long.cells(search)
    return experiment.cells(scale)


def _planned(experiment: Experiment, scale: Scale) -> int:
    """How many cells there will be when all are finished."""
    return experiment.long.count if scale is Scale.LONG and experiment.long else len(experiment.cells(scale))


def _chosen(
    experiment: Experiment,
    wanted: Sequence[Settings],
    options: argparse.Namespace,
    names: Sequence[str] = tuple(_CHOICES),
) -> list[Settings]:
    """The cells with the parts, heads, mixtures and seeds asked for; a value that no cell has is an error."""
    chosen = list(wanted)
    for name in names:
        values, key = getattr(options, name), _CHOICES[name]
        known = list(dict.fromkeys(found for cell in wanted if (found := _trait(cell, key)) is not None))
        if strange := [value for value in values or () if value not in known]:
            there = f"choose among {', '.join(map(str, known))}" if known else "its cells have none"
            sys.exit(f"{experiment.name} has no {key} {strange[0]}: {there}.")
        chosen = [cell for cell in chosen if not values or _trait(cell, key) in values]
    return chosen


def _trait(settings: Settings, key: str) -> Any:
    """What a cell's settings, or else its model's shape, say; None where neither says it."""
    return {**settings.get("shape", {}), **settings}.get(key)


# ---------------------------------------------------------------------- running


@contextmanager
def _kept_in(experiment: Experiment, text: Path | None, *, is_trial: bool) -> Iterator[Path]:
    """Where finished cells are kept; a trial keeps none. What one text gave is no result of another."""
    if is_trial:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        folder_here = CACHE / experiment.name / (_digest(text) if text else "")
        folder_here.mkdir(parents=True, exist_ok=True)
        yield folder_here


def _digest(text: Path) -> str:
    """What a text consists of, whatever its files are called."""
    digest = hashlib.sha256()
    for part, paths in text_files(text).items():
        digest.update(part.encode())
        for path in paths:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _restore(experiment: Experiment, scale: Scale, text: Path | None, folder: Path) -> None:
    """Keep the cells here that a run on another machine has left in results/paper or results/long."""
    path = _record_path(experiment, scale)
    if scale is Scale.COMMITTED or not path.exists():
        return
    record = json.loads(path.read_text())
    if record.get("text") != (_digest(text) if text else None):
        return
    for cell in (*record.get("search", ()), *record["cells"]):
        kept = _path(folder, cell["settings"])
        if not kept.exists():
            _write_json(kept, cell)


def _forget(folder: Path) -> None:
    for pattern in ("*.json", "*.pt", "*.spent", "*.progress"):
        for path in folder.glob(pattern):
            path.unlink()


@dataclass(frozen=True)
class _Run:
    """What measuring cells needs to know."""

    experiment: Experiment
    text: Path | None
    folder: Path
    workers: int
    device: str
    steps: int | None = None
    threads: int = 1

    def measure(self, wanted: Sequence[Settings]) -> list[Settings]:
        """Measure the cells that are not kept yet; returns their settings."""
        missing = [settings for settings in wanted if not _path(self.folder, settings).exists()]
        missing.sort(key=self.experiment.weight, reverse=True)
        waiting = [
            Waiting(name_of(each), self.experiment.weight(each), _progress_path(_path(self.folder, each)))
            for each in missing
        ]
        for cell in waiting:
            cell.path.unlink(missing_ok=True)  # of a process that was interrupted
        finished = len(wanted) - len(missing)
        with Shown(self.experiment.name, waiting, total=len(wanted), finished=finished) as shown:
            self._compute(missing, waiting, shown)
        return missing

    def _compute(self, missing: Sequence[Settings], waiting: Sequence[Waiting], shown: Shown) -> None:
        # Read by the libraries as a worker loads them.
        os.environ.update(dict.fromkeys(_THREADS, str(self.threads)))
        commit = circumstances()["commit"]
        # Several processes on one GPU compete for its memory.
        workers = 1 if self.device.startswith("cuda") else self.workers
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_worker)
        try:
            running: dict[Future[None], Waiting] = {
                pool.submit(
                    _measure, self.experiment.measure, settings, self.text, commit,
                    _path(self.folder, settings), self.device, self.steps, self.threads,
                ): cell
                for settings, cell in zip(missing, waiting, strict=True)
            }  # fmt: skip
            while running:
                ready, _ = wait(running, timeout=_LOOK_EVERY, return_when=FIRST_COMPLETED)
                for future in ready:
                    future.result()
                    shown.finish(running.pop(future))
                shown.look()
        except KeyboardInterrupt:
            # Ctrl-C in a terminal has reached the workers too; `kill -INT` has not.
            for worker in active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            sys.exit(
                "Stopped. Run the same command again to resume: finished cells are stored, and training "
                "within a cell has checkpoints (--smoke stores nothing)."
            )
        except InputError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(
                f"{self.experiment.name}: {error} Finished cells are stored: run the same command again to "
                "resume."
            )
        finally:
            pool.shutdown(cancel_futures=True)


def _run(experiment: Experiment, text: Path | None, folder: Path, options: argparse.Namespace) -> _Run:
    """With as many processes as the cores have threads for, unless their number is given."""
    workers = options.workers or max(1, len(os.sched_getaffinity(0)) // options.threads)
    return _Run(experiment, text, folder, workers, options.device, options.steps, options.threads)


def _start_worker() -> None:
    # Ctrl-C reaches the whole group: only the process that started the workers should speak of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _measure(
    measure: Measure,
    settings: Settings,
    text: Path | None,
    commit: str,
    path: Path,
    device: str,
    steps: int | None,
    threads: int,
) -> None:
    started = time.process_time()  # not by the clock: others may want this machine too
    spent = path.with_suffix(".spent")  # by processes that were interrupted, up to their last checkpoint
    earlier = float(spent.read_text()) if spent.exists() else 0.0

    def seconds() -> float:
        return round(earlier + time.process_time() - started, 2)

    def note() -> None:
        spent.write_text(str(seconds()))

    progress = _progress_path(path)
    means = Means(
        device, path.with_suffix(""), steps=steps, saved=note, reached=lambda *far: write(progress, *far)
    )
    with using(means):
        found = measure(settings, text)
    cell = Cell(dict(settings), dict(found), seconds(), commit, threads)
    _write_json(path, asdict(cell))
    means.forget()
    spent.unlink(missing_ok=True)
    progress.unlink(missing_ok=True)


# ---------------------------------------------------------------------- keeping and showing


def _path(folder: Path, settings: Settings) -> Path:
    text = json.dumps(dict(settings), sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _progress_path(path: Path) -> Path:
    """Where a cell says how far it is."""
    return path.with_suffix(".progress")


def _record_path(experiment: Experiment, scale: Scale = Scale.COMMITTED) -> Path:
    folder = RESULTS if scale is Scale.COMMITTED else RESULTS / scale.value
    return folder / f"{experiment.name}.json"


def _committed(experiment: Experiment) -> Any:
    path = _record_path(experiment)
    if not path.exists():
        sys.exit(f"{experiment.name} has no results in {path} yet: run it without --redraw first.")
    return json.loads(path.read_text())


def _read(path: Path) -> Cell:
    return Cell(**json.loads(path.read_text()))


def _kept(folder: Path, wanted: Sequence[Settings]) -> list[Cell]:
    """The finished ones among these cells."""
    return [_read(path) for path in (_path(folder, settings) for settings in wanted) if path.exists()]


def _cells(record: Mapping[str, Any]) -> list[Cell]:
    return [Cell(**cell) for cell in record["cells"]]


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.rename(path)


def _record(
    experiment: Experiment, scale: Scale, text: Path | None, cells: Sequence[Cell], search: Sequence[Cell]
) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "source": experiment.source,
        "expected": experiment.expected,
        "scale": scale.value,
        **circumstances(),
        # Of the code that measured, which may be older than the code that writes this.
        "commit": ", ".join(dict.fromkeys(cell.commit for cell in (*search, *cells))),
        **({"text": _digest(text)} if text else {}),
        "processor_seconds": round(sum(cell.seconds for cell in (*search, *cells)), 1),
        **({"search": list(map(asdict, search))} if search else {}),
        "cells": list(map(asdict, cells)),
    }


def _say_whether_again(
    experiment: Experiment, record: Mapping[str, Any], measured: Sequence[Settings]
) -> None:
    """Beside what is committed, before it is replaced. Kept cells may be the committed ones: not they."""
    if not _record_path(experiment).exists():
        return
    # Through JSON, as the committed numbers went: it has no tuples, and only text for keys.
    new = [cell for cell in json.loads(json.dumps(record["cells"])) if cell["settings"] in measured]
    before = _committed(experiment)
    if before.get("text") == record.get("text"):
        print(f"{experiment.name}: {compare(before['cells'], new)}")
    else:
        print(f"{experiment.name}: of another text than the committed numbers, which it replaces.")


def _publish(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """The figures, and the table in its place in docs/results.md; long runs have figures and a place of their
    own."""
    from argmaxable.report.figures import save

    is_long = record["scale"] == Scale.LONG
    FIGURES.mkdir(exist_ok=True)
    for name, figure in experiment.figures(_cells(record)).items():
        save(figure, FIGURES / f"{'long_' if is_long else ''}{name}.png")
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), experiment, record), encoding="utf-8")
    path = _record_path(experiment, Scale(record["scale"])).relative_to(ROOT)
    print(f"{experiment.name}: {path} and docs/results.md are written. {_unfinished(record)}".rstrip())


def _publish_beside(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """Record, table and figures in a folder of the scale, beside the committed ones; of unfinished runs what
    there is."""
    from argmaxable.report.figures import save

    folder = RESULTS / record["scale"]
    cells = _cells(json.loads(json.dumps(record)))
    names = []
    for name, figure in experiment.figures(cells).items():
        save(figure, folder / f"{name}.png")
        names.append(f"![{name}]({name}.png)")
    page = [f"# {experiment.name}, {record['scale']}", _section(experiment, record), *names]
    (folder / f"{experiment.name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    print(f"{experiment.name}: {folder.relative_to(ROOT)} is written. {_unfinished(record)}".rstrip())


def with_section(page: str, experiment: Experiment, record: Mapping[str, Any]) -> str:
    """The page with this experiment's generated part replaced."""
    place = f"{experiment.name}_long" if record["scale"] == Scale.LONG else experiment.name
    begin, end = (f"<!-- {word} {place} -->" for word in ("begin", "end"))
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"docs/results.md has no place for {place}: add the lines {begin} and {end}.")
    return f"{before}{begin}\n{_section(experiment, record)}\n{end}{after}"


def _section(experiment: Experiment, record: Mapping[str, Any]) -> str:
    """What was measured, beside what the paper reports; of long runs also the search, and what is missing."""
    cells = _cells(record)
    minutes = record["processor_seconds"] / 60
    spent = f"{minutes / 60:.1f} processor hours" if minutes > 90 else f"{minutes:.1f} processor minutes"
    parts = [
        f"*{experiment.source}.* {experiment.reporter}: {experiment.expected}",
        experiment.table(cells).strip(),
        f"`{_command(experiment, record['scale'])}` · {record['date']} · {_commits(record)} · "
        f"{record['machine']} · {spent}",
    ]
    if experiment.long and record["scale"] == Scale.LONG:
        search = [Cell(**cell) for cell in record.get("search", ())]
        parts = [
            parts[1], experiment.long.table(search, cells), _unfinished(record),
            say_again(record.get("again", ())), parts[2],
        ]  # fmt: skip
    elif record["scale"] == Scale.PAPER:
        parts.append(_unfinished(record))
    return "\n\n".join(filter(None, parts))


def _commits(record: Mapping[str, Any]) -> str:
    """Of the code that measured the cells; some early cells did not record theirs."""
    commits = record["commit"].split(", ")
    known = f"commit {', '.join(filter(None, commits))}"
    if all(commits):
        return known
    unknown = sum(not cell["commit"] for cell in record["cells"])
    return f"{known} (not recorded for {unknown} of {len(record['cells'])} cells)"


def _unfinished(record: Mapping[str, Any]) -> str:
    missing = record.get("missing", 0)
    return f"{missing} of {missing + len(record['cells'])} cells are not finished." if missing else ""


def _command(experiment: Experiment, scale: str) -> str:
    chosen = "" if scale == Scale.COMMITTED else f" --{scale}"
    return (
        f"python -m experiments.{experiment.name}{chosen}"
        f"{' --text DIRECTORY' if experiment.needs_text else ''}"
    )


def _try_out(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """What publishing does, into a folder that is thrown away."""
    from argmaxable.report.figures import save

    cells = _cells(json.loads(json.dumps(record)))
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in experiment.figures(cells).items():
            save(figure, Path(folder) / f"{name}.png")
    print(experiment.table(cells))
