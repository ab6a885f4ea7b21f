"""argmaxable ranking: whether any input ranks a model's classes in a given order, with proof."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Annotated, Any

import click

from argmaxable.check.orders import OrderCertificate
from argmaxable.cli import options
from argmaxable.cli.option_groups import takes_groups
from argmaxable.cli.parameters import Argument
from argmaxable.cli.progress import progress_bar
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.questions.ranking.notation import Chain, join, parse_chain
from argmaxable.questions.ranking.rankings import RankingVerdict, is_feasible
from argmaxable.report.answer import domain_line
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, find_model

_EXIT_CODES = {Feasibility.FEASIBLE: 0, Feasibility.INFEASIBLE: 1, Feasibility.UNDECIDED: 3}
# Pairs of a proof shown as text; --json has all of them.
_MOST_PAIRS = 20


@takes_groups
def ranking(
    model: options.Model,
    orders: Annotated[
        list[str],
        Argument(
            metavar="ORDER",
            help='Labels or class numbers, the highest first: "cat > dog > the"; end with "> rest" to put '
            "every other class below. Several orders must hold at once.",
        ),
    ],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    time_limit: options.TimeLimit = None,
    as_json: options.Json = False,
    *,
    source: options.ModelOptions,
) -> None:
    """Decide whether any input ranks the classes in this order.

    \b
    Examples:
      argmaxable ranking model.onnx "cat > dog > the"
      argmaxable ranking model.onnx "cat > dog > rest" --domain box:100
      argmaxable ranking model.onnx "cat > dog" "the > dog"
      argmaxable ranking model.onnx '#17 > 4 > ">="'

    \b
    Put a label that holds ">" in double quotes (doubled inside). A number
    is a class; where it is a label too, write #7 for the class or "7" for the
    label, and likewise #rest or "rest".

    \b
    Exit codes: 0 feasible, 1 infeasible, 2 bad input, 3 undecided.
    """
    with progress_bar("looking for such an input"):
        found = find_model(source.of(model), domain)
        head = found.head()
        chains = [parse_chain(text, head) for text in orders]
        order = join(chains, head.classes)
        verdict = is_feasible(head, order, found.domain, time_limit=time_limit)
    if as_json:
        record = _record(head, chains, verdict) | {"domain_source": found.domain_source.as_record()}
        click.echo(json.dumps(record))
    else:
        click.echo("\n".join(_lines(head, chains, verdict)))
        click.echo(domain_line(found.domain, found.domain_source))
    raise click.exceptions.Exit(_EXIT_CODES[verdict.status])


def _lines(head: Head, chains: list[Chain], verdict: RankingVerdict) -> list[str]:
    """What was asked, the answer, and what proves it."""
    size = f"{head.classes:,} classes × {head.features:,} features"
    bias = "with bias" if head.bias is not None else "no bias"
    lines = [
        f"{head.name}: {size}, {bias}",
        *(each.text(head) for each in chains),
        "",
    ]
    if verdict.status is Feasibility.FEASIBLE:
        at_least = f", each class above the next by at least {verdict.margin:.3g} there"
        return [*lines, f"Feasible: some input ranks the classes in this order{at_least} (--json prints it)."]
    if verdict.certificate is None:
        return [*lines, f"Undecided: {verdict.reason}."]
    return [
        *lines,
        "Infeasible: no input ranks the classes in this order.",
        *_conflict(head, verdict.certificate),
    ]


def _conflict(head: Head, certificate: OrderCertificate) -> list[str]:
    pairs, total = certificate.pairs.tolist(), sum(certificate.weights)
    shares = [float(Fraction(weight, total)) for weight in certificate.weights]
    ordered = sorted(zip(shares, pairs, strict=True), reverse=True)
    shown = [
        f"  {visible(head.label(above))} > {visible(head.label(below))}  (weight {share:.3g})"
        for share, (above, below) in ordered[:_MOST_PAIRS]
    ]
    rest = len(pairs) - _MOST_PAIRS
    more = [f"  … and {rest:,} more pairs (--json prints them)"] if rest > 0 else []
    return ["Weighted, these gaps never add up to more than 0, so they can't all be positive:", *shown, *more]


def _record(head: Head, chains: list[Chain], verdict: RankingVerdict) -> dict[str, Any]:
    """The object that --json prints. Weights are hexadecimal: they may be longer than JSON's readers bear."""
    certificate = verdict.certificate
    return {
        "model": head.name,
        "classes": head.classes,
        "features": head.features,
        "bias": head.bias is not None,
        "domain": verdict.domain.as_record(),
        "order": [each.text(head) for each in chains],
        "chains": [{"classes": list(each.classes), "above_rest": each.has_rest} for each in chains],
        "status": verdict.status.value,
        "margin": verdict.margin if verdict.point is not None and math.isfinite(verdict.margin) else None,
        "witness": None if verdict.point is None else verdict.point.tolist(),
        "certificate": None if certificate is None else [
            {"above": above, "below": below, "weight": hex(weight)}
            for (above, below), weight in zip(certificate.pairs.tolist(), certificate.weights, strict=True)
        ],
        "reason": verdict.reason,
    }  # fmt: skip
