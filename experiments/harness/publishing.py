"""What was measured, as committed JSON, and its tables and figures in docs/results.md."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks._record import circumstances
from experiments.harness import places
from experiments.harness.again import compare, say_again
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.storage import cells_of, committed, digest_of, record_path


def record_of(
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
        **({"text": digest_of(text)} if text else {}),
        "processor_seconds": round(sum(cell.seconds for cell in (*search, *cells)), 1),
        **({"search": list(map(asdict, search))} if search else {}),
        "cells": list(map(asdict, cells)),
    }


def say_whether_again(
    experiment: Experiment, record: Mapping[str, Any], measured: Sequence[Settings]
) -> None:
    """Beside what is committed, before it is replaced. Kept cells may be the committed ones: not they."""
    if not record_path(experiment).exists():
        return
    # Through JSON, as the committed numbers went: it has no tuples, and only text for keys.
    new = [cell for cell in json.loads(json.dumps(record["cells"])) if cell["settings"] in measured]
    before = committed(experiment)
    if before.get("text") == record.get("text"):
        print(f"{experiment.name}: {compare(before['cells'], new)}")
    else:
        print(f"{experiment.name}: of another text than the committed numbers, which it replaces.")


def publish(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """The figures, and the table in its place in docs/results.md; long runs have figures and a place of their
    own."""
    from argmaxable.report.figures import save

    is_long = record["scale"] == Scale.LONG
    places.FIGURES.mkdir(exist_ok=True)
    for name, figure in experiment.figures(cells_of(record)).items():
        save(figure, places.FIGURES / f"{'long_' if is_long else ''}{name}.png")
    places.PAGE.write_text(
        with_section(places.PAGE.read_text(encoding="utf-8"), experiment, record), encoding="utf-8"
    )
    path = record_path(experiment, Scale(record["scale"])).relative_to(places.ROOT)
    print(f"{experiment.name}: {path} and docs/results.md are written. {_unfinished(record)}".rstrip())


def publish_beside(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """Record, table and figures in a folder of the scale, beside the committed ones; of unfinished runs what
    there is."""
    from argmaxable.report.figures import save

    folder = places.RESULTS / record["scale"]
    cells = cells_of(json.loads(json.dumps(record)))
    names = []
    for name, figure in experiment.figures(cells).items():
        save(figure, folder / f"{name}.png")
        names.append(f"![{name}]({name}.png)")
    page = [f"# {experiment.name}, {record['scale']}", _section(experiment, record), *names]
    (folder / f"{experiment.name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    print(f"{experiment.name}: {folder.relative_to(places.ROOT)} is written. {_unfinished(record)}".rstrip())


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
    cells = cells_of(record)
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


def try_out(experiment: Experiment, record: Mapping[str, Any]) -> None:
    """What publishing does, into a folder that is thrown away."""
    from argmaxable.report.figures import save

    cells = cells_of(json.loads(json.dumps(record)))
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in experiment.figures(cells).items():
            save(figure, Path(folder) / f"{name}.png")
    print(experiment.table(cells))
