"""argmaxable inspect: what the output layer of a model is, before anything is verified."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from argmaxable.cli import options
from argmaxable.cli.option_groups import takes_groups
from argmaxable.core.labels import visible
from argmaxable.models.finding import Finding

_MOST_SHOWN = 8
# Labels can be whole phrases: those of ImageNet have 20 characters on average, some 100.
_WIDEST_LABELS = 76
_OUTPUTS = {
    "sigmoid": "sigmoid: each label by itself; `argmaxable sets` asks which sets of labels can be predicted",
    "softmax": "softmax: one class at a time",
}


@takes_groups
def inspect(
    model: options.Model,
    *,
    source: options.ModelOptions,
    as_json: options.Json = False,
) -> None:
    """Show the output layer found in MODEL and what feeds it.

    Also lists other candidates for the output layer, and how to choose one.

    \b
    Examples:
      argmaxable inspect model.onnx
      argmaxable inspect model.safetensors --tensor embeddings.weight
      argmaxable inspect org/name --revision v2 --json

    \b
    Exit codes: 0 a head was found, 2 bad input, or a tensor that was named is not
    a head.
    """
    named = source.of(model)
    finding = named.find()
    if as_json:
        click.echo(json.dumps({"model": model} | as_record(finding)))
    else:
        click.echo("\n".join(describe(finding)))
    if named.tensor is not None or named.bias_tensor is not None:  # whatever its numbers are
        named.read(finding)


def describe(finding: Finding) -> list[str]:
    """The finding as lines of text."""
    # Names come from the file, and none of their characters may steer a terminal.
    return [f"{heading:<12} {visible(text)}" for heading, text in _rows(finding)]


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """Each line as its heading, empty where the line belongs to the one above, and its text."""
    yield "format", finding.format
    yield "head", f"{finding.classes:,} classes × {finding.features:,} features"
    yield "weight", str(finding.weight)
    yield "", finding.why
    yield "bias", _bias(finding)
    if finding.activation:
        yield "output", _OUTPUTS[finding.activation]
    yield "labels", _labels(finding)
    yield "inputs", "not known from the file" if finding.inputs is None else finding.inputs.description
    yield "domain", _domain(finding)
    yield from (("note", note) for note in finding.notes)
    if finding.alternatives:
        yield "others", "could be the head too; --transpose swaps classes and features:"
    for info in finding.alternatives[:_MOST_SHOWN]:
        yield "", f"--tensor {replace(info, name=shlex.quote(info.name))}"
    if len(finding.alternatives) > _MOST_SHOWN:
        yield "", f"and {len(finding.alternatives) - _MOST_SHOWN} more"


def _bias(finding: Finding) -> str:
    if finding.bias is None:
        return "none"
    # One number may stand for all classes.
    if math.prod(finding.bias.shape) not in (1, finding.classes):
        return f"{finding.bias}, which does not fit {finding.classes:,} classes: pass another --bias-tensor"
    return str(finding.bias)


def _labels(finding: Finding) -> str:
    if finding.labels is None:
        return "none (pass --labels FILE)"
    names, rows = finding.labels.names, finding.padding
    shown = "  ".join(visible(name) for name in names[:_MOST_SHOWN])
    if len(names) > _MOST_SHOWN or len(shown) > _WIDEST_LABELS:
        shown = f"{shown[:_WIDEST_LABELS]} …"
    found = f"{len(names):,} from {finding.labels.source}"
    if rows < 0:
        return f"{found}, {-rows:,} more than there are classes: pass others with --labels FILE"
    if rows and not finding.labels.may_be_padded:
        return f"{found}, {rows:,} fewer than there are classes: pass others with --labels FILE"
    padding = f", {rows:,} {'row' if rows == 1 else 'rows'} of padding" if rows else ""
    return f"{found}{padding}: {shown}"


def _domain(finding: Finding) -> str:
    if finding.inputs is None or finding.inputs.domain is None:
        return "not known from the file: choose one with verify --domain"
    return f"{finding.inputs.domain} (verify with --domain auto)"


def as_record(finding: Finding) -> dict[str, Any]:
    """The object that `inspect --json` prints."""
    labels, inputs = finding.labels, finding.inputs
    return {
        "format": finding.format,
        "classes": finding.classes,
        "features": finding.features,
        "weight": asdict(finding.weight),
        "why": finding.why,
        "bias": None if finding.bias is None else asdict(finding.bias),
        "activation": finding.activation or None,
        "labels": None
        if labels is None
        else {
            "source": labels.source,
            "count": len(labels.names),
            "padding": finding.padding,
            "first": labels.names[:_MOST_SHOWN],
        },
        "inputs": None if inputs is None else inputs.description,
        "domain": None if inputs is None or inputs.domain is None else str(inputs.domain),
        "notes": finding.notes,
        "alternatives": [asdict(info) for info in finding.alternatives],
    }
