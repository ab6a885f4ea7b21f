"""argmaxable prune: a head without the classes that can never be its argmax, with the proof."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.edit.prune import prune as prune_head
from argmaxable.edit.prune import require_prunable, write_id_map, write_pruned
from argmaxable.proofs.bundle import write_bundle
from argmaxable.report.answer import answer, counted, domain_line, domain_record
from argmaxable.report.text import tally_of
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT
from argmaxable.workflow.verify_model import verify_model


@takes_groups
def prune(
    model: options.Model,
    output: Annotated[Path, Option("--output", "-o", help="The pruned head, .npz or .safetensors.")],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    *,
    work: Annotated[options.EngineOptions, Only("workers")],
    time_limit: options.TimeLimit = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace existing files.")] = False,
    as_json: options.Json = False,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, "labels")],
) -> None:
    """Write the output layer without the classes that never win.

    Also writes OUTPUT.ids.json, a map of class numbers, and the folder OUTPUT.proofs, which shows
    that the argmax is the same at every input of the domain. The model itself is not changed.

    \b
    Examples:
      argmaxable prune model.onnx -o head.npz
      argmaxable prune head.safetensors -o small.safetensors --domain box:0:10

    \b
    Exit codes: 0 pruned, 2 bad input or nothing to prune, 3 pruned, but some
    classes are undecided and stay.
    """
    require_prunable(output)
    id_map, proofs = (output.with_name(output.name + end) for end in (".ids.json", ".proofs"))
    _require_free(model, (output, id_map, proofs), overwrite=overwrite)
    with progress_bar("reading the model") as progress:
        done = verify_model(
            source.of(model), domain, engine=work.engine(), time_limit=time_limit, progress=progress
        )
    result = done.result
    pruned = prune_head(result)
    finding = done.finding
    names = finding.weight.name, "bias" if finding.bias is None else finding.bias.name
    write_bundle(pruned.proof, proofs)
    write_id_map(pruned, id_map, overwrite=overwrite)
    write_pruned(pruned, output, names, overwrite=overwrite)
    before, after = pruned.before.classes, pruned.head.classes
    if as_json:
        record = {"classes_before": before, "classes_after": after, "undecided": len(result.undecided)}
        written = {"output": str(output), "ids": str(id_map), "proofs": str(proofs)}
        click.echo(json.dumps(record | domain_record(result.domain, result.domain_source) | written))
    else:
        click.echo(answer(tally_of(result)))
        click.echo(domain_line(result.domain, result.domain_source))
        click.echo(f"Head without {before - after:,} of them, {counted(after)}: {output}")
        click.echo(f"Old and new class numbers: {id_map}")
        click.echo(f"Proof that no argmax changes: {proofs} (argmaxable check {proofs} {model})")
    raise click.exceptions.Exit(3 if result.undecided else 0)


def _require_free(model: str, targets: tuple[Path, ...], *, overwrite: bool) -> None:
    for target in targets:
        if target.exists() and os.path.exists(model) and os.path.samefile(model, target):
            raise InputError(
                f"{target} is the model itself, which is never overwritten. Choose another name."
            )
        if target.exists() and not overwrite:
            raise InputError(f"{target} exists already. Pass --overwrite to replace it.")
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"{target} can't be written: {target.parent} is missing or read-only.")
