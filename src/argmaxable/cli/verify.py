"""argmaxable verify: a proven verdict for every class of a model's output layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from argmaxable.bundle import write_bundle
from argmaxable.cli import options
from argmaxable.cli.progress import progress_bar
from argmaxable.domain import Domain, parse_domain
from argmaxable.errors import InputError
from argmaxable.head import Head
from argmaxable.load import find_head, read_head
from argmaxable.load.finding import Finding
from argmaxable.report.text import as_record, summary
from argmaxable.result import Result
from argmaxable.run.session import Algorithm
from argmaxable.select import classes_in_script, classes_named, padding_classes, special_classes
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
    model: options.Model,
    domain: Annotated[
        str,
        typer.Option(
            help="Inputs of the head to consider: everywhere, box:R, box:LO:HI, ball:R, or auto: the "
            "tightest that the file itself proves."
        ),
    ] = "box:100",
    only: Annotated[str | None, typer.Option(help="Classes to verify, e.g. 3,17,20-40.")] = None,
    tokens: Annotated[
        list[str] | None, typer.Option(help="Label of a class to verify; may be given several times.")
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="Verify classes in this script: latin, cyrillic, han, …")
    ] = None,
    skip_special: Annotated[
        bool, typer.Option("--skip-special", help="Leave out <s>, [CLS] and so on.")
    ] = False,
    skip_padding: Annotated[
        bool, typer.Option("--skip-padding", help="Leave out rows without a label.")
    ] = False,
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
    tensor: options.Tensor = None,
    bias_tensor: options.BiasTensor = None,
    transpose: options.Transpose = False,
    labels: options.LabelFile = None,
    revision: options.Revision = None,
    subfolder: options.Subfolder = None,
    cache_dir: options.CacheDir = None,
    no_db: Annotated[bool, typer.Option("--no-db", help="Keep no record of this run.")] = False,
) -> None:
    """Tell for every class of MODEL's output layer whether any input can make it the argmax."""
    given = None if domain == "auto" else parse_domain(domain)
    listed = None if only is None else parse_classes(only)
    finding = find_head(
        model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose, labels=labels,
        revision=revision, subfolder=subfolder, cache_dir=cache_dir,
    )  # fmt: skip
    feature_domain = proven_domain(finding) if given is None else given
    head = read_head(finding, model)
    chosen = chosen_classes(
        head, listed, tokens or [], script, skip_special=skip_special, skip_padding=skip_padding
    )
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
        if given is not None and finding.inputs is not None and finding.inputs.domain is not None:
            typer.echo(
                f"The file itself proves the domain {finding.inputs.domain}: --domain auto verifies over it."
            )
        if output is not None:
            typer.echo(f"Proofs: {output} (re-check them with: argmaxable check {output} {model})")
    raise typer.Exit(exit_code(result))


verify.__doc__ = f"{verify.__doc__}\n\n{_EPILOG}"


def proven_domain(finding: Finding) -> Domain:
    """The domain that the model file itself proves for the head's inputs."""
    if finding.inputs is None or finding.inputs.domain is None:
        said = "" if finding.inputs is None else f" ({finding.inputs.description})"
        raise InputError(f"--domain auto: the file does not say what reaches the head{said}. Pass a domain.")
    return finding.inputs.domain


def chosen_classes(
    head: Head,
    listed: list[int] | None,
    tokens: list[str],
    script: str | None,
    *,
    skip_special: bool,
    skip_padding: bool,
) -> list[int] | None:
    """The classes that all the user's wishes leave; None for all of them."""
    if not (tokens or script or skip_special or skip_padding):
        return listed
    if head.labels is None:
        raise InputError(
            "choosing classes by label needs labels, and the model has none. Pass --labels FILE."
        )
    left = set(range(head.classes)) if listed is None else set(listed)
    if tokens:
        left &= set(classes_named(head.labels, tokens))
    if script:
        left &= set(classes_in_script(head.labels, script))
    if skip_special:
        left -= set(special_classes(head.labels))
    if skip_padding:
        left -= set(padding_classes(head.labels))
    if not left:
        raise InputError("no class is left: loosen --only, --tokens, --script or --skip-….")
    return sorted(left)


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
