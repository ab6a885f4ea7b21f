"""argmaxable repair: the smallest change that makes unargmaxable classes argmaxable, written back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.answers import parse_classes
from argmaxable.cli.option_groups import Only, OptionGroup, takes_groups
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.select import Selection
from argmaxable.edit.repair.plan import DEFAULT_MARGIN, DEFAULT_SECONDS
from argmaxable.edit.repair.plan import repair as repair_head
from argmaxable.models.write import require_writable
from argmaxable.report.answer import counted, domain_line, domain_record
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model, within_bounds
from argmaxable.workflow.write_back import write_back

if TYPE_CHECKING:
    from argmaxable.edit.repair.plan import Repair
    from argmaxable.run.plan import Engine

_SHOWN = 12


@dataclass(frozen=True)
class RepairOptions(OptionGroup):
    """What the repaired head is to be like."""

    margin: Annotated[
        float, Option(help="Logits by which each repaired class must win at its best input.")
    ] = DEFAULT_MARGIN
    bias_only: Annotated[bool, Option("--bias-only", help="Change biases and never a row.")] = False
    even: Annotated[
        bool,
        Option(
            "--even",
            help="Change all biases, up and down, so that the largest change is least; the default raises "
            "few and lowers none.",
        ),
    ] = False


@takes_groups
def repair(
    model: options.Model,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Where to write the repaired copy, in MODEL's format."),
    ] = None,
    domain: Annotated[
        str,
        Option(
            help="Inputs of the head to consider: box:R, box:LO:HI, ball:R, file:PATH, or auto: what the "
            "file proves, its part within ±100 where that has no end."
        ),
    ] = DEFAULT_DOMAIN_TEXT,
    classes: Annotated[
        str | None, Option(help="Classes to repair, e.g. 3,17,20-40 (default: all unargmaxable ones).")
    ] = None,
    tokens: Annotated[list[str] | None, Option(help="Label of a class to repair; repeatable.")] = None,
    *,
    wish: RepairOptions,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the repair and write nothing.")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the output if it exists.")] = False,
    time_limit: Annotated[
        float, Option(help="After this many seconds, take the best repair found so far.")
    ] = DEFAULT_SECONDS,
    work: Annotated[options.EngineOptions, Only("workers")],
    as_json: options.Json = False,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, "labels")],
) -> None:
    """Change MODEL as little as possible so that every class can win.

    Every argmaxable class stays argmaxable. The result is verified before it is written. Everything
    in the file except the changed tensors stays bit for bit the same.

    \b
    Examples:
      argmaxable repair model.onnx --dry-run
      argmaxable repair model.onnx -o repaired.onnx
      argmaxable repair head.npz -o new.npz --classes 3,17 --bias-only

    \b
    Exit codes: 0 repaired (or planned), 2 bad input or no repair found.
    """
    target = _target(output, dry_run=dry_run)
    chosen = Selection(None if classes is None else tuple(parse_classes(classes)), tuple(tokens or ()))
    found = within_bounds(find_model(source.of(model), domain))
    if output is not None:
        require_writable(model, found.finding, output, overwrite=overwrite)
    done = _repaired(found, chosen, wish, seconds=time_limit, engine=work.engine())
    if target is not None:
        write_back(found, done.before, done.after, target, overwrite=overwrite)
    lines = [json.dumps(_record(done, found, target))] if as_json else _lines(done, found, target)
    click.echo("\n".join(lines))


def _target(output: Path | None, *, dry_run: bool) -> Path | None:
    if output is None and not dry_run:
        raise InputError(
            "where should the repaired model go? Pass -o OUT, or --dry-run to see the repair only."
        )
    return None if dry_run else output


def _repaired(
    found: FoundModel, chosen: Selection, wish: RepairOptions, *, seconds: float, engine: Engine
) -> Repair:
    head = found.head()
    with progress_bar("verifying") as progress:
        return repair_head(
            head, found.domain, only=chosen.of(head, found.finding.special), margin=wish.margin,
            bias_only=wish.bias_only, even=wish.even, seconds=seconds, engine=engine, progress=progress,
        )  # fmt: skip


def _lines(done: Repair, found: FoundModel, written: Path | None) -> list[str]:
    chosen = done.chosen.tolist()
    names = ", ".join(visible(done.before.label(class_id)) for class_id in chosen[:_SHOWN])
    more = f" and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
    lines = [
        f"repaired    {counted(len(chosen))}: {names}{more}",
        domain_line(done.domain, found.domain_source),
        f"margin      at least {done.margins.min():.4g} each, proven ({done.margin:g} asked for)",
    ]
    if done.reached is not None and done.least is not None:
        lines.append(f"biases      {_raised(done):,} changed, by at most {done.largest:.6g}")
        lines.append(
            f"            up to a constant for all: {done.reached:.6g}; at least {done.least:.6g} is needed"
        )
    lines.append(f"rows        {_rows(done)}")
    if len(done.moved):
        lines.append(
            f"            in {found.finding.weight.name}; whatever else uses that tensor sees the change too"
        )
    lines.append(f"logits      move by at most {done.movement:.4g} anywhere in the domain")
    never, open_ = len(done.result.unargmaxable), len(done.result.undecided)
    can = f"{len(done.result.argmaxable):,} of {done.before.classes:,} argmaxable, including all from before"
    lines.append(
        f"verified    {can}"
        + (f"; {never:,} still unargmaxable" if never else "")
        + (f"; {open_:,} undecided" if open_ else "")
        + (f"; {len(done.gained):,} more freed on the way" if len(done.gained) else "")
    )
    return [*lines, "nothing was written (--dry-run)" if written is None else f"written to {written}"]


def _raised(done: Repair) -> int:
    return int((done.before.biases() != done.after.biases()).sum())


def _rows(done: Repair) -> str:
    if not len(done.moved):
        return "none moved"
    return f"{len(done.moved):,} moved, by at most {100 * done.row_change:.3g} % of the usual length"


def _record(done: Repair, found: FoundModel, written: Path | None) -> dict[str, Any]:
    return {
        **domain_record(done.domain, found.domain_source),
        "margin": done.margin,
        "classes": done.chosen.tolist(),
        "margins": done.margins.tolist(),
        "biases_changed": _raised(done),
        "largest_bias_change": done.largest,
        "reached": done.reached,
        "least": done.least,
        "rows_moved": done.moved.tolist(),
        "largest_row_change": done.row_change,
        "largest_logit_movement": done.movement,
        "argmaxable": len(done.result.argmaxable),
        "unargmaxable": len(done.result.unargmaxable),
        "undecided": len(done.result.undecided),
        "also_freed": done.gained.tolist(),
        "seconds": done.seconds,
        "output": None if written is None else str(written),
    }
