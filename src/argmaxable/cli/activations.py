"""argmaxable activations: which inputs a model's output layer really gets, as a domain to verify over."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.places import require_file_place
from argmaxable.cli.progress import progress_bar
from argmaxable.core.boxes import Box
from argmaxable.core.domains import write_domain
from argmaxable.models import model_name
from argmaxable.theory.ranges import PERCENT, Range, Ranges, measure_ranges


class _Scope(StrEnum):
    FEATURES = "features"
    OVERALL = "overall"


def activations(
    model: Annotated[str, Argument(metavar="MODEL", help="Directory of a Hugging Face model.")],
    text: Annotated[Path, Option(help="Text to run the model over, in UTF-8.")],
    target: Annotated[
        Path | None, Option(help="For translation models: the translation of the text, line by line.")
    ] = None,
    tokens: Annotated[int | None, Option(min=1, help="Stop after this many tokens.")] = None,
    percent: Annotated[
        float, Option(min=0, max=100, help="Share of tokens, in percent, that the token range covers.")
    ] = PERCENT,
    output: Annotated[
        Path | None, Option(help="Write a domain file, which verify --domain file:PATH takes.")
    ] = None,
    box: Annotated[
        _Scope, Option(help="The domain file's box: a range for each feature, or one for all.")
    ] = _Scope.FEATURES,
    device: options.TorchDevice = "cpu",
    as_json: options.Json = False,
) -> None:
    """Measure the range of the output layer's inputs over a text.

    Table 9 of Grivas et al. 2022 for any local model. Needs the extra hf. A measured range does not prove
    that nothing else can reach the layer.

    \b
    Examples:
      argmaxable activations models/gpt2 --text wiki.txt --output gpt2.domain.json
      argmaxable verify models/gpt2 --domain file:gpt2.domain.json
      argmaxable activations models/opus-mt-bg-en --text text.bg --target text.en

    \b
    Exit codes: 0, or 2 for bad input.
    """
    require_file_place("--output", output)
    # Late: needs PyTorch, which a base install does not have.
    from argmaxable.layers.language_model import LanguageModel, Text

    with progress_bar("running the model"):
        running = LanguageModel(model, device=device)
        ranges = measure_ranges(running.inputs(Text(text, target), tokens=tokens), percent=percent)
    record = {"model": model_name(model), "text": text.name} | _record(ranges)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_domain(output, _box(ranges, box), {"measured": record})
    if as_json:
        each = {"features": [[lo, hi] for lo, hi in zip(ranges.lo.tolist(), ranges.hi.tolist(), strict=True)]}
        click.echo(json.dumps(record | each))
    else:
        click.echo("\n".join([*_lines(record["model"], ranges), *_hint(output)]))


def _box(ranges: Ranges, scope: _Scope) -> Box:
    return ranges.box() if scope is _Scope.FEATURES else ranges.even_box()


def _record(ranges: Ranges) -> dict[str, Any]:
    return {
        "tokens": ranges.count,
        "overall": [ranges.overall.lo, ranges.overall.hi],
        "percent": ranges.percent,
        "token_range": [ranges.tokens.lo, ranges.tokens.hi],
    }


def _lines(name: str, ranges: Ranges) -> list[str]:
    widths = ranges.hi - ranges.lo
    narrow, wide = int(widths.argmin()), int(widths.argmax())
    return [
        f"{name}: {ranges.count:,} tokens, {len(ranges.lo):,} features",
        f"all values          {_range(ranges.overall)}",
        f"tokens, {ranges.percent:g} %        {_range(ranges.tokens)}  "
        "(this share has no value below the first number, the same share none above the second)",
        f"widest feature      {_feature(ranges, wide)}",
        f"narrowest feature   {_feature(ranges, narrow)}",
    ]


def _range(found: Range) -> str:
    return f"[{found.lo:.4g}, {found.hi:.4g}]"


def _feature(ranges: Ranges, number: int) -> str:
    return f"{_range(Range(float(ranges.lo[number]), float(ranges.hi[number])))}  (feature {number})"


def _hint(output: Path | None) -> list[str]:
    return [] if output is None else [f"Domain file: {output} (verify with --domain file:{output})"]
