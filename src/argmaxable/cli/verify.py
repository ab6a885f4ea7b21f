"""argmaxable verify: a proven verdict for every class of a model's output layer."""

from __future__ import annotations

import json
import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argmaxable.cli import ceiling as ceiling_options
from argmaxable.cli import options
from argmaxable.cli import top_k as top_k_options
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.remarks import remarks_on
from argmaxable.cli.report import write_file
from argmaxable.compute.budget import parse_bytes
from argmaxable.core.boxes import Everywhere
from argmaxable.core.errors import InputError
from argmaxable.core.result import Result
from argmaxable.core.verdict import Algorithm
from argmaxable.proofs.bundle import write_bundle
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.report.text import as_record, summary
from argmaxable.workflow.verify_model import Audit, Request, audit

if TYPE_CHECKING:
    from argmaxable.store import Store

_EPILOG = """\b
Examples:
  argmaxable verify model.onnx
  argmaxable verify head.npz --domain box:0:inf --output proofs
  argmaxable verify model.onnx --only 3,17,20-40 --json
  argmaxable verify model.onnx --dtype bf16
  argmaxable verify model.onnx --round-to int8
  argmaxable verify model.onnx --ceiling --temperature 0.7 --top-p 0.9
  argmaxable verify model.onnx --top-k 5 --output proofs

\b
Exit codes: 0 all argmaxable, 1 some unargmaxable, 2 bad input, 3 some undecided or interrupted.
"""


def verify(
    model: options.Model,
    domain: Annotated[
        str,
        typer.Option(
            help="Inputs of the head to consider: everywhere, box:R, box:LO:HI, ball:R, file:PATH (measured "
            "by argmaxable activations), or auto: the tightest that the file itself proves."
        ),
    ] = Request.domain,
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
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Share the work with a Ray cluster; local starts one here."),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="Where large products run: numpy, or a device of PyTorch such as cpu, cuda or mps."
        ),
    ] = "numpy",
    memory: Annotated[
        str | None, typer.Option(help="Memory to use at most, all processes together, e.g. 4GB.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Changes the order of work and the evidence, never a status.")
    ] = 0,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", "--max-seconds", help="Stop after so many seconds and keep what is proven."
        ),
    ] = None,
    dtype: Annotated[
        Float | None,
        typer.Option(help="Tell too which classes stay the argmax of logits computed in this format."),
    ] = None,
    round_to: options.RoundTo = None,
    ceiling: ceiling_options.Ceiling = False,
    temperature: ceiling_options.Temperature = None,
    top_p: ceiling_options.TopP = None,
    top_k: top_k_options.TopK = None,
    output: Annotated[Path | None, typer.Option(help="Write a proof bundle into this folder.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a page about the run into this .html file.")
    ] = None,
    as_json: options.Json = False,
    tensor: options.Tensor = None,
    bias_tensor: options.BiasTensor = None,
    transpose: options.Transpose = False,
    labels: options.LabelFile = None,
    revision: options.Revision = None,
    subfolder: options.Subfolder = None,
    cache_dir: options.CacheDir = None,
    db: options.Database = None,
    no_db: Annotated[bool, typer.Option("--no-db", help="Keep no record of this run.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Verify anew even if the database has this run.")
    ] = False,
) -> None:
    """Tell for every class of MODEL's output layer whether any input can make it the argmax."""
    top_k_options.require_places(top_k)
    about_probabilities = ceiling_options.question(ceiling, temperature, top_p)
    request = Request(
        model=model, domain=domain, only=None if only is None else tuple(parse_classes(only)),
        tokens=tuple(tokens or ()), script=script, skip_special=skip_special, skip_padding=skip_padding,
        method=method, patience=patience, seed=seed, tensor=tensor, bias_tensor=bias_tensor,
        transpose=transpose, labels=labels, revision=revision, subfolder=subfolder, cache_dir=cache_dir,
        round_to=round_to,
    )  # fmt: skip
    with progress_bar() as progress, _kept_in(db, no_db=no_db) as store:
        done = audit(
            request, store=store, overwrite=overwrite, workers=workers, ray=ray, device=device,
            memory=None if memory is None else parse_bytes(memory), time_limit=time_limit,
            progress=progress,
        )  # fmt: skip
    if output is not None:
        write_bundle(done.result, output)
    remarks = remarks_on(done.result, dtype)
    probabilities, is_complete = ceiling_options.ceiling_remarks(
        about_probabilities, done.result, output=output, time_limit=time_limit
    )
    places = top_k_options.top_k_remarks(top_k, done.result, output=output, time_limit=time_limit)
    written = None if report is None else write_file(_report(done.result, output), report)
    if as_json:
        extra = remarks.record | probabilities.record | places.record
        typer.echo(json.dumps(as_record(done.result) | {"run": done.run_id} | extra))
    else:
        extra_lines = [*remarks.lines, *probabilities.lines, *places.lines]
        typer.echo("\n".join([*summary(done.result), *extra_lines, *_hints(request, done, output)]))
        if written is not None:
            typer.echo(written)
    raise typer.Exit(exit_code(done.result) if is_complete else 3)


verify.__doc__ = f"{verify.__doc__}\n\n{_EPILOG}"


def _kept_in(db: str | None, *, no_db: bool) -> AbstractContextManager[Store | None]:
    if no_db:
        return nullcontext()
    from argmaxable.store import open_store  # loads a database library

    return open_store(db)


def _hints(request: Request, done: Audit, output: Path | None) -> list[str]:
    """What to do next."""
    lines, inputs = [], done.finding.inputs
    known = None if inputs is None else inputs.domain
    if request.domain == Request.domain and not isinstance(known, Everywhere | None):
        lines.append(f"The file itself proves the domain {known}: --domain auto verifies over it.")
    if done.was_known:
        lines.append(f"Found again as run {done.run_id}; --overwrite verifies anew.")
    elif done.run_id is not None:
        more = "" if done.result.is_complete else "; the same command goes on from here"
        lines.append(f"Kept as run {done.run_id} (argmaxable show {done.run_id}){more}.")
    if output is not None:
        check = shlex.join(["argmaxable", "check", str(output), request.model, *_choices(request)])
        lines.append(f"Proofs: {output} (re-check them with: {check})")
    return lines


def _report(result: Result, output: Path | None) -> str:
    # Templates and their engine, which few runs need.
    from argmaxable.report.page.content import content_of
    from argmaxable.report.page.html import page
    from argmaxable.report.page.subject import subject_of_result
    from argmaxable.report.page.weights import weights_of

    return page(content_of(subject_of_result(result, str(output or "proofs"))), weights_of(result.head))


def _choices(request: Request) -> list[str]:
    """The options by which the head was found, for another command to find it again."""
    given = {
        "--tensor": request.tensor,
        "--bias-tensor": request.bias_tensor,
        "--revision": request.revision,
        "--subfolder": request.subfolder,
        "--cache-dir": request.cache_dir,
        "--round-to": request.round_to,
    }
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return [*words, "--transpose"] if request.transpose else words


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
