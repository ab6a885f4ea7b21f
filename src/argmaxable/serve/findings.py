"""What a run's page says of all its verdicts together: the report's own answer, charts and methods.

Reading 50,000 verdicts takes seconds, so the page asks for them after it is shown, and they are kept for
the next time as long as the run has no new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.core.verdict import Status
from argmaxable.report.page.columns import shown_label
from argmaxable.report.page.content import Way, content_of
from argmaxable.report.page.pictures import margin_charts, steps_chart
from argmaxable.report.page.subject import subject_of_run
from argmaxable.report.page.wording import CHARACTERS, Noun

if TYPE_CHECKING:
    from argmaxable.report.page.charts import Chart
    from argmaxable.store import RunSummary, Store

# Labels shown on top; the table has all.
_MOST_LABELS = 120


@dataclass(frozen=True, eq=False)
class RunFindings:
    """The parts of a report that a run's page has, without the verdicts they were made from."""

    answer: str
    caveat: str
    size: str
    domain_line: str
    domain: str
    claim: str
    noun: Noun
    is_characters: bool
    unargmaxable: tuple[tuple[int, str], ...]
    unargmaxable_count: int
    order: str
    margins: tuple[Chart, ...]
    steps: Chart | None
    ways: tuple[Way, ...]
    statuses: tuple[Status, ...]
    recheck: tuple[str, ...]


def findings_of(store: Store, run: RunSummary) -> RunFindings:
    """Read all verdicts of the run and sum them up."""
    subject = subject_of_run(store, run)
    content = content_of(subject)
    return RunFindings(
        answer=content.answer,
        caveat=subject.caveat,
        size=subject.size,
        domain_line=content.domain_line,
        domain=content.domain,
        claim=content.claim,
        noun=content.noun,
        is_characters=content.noun is CHARACTERS,
        unargmaxable=tuple(
            (verdict.class_id, shown_label(verdict.label)) for verdict in content.unargmaxable[:_MOST_LABELS]
        ),
        unargmaxable_count=len(content.unargmaxable),
        order=content.order,
        margins=tuple(margin_charts(subject.verdicts, content.noun)),
        steps=steps_chart(subject.verdicts, content.noun),
        ways=content.ways,
        statuses=tuple(status for status in Status if content.counts[status]),
        recheck=subject.recheck,
    )
