"""argmaxable rank: the rank of a model's log-probabilities, and how many of its directions it uses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import numpy as np
from numpy.typing import NDArray

from argmaxable.cli import options
from argmaxable.cli.option_groups import OptionGroup, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.models import model_name
from argmaxable.theory.rank import RankReport, measure_head, measure_rank, most_rank
from argmaxable.theory.spectrum import Rows, Spectrum, open_rows

if TYPE_CHECKING:
    from argmaxable.layers.language_model import LanguageModel, Text

_SHARES = (0.5, 0.9, 0.99)


class _Dtype(StrEnum):
    FLOAT32 = "float32"
    FLOAT64 = "float64"


@dataclass(frozen=True)
class _Linear:
    """What is said to have made the output: a linear softmax head with that many features."""

    features: int
    bias: bool

    @property
    def most(self) -> int:
        return most_rank(self.features, bias=self.bias)


@dataclass(frozen=True)
class _Measured:
    """The ranks of an output, by its features where there is a model, and the head that made it."""

    name: str
    report: RankReport
    inside: RankReport | None
    claim: _Linear | None


@dataclass(frozen=True)
class TextOptions(OptionGroup):
    """What to run a model over, and how; or its output."""

    text: Annotated[Path | None, Option(help="Text to run MODEL over, in UTF-8.")] = None
    target: Annotated[
        Path | None, Option(help="For translation models: the translation of the text, line by line.")
    ] = None
    logits: Annotated[
        Path | None,
        Option(help="Instead of a model: a .npy file of logits or log-probabilities, contexts × classes."),
    ] = None
    tokens: Annotated[int, Option(min=1, help="Stop after this many tokens of the text.")] = 10_000
    dtype: Annotated[_Dtype, Option(help="What the model computes in.")] = _Dtype.FLOAT32
    device: options.TorchDevice = "cpu"


@dataclass(frozen=True)
class RankOptions(OptionGroup):
    """How ranks are measured, and what they are tested against."""

    threshold: Annotated[
        float | None,
        Option(
            help="Singular values up to this share of the largest count as zero (default: the size "
            "of rounding errors)."
        ),
    ] = None
    features: Annotated[
        int | None, Option(min=1, help="With --logits: the number of features to test against.")
    ] = None
    bias: Annotated[bool, Option("--bias", help="With --features: the head has a bias.")] = False
    seed: Annotated[int, Option(help="Random seed of the sketch used for many classes.")] = 0


@takes_groups
def rank(
    model: Annotated[
        str | None, Argument(metavar="MODEL", help="Directory of a Hugging Face model, with --text.")
    ] = None,
    *,
    source: TextOptions,
    test: RankOptions,
    as_json: options.Json = False,
) -> None:
    """Measure the rank of a model's log-probabilities.

    It is at most d + 1 for a linear softmax head with d features, d + 2 with a bias.

    Also estimates the number of features from the output alone, and how evenly its directions are used.
    A model needs the extra hf, and is run over the text a few times.

    \b
    Examples:
      argmaxable rank models/gpt2 --text wiki.txt
      argmaxable rank --logits logits.npy
      argmaxable rank --logits logits.npy --features 400 --bias --json

    \b
    Exit codes: 0 the rank is one that a linear softmax head can have, 1 it is
    above, 2 bad input, 3 too few contexts to tell.
    """
    if test.threshold is not None and not 0 <= test.threshold < 1:
        raise InputError(
            f"--threshold is relative to the largest singular value: 0 ≤ T < 1, found {test.threshold}."
        )
    with progress_bar("measuring"):
        found = _of_model(model, source, test) if source.logits is None else _of_logits(model, source, test)
    report, inside, claim = found.report, found.inside, found.claim
    if as_json:
        click.echo(json.dumps({"model": found.name} | _record(report, inside, claim)))
    else:
        click.echo("\n".join(_lines(found.name, report, inside, claim)))
    raise click.exceptions.Exit(_exit_code(report, claim))


def _of_logits(model: str | None, source: TextOptions, test: RankOptions) -> _Measured:
    assert source.logits is not None
    if model is not None or source.text is not None or source.target is not None:
        raise InputError("--logits can't be combined with MODEL, --text or --target.")
    if test.bias and test.features is None:
        raise InputError("--bias needs --features.")
    claim = None if test.features is None else _Linear(test.features, test.bias)
    expected = None if claim is None else claim.most
    rows = open_rows(str(source.logits))
    report = measure_rank(rows, threshold=test.threshold, expected=expected, seed=test.seed)
    return _Measured(source.logits.name, report, None, claim)


def _of_model(model: str | None, source: TextOptions, test: RankOptions) -> _Measured:
    if model is None or source.text is None:
        raise InputError("pass MODEL and --text FILE, or --logits FILE.npy.")
    if test.features is not None or test.bias:
        raise InputError("--features and --bias only work with --logits. A model has them itself.")
    # Late: needs PyTorch, which a base install does not have.
    from argmaxable.layers.language_model import LanguageModel, Text

    running = LanguageModel(model, dtype=source.dtype.value, device=source.device)
    claim = _Linear(running.features, running.has_bias)
    run = _Source(running, Text(source.text, source.target), source.tokens)
    rows = run.log_probabilities()
    report = measure_rank(rows, threshold=test.threshold, expected=claim.most, seed=test.seed)
    return _Measured(model_name(model), report, run.by_features(test.threshold), claim)


@dataclass(frozen=True, eq=False)
class _Source:
    """A model and a text, as matrices that can be read again and again."""

    model: LanguageModel
    text: Text
    tokens: int

    def log_probabilities(self) -> Rows:
        from scipy.special import log_softmax  # late, so that other commands start without it

        def read() -> Iterator[NDArray[Any]]:
            return (
                log_softmax(step.logits, axis=1) for step in self.model.steps(self.text, tokens=self.tokens)
            )

        return Rows(self.model.classes, float(np.finfo(self.model.dtype).eps), read)

    def by_features(self, threshold: float | None) -> RankReport | None:
        """The same from the head's inputs, where the head is linear and nothing comes behind it."""
        head = self.model.head()
        first = next(self.model.steps(self.text, tokens=1))
        if head is None or not np.allclose(
            first.logits, first.features @ head.weight.T + head.biases(), rtol=1e-3, atol=1e-3
        ):
            return None

        def read() -> Iterator[NDArray[Any]]:
            return self.model.inputs(self.text, tokens=self.tokens)

        rows = Rows(head.features, float(np.finfo(self.model.dtype).eps), read)
        return measure_head(rows, head, threshold=threshold)


