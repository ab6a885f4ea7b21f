"""What a cell of the long runs will cost, before anybody starts one: some steps of each kind, scaled up.

python -m experiments.page.costs --text data/wikitext-2     writes costs.json beside this and docs/results.md
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks._record import circumstances
from experiments import synthetic_bottleneck
from experiments.harness.cells import Scale, Settings
from experiments.harness.corpus import corpus
from experiments.harness.markdown import markdown_table
from experiments.harness.options import text_of
from experiments.harness.places import PAGE
from experiments.language.plan import LARGE, LONG, SEEDS, long_cell, recipe, search
from experiments.language.tables import NAMES, PAPER_COST
from experiments.models.awd_lstm import Shape
from experiments.models.training import _prepare, step_bytes
from experiments.synthetic.learning import Problem, learn
from experiments.synthetic.rounds import RATES

PATH = Path(__file__).parent / "costs.json"
_WARM_UP, _STEPS = 5, 30
# Not in the plan of the long runs: this is what it would cost.
_LEFT_OUT = (("mos-plif", 15),)
_BEGIN, _END = (f"<!-- {word} long_costs -->" for word in ("begin", "end"))


def seconds_an_epoch(settings: Settings, text: Path) -> float:
    """The median of some steps' processor seconds, without the first few, times the steps of an epoch."""
    words = corpus(text, vocabulary=settings["vocabulary"])
    shape, schedule = recipe(settings, len(words.words))
    with torch.random.fork_rng():
        training = _prepare(shape, schedule, words)
        training.model.train()
        stretch = schedule.stretch
        spent = []
        for number in range(_WARM_UP + _STEPS):
            started = time.process_time()
            training._step(number * stretch, (number + 1) * stretch, None)
            spent.append(time.process_time() - started)
    return median(spent[_WARM_UP:]) * (len(training.streams) - 1) / stretch


def megabytes_a_step(settings: Settings, text: Path) -> float:
    """The most that PyTorch allocates at a time in a step, parameters not counted."""
    words = corpus(text, vocabulary=settings["vocabulary"])
    return step_bytes(*recipe(settings, len(words.words)), words) / 1e6


def language_models(text: Path) -> list[dict[str, Any]]:
    rate = min(cell["schedule"]["rate"] for cell in search())
    planned = [cell for cell in search() if cell["schedule"]["rate"] == rate]
    left_out = [long_cell(LARGE, head, mixtures, 0, rate, "search") for head, mixtures in _LEFT_OUT]
    return [
        {
            "part": cell["part"], "head": cell["head"], "mixtures": cell["shape"]["mixtures"],
            "seconds": round(seconds_an_epoch(cell, text), 1),
            "megabytes": round(megabytes_a_step(cell, text), 1),
        }
        for cell in (*planned, *left_out)
    ]  # fmt: skip


def table(measured: Sequence[Mapping[str, Any]]) -> str:
    """A row for each head and size: an epoch, a cell at most, and all cells with their search."""
    rows = []
    linear = {cell["part"]: cell["seconds"] for cell in measured if cell["head"] == "linear"}
    for cell in measured:
        sizes = LONG[cell["part"]]
        mixture = f", K = {cell['mixtures']}" if cell["head"].startswith("mos") else ""
        whole = sizes["schedule"]["epochs"] * cell["seconds"] / 3600
        searched = 3 * sizes["search"]["epochs"] * cell["seconds"] / 3600
        rows.append(
            [
                cell["part"], f"{NAMES[cell['head']]}{mixture}", f"{cell['seconds']:,.0f}",
                f"{cell['seconds'] / linear[cell['part']]:.2f} ×", _paper_cost(cell),
                f"{cell['megabytes']:.0f}", sizes["schedule"]["epochs"], f"{whole:.1f}",
                f"{SEEDS * whole + searched:.1f}",
            ]
        )  # fmt: skip
    columns = [
        "size",
        "head",
        "seconds per epoch",
        "against linear",
        "the paper's",
        "MB in a step",
        "epochs, at most",
        "hours per cell",
        "hours, all seeds and the search",
    ]
    return markdown_table(columns, rows, text_columns=2)


def _paper_cost(cell: Mapping[str, Any]) -> str:
    """That of a mixture is for fifteen components."""
    is_as_published = not cell["head"].startswith("mos") or cell["mixtures"] == Shape.mixtures
    return PAPER_COST.get(cell["head"], "") if is_as_published else ""


def synthetic_hours() -> dict[int, float]:
    """Processor hours of the long grid by M, if every cell needs three rounds: one visit, scaled up."""
    hours: dict[int, float] = {}
    for cell in synthetic_bottleneck.cells(Scale.LONG):
        problem = Problem(cell["alpha"], cell["classes"], cell["contexts"], seed=cell["seed"])
        for number in range(problem.count):  # drawn once, whatever the number of visits
            problem.target(number)
        started = time.process_time()
        learn(problem, cell["head"], features=cell["features"], visits=1)
        # A round, one twice as long, and one four times as long; before the first seed's, the search.
        rounds = 7 + (len(RATES) if cell["seed"] == 0 else 0)
        seconds = rounds * cell["visits"] * (time.process_time() - started)
        hours[cell["classes"]] = hours.get(cell["classes"], 0.0) + seconds / 3600
    return {classes: round(value, 1) for classes, value in hours.items()}


def section(record: Mapping[str, Any]) -> str:
    """What docs/results.md says of the costs."""
    grid = "; ".join(
        f"M = {int(classes):,}: {hours:.1f}" for classes, hours in record["synthetic_hours"].items()
    )
    return "\n\n".join(
        [
            "Processor time that the long runs are expected to take, from a few steps of each kind, measured "
            "one after the other:",
            table(record["language_models"]),
            f"Hours of the synthetic grid with its search, if every cell ends after three rounds: {grid}. "
            "With all five rounds, about 3.5 times as many.",
            f"`python -m experiments.page.costs --text DIRECTORY` · {record['date']} · "
            f"commit {record['commit']} · {record['machine']}",
        ]
    )


def with_costs(page: str, record: Mapping[str, Any]) -> str:
    """The page with that in its place."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{section(record)}\n{_END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.page.costs", description=__doc__)
    text_of(parser)
    torch.set_num_threads(1)
    measured = language_models(parser.parse_args().text)
    record = {**circumstances(), "language_models": measured, "synthetic_hours": synthetic_hours()}
    PATH.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(PATH.read_text())
    PAGE.write_text(with_costs(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    print(section(record))


if __name__ == "__main__":
    main()
