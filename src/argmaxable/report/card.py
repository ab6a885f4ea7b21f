"""What a model card says about a model's classes: a section in Markdown, and metadata that hubs read.

The metadata are an entry of `model-index`, the form in which Hugging Face's hub takes evaluation results. It
is YAML, written with the quoting of JSON, so that no name or label can end a text early.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status
from argmaxable.core.version import VERSION
from argmaxable.report.grid import in_markdown

if TYPE_CHECKING:
    from argmaxable.report.page.content import Content

# A card is read by people.
_MOST_LABELS = 100
_HEADING = "## Classes that this model can never predict"


def section(content: Content) -> str:
    """The part of the card for people, its last line ended."""
    return "\n".join(_section(content)).rstrip("\n") + "\n"


def _section(content: Content) -> Iterator[str]:
    subject, never = content.subject, content.unargmaxable
    yield from (_HEADING, "", f"**{in_markdown(content.answer)}**", "", in_markdown(content.domain_line), "")
    if subject.caveat:
        yield from (in_markdown(subject.caveat), "")
    if never:
        labels = ", ".join(in_markdown(visible(verdict.label)) for verdict in never[:_MOST_LABELS])
        rest = len(never) - _MOST_LABELS
        yield from (f"{labels}{f' … and {rest:,} more' if rest > 0 else ''}", "")
    if content.tied:
        yield from (f"{len(content.tied):,} of them tie with classes that have identical rows.", "")
    fingerprint = f" SHA-256 of its weights: `{subject.facts.sha256}`." if subject.facts.sha256 else ""
    yield from (f"Output layer: {in_markdown(subject.size)}.{fingerprint}", "")
    if subject.recheck:
        yield "Each statement has a proof that anyone can re-check, exactly and without a solver:"
        yield from ("", "```console", *(f"$ {command}" for command in subject.recheck), "```", "")


def metadata(content: Content, task: str) -> str:
    """The entry for the card's YAML header, its last line ended; `task` is one of the hub's."""
    subject = content.subject
    undecided = subject.wanted - len(subject.verdicts) + content.counts.get(Status.UNDECIDED, 0)
    values = {
        "classes": ("Classes verified", subject.wanted),
        "unargmaxable_classes": ("Classes that can never be predicted", len(content.unargmaxable)),
        "undecided_classes": ("Classes without a proof", undecided),
    }
    lines = [
        "model-index:",
        f"- name: {_quoted(content.title)}",
        "  results:",
        "  - task:",
        f"      type: {_quoted(task)}",
        "    dataset:",
        "      type: argmaxable-domain",
        f"      name: {_quoted(f'every input of the domain {subject.domain}')}",
        "    metrics:",
    ]
    for kind, (name, value) in values.items():
        lines += [f"    - type: {kind}", f"      name: {_quoted(name)}", f"      value: {value}"]
    lines += ["tags:", "- argmaxable", f"# argmaxable {VERSION}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # YAML has JSON's strings; lone surrogates can't be written in UTF-8, so all but ASCII is escaped.
    return json.dumps(text)


def whole_card(content: Content, task: str) -> str:
    """A card with nothing else in it: the metadata as its header, then the section."""
    return f"---\n{metadata(content, task)}---\n\n{section(content)}"
