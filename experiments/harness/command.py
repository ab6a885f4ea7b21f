"""The command line that every experiment has: measure what is missing, then write the record, the tables and
the figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.harness.again import measured_twice, say_again
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.options import DEFAULT_TEXT, checked, positive, require_text, scale_of, text_of
from experiments.harness.publishing import publish, publish_beside, record_of, say_whether_again, try_out
from experiments.harness.running import Run, run_of
from experiments.harness.storage import (
    cells_folder,
    committed,
    finished,
    forget,
    record_path,
    restore,
    write_json,
)

# The options that choose among cells, and what of a cell's settings (or its model's shape) each looks at.
_CHOICES = {"parts": "part", "heads": "head", "mixtures": "mixtures", "seeds": "seed"}


def main(experiment: Experiment, description: str | None) -> None:
    """The command line of one experiment."""
    options = _options(experiment, description)
    scale = _scale(options)
    if options.redraw:
        publish(experiment, committed(experiment))
        if (path := record_path(experiment, Scale.LONG)).exists():
            publish(experiment, json.loads(path.read_text()))
        return
    text = _text(experiment, scale, options.text)
    if options.again:
        _measure_again(experiment, scale, text, options)
        return
    is_trial = scale is Scale.SMOKE or options.steps is not None
    with cells_folder(experiment, text, is_trial=is_trial) as folder:
        if options.fresh:
            forget(folder)
        elif not is_trial:
            restore(experiment, scale, text, folder)
        run = run_of(experiment, text, folder, options)
        try:
            measured = _measure_all(run, scale, options)
        finally:
            # Of a run of days that was stopped, too, everybody may see what there is.
            search = finished(folder, _searched(experiment, scale))
            wanted = _wanted(experiment, scale, search)
            cells = finished(folder, wanted)
            record = record_of(experiment, scale, text, cells, search)
            if scale is not Scale.COMMITTED:
                record["missing"] = _planned(experiment, scale) - len(cells)
                record["again"] = _measured_twice(record_path(experiment, scale), cells)
            if not is_trial and scale is not Scale.COMMITTED:
                write_json(record_path(experiment, scale), record)
    if is_trial:
        try_out(experiment, record)
    elif scale is Scale.COMMITTED:
        say_whether_again(experiment, record, measured)
        write_json(record_path(experiment), record)
        publish(experiment, record)
    elif not record["cells"]:
        sys.exit(f"{experiment.name}: no cell is finished.")
    elif scale is Scale.LONG:
        publish(experiment, json.loads(json.dumps(record)))
    else:
        publish_beside(experiment, record)


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


def _measure_all(run: Run, scale: Scale, options: argparse.Namespace) -> list[Settings]:
    """Search where there is a search, then measure the cells asked for; returns those measured now. For parts
    and heads that were not asked for, nothing is searched."""
    experiment = run.experiment
    searched = _searched(experiment, scale)
    if searched:
        run.measure(_chosen(experiment, searched, options, ("parts", "heads", "mixtures")))
    wanted = _wanted(experiment, scale, finished(run.folder, searched))
    return run.measure(_chosen(experiment, wanted, options))


def _measure_again(
    experiment: Experiment, scale: Scale, text: Path | None, options: argparse.Namespace
) -> None:
    """Measure finished cells a second time, beside the first, and note in the record what came of it."""
    path = record_path(experiment, scale)
    record = json.loads(path.read_text()) if path.exists() else {"cells": []}
    chosen = _chosen(experiment, [cell["settings"] for cell in record["cells"]], options)
    if not chosen:
        sys.exit(f"{experiment.name}: no finished cell to measure again. Run it without --again first.")
    with cells_folder(experiment, text, is_trial=False) as kept:
        folder = kept / "again"
        folder.mkdir(exist_ok=True)
        if options.fresh:
            forget(folder)
        run = run_of(experiment, text, folder, options)
        run.measure(chosen)
        now = json.loads(json.dumps([asdict(cell) for cell in finished(folder, chosen)]))
    others = [entry for entry in record.get("again", ()) if entry["settings"] not in chosen]
    record["again"] = [*others, *measured_twice(record["cells"], now)]
    write_json(path, record)
    print(f"{experiment.name}: {say_again(record['again'])}")
    if scale is Scale.LONG:
        publish(experiment, record)


def _measured_twice(path: Path, cells: Sequence[Cell]) -> list[Any]:
    """What the record says of second measurements, of the cells that it will still have."""
    if not path.exists():
        return []
    there = [json.loads(json.dumps(dict(cell.settings))) for cell in cells]
    return [entry for entry in json.loads(path.read_text()).get("again", ()) if entry["settings"] in there]


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
