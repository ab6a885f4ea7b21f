"""argmaxable inspect: what the output layer of a model is, before anything is verified."""

from __future__ import annotations

import typer

from argmaxable.cli import options
from argmaxable.labels import visible
from argmaxable.load import find_head
from argmaxable.load.finding import Finding

_MOST_SHOWN = 8


def inspect(
    model: options.Model,
    tensor: options.Tensor = None,
    bias_tensor: options.BiasTensor = None,
    transpose: options.Transpose = False,
    labels: options.LabelFile = None,
    revision: options.Revision = None,
    subfolder: options.Subfolder = None,
    cache_dir: options.CacheDir = None,
) -> None:
    """Show the output layer found in MODEL, what else it could be, and how to choose.

    \b
    Examples:
      argmaxable inspect model.onnx
      argmaxable inspect model.safetensors --tensor embeddings.word_embeddings.weight

    \b
    Exit codes: 0 a head was found, 2 bad input.
    """
    finding = find_head(
        model, tensor=tensor, bias_tensor=bias_tensor, transpose=transpose, labels=labels,
        revision=revision, subfolder=subfolder, cache_dir=cache_dir,
    )  # fmt: skip
    typer.echo("\n".join(describe(finding)))


def describe(finding: Finding) -> list[str]:
    """The finding as lines of text."""
    lines = [
        f"format       {finding.format}",
        f"head         {finding.classes:,} classes × {finding.features:,} features",
        f"weight       {finding.weight}",
        f"             {finding.why}",
        f"bias         {finding.bias or 'none'}",
        f"labels       {_labels(finding)}",
    ]
    if finding.inputs is not None:
        lines.append(f"features     {finding.inputs.description}")
        proven = finding.inputs.domain
        lines.append(
            f"domain       {'not known from the file' if proven is None else f'{proven} (--domain auto)'}"
        )
    lines += [f"note         {note}" for note in finding.notes]
    if finding.alternatives:
        lines.append("other tensors that could be the head (choose with --tensor NAME, --transpose to flip):")
        lines += [f"             {info}" for info in finding.alternatives[:_MOST_SHOWN]]
        if len(finding.alternatives) > _MOST_SHOWN:
            lines.append(f"             and {len(finding.alternatives) - _MOST_SHOWN} more")
    return lines


def _labels(finding: Finding) -> str:
    if finding.labels is None:
        return "none (pass --labels FILE)"
    names = finding.labels.names
    shown = "  ".join(visible(name) for name in names[:_MOST_SHOWN])
    padding = f", {finding.padding:,} rows of padding" if finding.padding > 0 else ""
    return f"{len(names):,} from {finding.labels.source}{padding}: {shown} …"
