"""Notices as lines of a GitHub workflow's log: errors and warnings that are shown beside the change."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from argmaxable.core.labels import visible_text
from argmaxable.report.grid import in_markdown
from argmaxable.report.notices.notice import Level, ModelNotices, Notice

# GitHub shows ten annotations of a level for each step and drops the rest silently.
_MOST_SHOWN = 10


def workflow_lines(text: Sequence[str], models: Sequence[ModelNotices]) -> list[str]:
    """The text, then a command for each annotation.

    The text may hold labels of an untrusted model, and a label may be a workflow command: between the first
    line and the one that ends it, which nobody can guess, commands are off.
    """
    token = secrets.token_hex(16)
    return [f"::stop-commands::{token}", *text, f"::{token}::", *_annotations(models)]


def _annotations(models: Sequence[ModelNotices]) -> list[str]:
    lines = []
    for level in (Level.ERROR, Level.WARNING, Level.NOTE):
        found = [(model, notice) for model in models for notice in model.notices if notice.level is level]
        shown = found if len(found) <= _MOST_SHOWN else found[: _MOST_SHOWN - 1]
        lines += [_command(model, notice) for model, notice in shown]
        if len(shown) < len(found):
            rest = f"… and {len(found) - len(shown):,} more: see the log and the summary."
            lines.append(f"::{level.value} title=argmaxable::{_data(rest)}")
    return lines


def _command(model: ModelNotices, notice: Notice) -> str:
    file = None if model.file is None else visible_text(model.file)
    properties = {"file": file, "title": notice.title}
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value is not None)
    return f"::{notice.level.value} {said}::{_data(f'{model.model}: {notice.text}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def step_summary(title: str, text: Sequence[str]) -> str:
    """The text as Markdown for a job's summary, where nothing in it is markup."""
    escaped = "\n".join(text).replace("&", "&amp;").replace("<", "&lt;")
    return f"### {in_markdown(title)}\n\n<pre>\n{escaped}\n</pre>\n\n"