def _exit_code(report: RankReport, claim: _Linear | None) -> int:
    if claim is not None and report.plain.rank > claim.most:
        return 1
    return 0 if report.has_enough_contexts else 3


def _lines(name: str, report: RankReport, inside: RankReport | None, claim: _Linear | None) -> list[str]:
    plain, centred = report.plain, report.centred
    lines = [
        f"{name}: {report.contexts:,} contexts × {report.classes:,} classes",
        f"rank               {plain.rank:,}  ({_cut(plain)})",
        f"row means removed  {report.shifted.rank:,}  (the same for logits and log-probabilities)",
        f"column means too   {centred.rank:,}  "
        "(features seen in the output; one fewer than d behind a LayerNorm)",
    ]
    if inside is not None:
        lines.append(f"from the features  {inside.plain.rank:,}  (head's inputs and weights, in float64)")
    if claim is not None:
        can = "with a bias" if claim.bias else "without bias"
        verdict = "above" if plain.rank > claim.most else "within"
        lines.append(
            f"linear softmax     at most {claim.most:,}, with {claim.features:,} features {can}: {verdict} it"
        )
    if not report.has_enough_contexts:
        lines.append("The number of contexts limits this rank: pass more text.")
    return [
        *lines,
        *(_saturation(centred) if centred.rank else ["Nothing varies from context to context."]),
        *(["Singular values are those of a sketch: lower bounds."] if report.is_sketch else []),
    ]


def _cut(spectrum: Spectrum) -> str:
    """Which singular values count, and how clear that is."""
    if not spectrum.rank:
        return "all singular values are 0"
    gap = "none below" if math.isinf(spectrum.gap) else f"the next is {spectrum.gap:.3g} times smaller"
    share = spectrum.threshold / spectrum.values[0]
    return f"singular values above {spectrum.threshold:.3g}, {share:.2g} of the largest; {gap}"


def _saturation(spectrum: Spectrum) -> list[str]:
    """How evenly the directions are used."""
    held = (f"{share:.0%} by {_count(spectrum.directions_for(share))}" for share in _SHARES)
    return [
        f"variance           {', '.join(held)} directions; the first has {spectrum.shares[0]:.1%}",
        f"entropy            {spectrum.entropy:.3f} nats, an effective rank of {spectrum.effective_rank:.1f}",
    ]


def _count(number: int | None) -> str:
    return "more than were sketched" if number is None else f"{number:,}"


def _record(report: RankReport, inside: RankReport | None, claim: _Linear | None) -> dict[str, Any]:
    """The object that --json prints."""
    return {
        "contexts": report.contexts,
        "classes": report.classes,
        "rank": report.plain.rank,
        "features_by_output": report.features,
        "features": None if claim is None else claim.features,
        "bias": None if claim is None else claim.bias,
        "most_rank": None if claim is None else claim.most,
        "has_enough_contexts": report.has_enough_contexts,
        "is_sketch": report.is_sketch,
        "rank_from_features": None if inside is None else inside.plain.rank,
        "plain": _spectrum(report.plain),
        "shifted": _spectrum(report.shifted),
        "centred": _spectrum(report.centred),
    }


def _spectrum(spectrum: Spectrum) -> dict[str, Any]:
    return {
        "rank": spectrum.rank,
        "threshold": spectrum.threshold,
        "gap": spectrum.gap if math.isfinite(spectrum.gap) else None,
        "entropy": spectrum.entropy,
        "effective_rank": spectrum.effective_rank,
        "directions": {f"{share:g}": spectrum.directions_for(share) for share in _SHARES},
        "singular_values": spectrum.values.tolist(),
    }
