"""The options by which `verify` passes or fails in a workflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from argmaxable.cli.notices import NoticesAs, StepSummary, in_format, require_one_format
from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.cli.remarks import Remarks
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.core.result import Result
from argmaxable.workflow.gate.allowed import AllowList
from argmaxable.workflow.gate.ruling import FailOn, Ruling, rule


@dataclass(frozen=True)
class GateOptions(OptionGroup):
    """What the run is compared with, what is allowed, and when it fails."""

    baseline: Annotated[
        str | None,
        Option(
            metavar="FILE|RUN",
            help="Fail only on classes that became unargmaxable since this baseline: JSON or bundle "
            "of an earlier verify, an export, or a stored run.",
        ),
    ] = None
    allow: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="File of classes that may be unargmaxable or undecided, one label or number per line.",
        ),
    ] = None
    fail_on: Annotated[
        FailOn | None,
        Option(
            help="What makes the exit code 1 or 3 (default: new with --baseline, else undecided, which "
            "includes unargmaxable)."
        ),
    ] = None
    form: NoticesAs = None
    summary: StepSummary = None

    @property
    def is_asked(self) -> bool:
        """Whether the answer should say if the run passes."""
        return any(option is not None for option in (self.baseline, self.allow, self.fail_on))

    @property
    def never_fails(self) -> bool:
        return self.fail_on is FailOn.NONE

    def judge(self, db: str | None, *, as_json: bool) -> Callable[[Result], Ruling]:
        """The judge of a result. Raises InputError at once for what makes no sense, or is not there."""
        require_one_format(self.form, as_json=as_json)
        if self.fail_on is FailOn.NEW and self.baseline is None:
            raise InputError("--fail-on new needs something to compare with: add --baseline FILE or RUN.")
        allowed = None if self.allow is None else AllowList.read(self.allow)
        choice = None
        if self.baseline is not None:
            from argmaxable.workflow.gate.baseline import find_baseline  # loads what few runs need

            choice = find_baseline(self.baseline, opened=lambda: opened(db), find_run=find_run)
        fail_on = self.fail_on or (FailOn.UNDECIDED if choice is None else FailOn.NEW)

        def ruling(result: Result) -> Ruling:
            return rule(
                result,
                fail_on,
                baseline=None if choice is None else choice(result.facts),
                allowed=None if allowed is None else allowed.of(result),
            )

        return ruling

    def remarks(self, ruling: Ruling) -> Remarks:
        """What the answer says about passing."""
        if not self.is_asked:
            return Remarks((), {})
        from argmaxable.workflow.gate.wording import as_record, describe

        return Remarks(tuple(describe(ruling)), {"gate": as_record(ruling)})

    def printed(self, ruling: Ruling, model: str, lines: Sequence[str]) -> str:
        """What goes to stdout: the answer's lines, or the format that was asked for."""
        if self.form is None:
            return "\n".join(lines)
        from argmaxable.workflow.gate.notices import VERIFY_RULES, notices_of_ruling  # few runs need it

        found = notices_of_ruling(ruling, model)
        return in_format(self.form, lines, [found], rules=VERIFY_RULES, summary=self.summary)
