"""The option --format of commands in a workflow: what services read."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from argmaxable.cli.parameters import Option
from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from argmaxable.report.notices.notice import ModelNotices


class NoticeFormat(StrEnum):
    """What services read: test results, code scanning, lines of a workflow's log."""

    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"


NoticesAs = Annotated[
    NoticeFormat | None,
    Option(
        "--format", help="Print test results (junit), code scanning results (sarif) or annotations (github)."
    ),
]
StepSummary = Annotated[
    Path | None,
    Option(
        "--summary",
        metavar="FILE",
        envvar="GITHUB_STEP_SUMMARY",
        help="With --format github: append the answer to this Markdown file.",
    ),
]


def require_one_format(form: NoticeFormat | None, *, as_json: bool) -> None:
    """Raise InputError for two wishes about stdout."""
    if as_json and form is not None:
        raise InputError("--json and --format can't be used together.")


def in_format(
    form: NoticeFormat,
    lines: Sequence[str],
    models: Sequence[ModelNotices],
    *,
    rules: dict[str, str],
    summary: Path | None,
) -> str:
    """The notices in that format; for GitHub the answer's lines too, and into the summary's file."""
    # Late: few runs are read by a service.
    from argmaxable.report.notices.github import step_summary, workflow_lines
    from argmaxable.report.notices.junit import junit
    from argmaxable.report.notices.sarif import sarif

    if form is NoticeFormat.JUNIT:
        return junit(models).rstrip()
    if form is NoticeFormat.SARIF:
        return sarif(models, rules).rstrip()
    if summary is not None:
        _append(step_summary(", ".join(model.model for model in models), lines), summary)
    return "\n".join(workflow_lines(lines, models))


def _append(text: str, target: Path) -> None:
    try:
        with target.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror or error}.") from error
