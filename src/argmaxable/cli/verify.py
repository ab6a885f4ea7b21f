"""argmaxable verify: a proven verdict for every class of a model's output layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from argmaxable.bundle import write_bundle
from argmaxable.cli.progress import progress_bar
from argmaxable.domain import parse_domain
from argmaxable.errors import InputError
from argmaxable.load import load_head
from argmaxable.report.text import as_record, summary
from argmaxable.result import Result
from argmaxable.run.session import Algorithm
from argmaxable.verify import verify as verify_head

_EPILOG = """\b
Examples:
  argmaxable verify model.onnx
  argmaxable verify head.npz --domain box:0:inf --output proofs
  argmaxable verify model.onnx --only 3,17,20-40 --json

\b
Exit codes: 0 all argmaxable, 1 some unargmaxable, 2 bad input, 3 some undecided or interrupted.
"""


def verify(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file: .onnx, .npz (arrays W, b, labels) or .npy.")
    ],
    domain: Annotated[
        str, typer.Option(help="Inputs of the head to consider: everywhere, box:R, box:LO:HI or ball:R.")
    ] = "box:100",
    only: Annotated[str | None, typer.Option(help="Classes to verify, e.g. 3,17,20-40.")] = None,
    method: Annotated[
        Algorithm, typer.Option(help="Run one algorithm alone; the default uses whatever settles a class.")
    ] = Algorithm.AUTO,
    patience: Annotated[
        int | None, typer.Option(help="Reflection steps (default 30; 2500 when alone).")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes to use (default: one per core).")] = None,
    seed: Annotated[
        int, typer.Option(help="Changes the order of work and the evidence, never a status.")
    ] = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Stop after so many seconds and keep what is proven.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write a proof bundle into this folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    tensor: Annotated[
        str | None, typer.Option(help="Name of the weight tensor, when it isn't found.")
    ] = None,
    bias_tensor: Annotated[str | None, typer.Option(help="Name of the bias tensor.")] = None,
    transpose: Annotated[bool, typer.Option(help="The weight tensor is stored the other way round.")] = False,
    no_db: Annotated[bool, typer.Option("--no-db", help="Keep no record of this run.")] = False,
) -> None:
    """Tell for every class of MODEL's output layer whether any input can make it the argmax."""
    feature_domain = parse_domain(domain)
    chosen = None if only is None else parse_classes(only)
    head = load_head(model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose)
    with progress_bar() as progress:
        result = verify_head(
            head, feature_domain, only=chosen, method=method, patience=patience, workers=workers,
            seed=seed, time_limit=time_limit, progress=progress,
        )  # fmt: skip
    if output is not None:
        write_bundle(result, output)
    if as_json:
        typer.echo(json.dumps(as_record(result)))
    else:
        typer.echo("\n".join(summary(result)))
        if output is not None:
            typer.echo(f"Proofs: {output} (re-check them with: argmaxable check {output} {model})")
    raise typer.Exit(exit_code(result))


verify.__doc__ = f"{verify.__doc__}\n\n{_EPILOG}"


def exit_code(result: Result) -> int:
    """0 all argmaxable, 1 some unargmaxable, 3 some undecided or interrupted."""
    if result.undecided or not result.is_complete:
        return 3
    return 1 if result.unargmaxable else 0


def parse_classes(text: str) -> list[int]:
    """Class numbers from "3,17,20-40"."""
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or (part.strip().endswith("-")):
            raise InputError(
                f"--only {text}: '{part.strip()}' is neither a class number nor a range like 20-40."
            )
        if max(len(first), len(last)) > 9:
            raise InputError(f"--only: '{part.strip()[:20]}' is beyond the classes of any head.")
        if last and int(last) < int(first):
            raise InputError(f"--only {text}: the range {part.strip()} runs backwards.")
        if last and int(last) - int(first) > 10**8:
            raise InputError(f"--only {text}: the range {part.strip()} is larger than any head.")
        chosen.extend(range(int(first), int(last or first) + 1))
    return chosen
