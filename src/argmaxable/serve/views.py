"""The pages, as text: each takes the site and what an address says, and knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from argmaxable.core.verdict import Method, Point, Status, Verdict
from argmaxable.report.changes import contradictions
from argmaxable.report.comparison import Comparison, compare
from argmaxable.report.page.content import content_of
from argmaxable.report.page.html import page as report_html
from argmaxable.report.page.html import sets_page as sets_html
from argmaxable.report.page.subject import subject_of_run
from argmaxable.report.page.weights import weights_of
from argmaxable.report.page.wording import METHODS, STRENGTHS, noun_for
from argmaxable.report.stored_runs import headline
from argmaxable.serve.addresses import choice_from
from argmaxable.serve.changes import (
    KINDS,
    ChangeChoice,
    change_rows,
    headline_of,
    moved_rows,
    shifted_rows,
)
from argmaxable.serve.findings import RunFindings, findings_of
from argmaxable.serve.html import render
from argmaxable.serve.neighbours import nearest
from argmaxable.serve.rows import class_rows, reference, references_of, referred_to
from argmaxable.serve.sentences import distance, exact_margin, meaning, witness_in_words
from argmaxable.serve.standing import standing_of
from argmaxable.store import Counts, RunSummary, SortKey, State

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.questions.explain.margin import Margin, Margins
    from argmaxable.store import Store

# Runs in the list, unless more are asked for; in the choices of a comparison.
_RUNS, _CHOICES = 100, 300
# So many verdicts are read while the page waits (about 0.3 s); of more they come afterwards.
_AT_ONCE = 8_000
# On a class's page: blockers, members of a tie, classes beaten by the same mixture, neighbours, numbers.
_BLOCKERS, _FELLOWS, _NEIGHBOURS, _NUMBERS = 60, 40, 12, 4096
# Blockers that are shown at once, and named in the picture.
_HEAVIEST = 10
# Classes in the table of a comparison; `argmaxable compare --format csv` has all.
_CHANGES = 500
# Runs and comparisons whose sums are kept: a page of charts each, no verdicts.
_REMEMBERED = 16
# Margins that are remembered: a vector and a mixture each.
_MARGINS = 256

Key = TypeVar("Key")
Value = TypeVar("Value")


class Site:
    """What pages are made from: the runs, and the heads whose files were named, by fingerprint."""

    def __init__(self, store: Store, heads: Mapping[str, Head]) -> None:
        self.store = store
        self.heads = heads
        # By run and what changes with its verdicts; one is made at a time, since people reload what is slow.
        self._lock = Lock()
        self._margin_lock = Lock()  # margins take seconds, which other pages don't wait for
        self._findings: dict[tuple[int, State, Counts], RunFindings] = {}
        self._comparisons: dict[tuple[int, Counts, int, Counts], Comparison] = {}
        self._margins_of: dict[tuple[str, Domain], Margins] = {}
        self._margins: dict[tuple[str, Domain, int], Margin] = {}

    def findings(self, run: RunSummary) -> RunFindings:
        key = run.run_id, run.state, run.counts
        with self._lock:
            return _remembered(self._findings, key, lambda: findings_of(self.store, run))

    def has_findings_at_hand(self, run: RunSummary) -> bool:
        """Whether they cost no wait."""
        decided = run.counts.wanted - run.counts.open
        return decided <= _AT_ONCE or (run.run_id, run.state, run.counts) in self._findings

    def comparison(self, before: RunSummary, after: RunSummary) -> Comparison:
        key = before.run_id, before.counts, after.run_id, after.counts
        verdicts = [partial(self.store.verdicts, run.run_id, with_evidence=False) for run in (before, after)]
        with self._lock:
            return _remembered(self._comparisons, key, lambda: compare(*verdicts))

    def margin(self, run: RunSummary, class_id: int) -> Margin | None:
        """A class's margin from both sides; None where the weights are not known."""
        head = self.heads.get(run.facts.sha256)
        if head is None or class_id >= head.classes:
            return None
        # The solvers, which no other page needs.
        from argmaxable.compute.prepared import PreparedHead
        from argmaxable.questions.explain.margin import Margins

        over = run.facts.sha256, run.domain
        with self._margin_lock:
            margins = _remembered(self._margins_of, over, lambda: Margins(PreparedHead(head), run.domain), 1)
            return _remembered(self._margins, (*over, class_id), lambda: margins.of(class_id), _MARGINS)


def _remembered(
    memory: dict[Key, Value], key: Key, make: Callable[[], Value], most: int = _REMEMBERED
) -> Value:
    """What is in the memory, or made and put there in the place of the oldest."""
    found = memory.get(key)
    if found is None:
        found = memory[key] = make()
        for oldest in list(memory)[:-most]:
            del memory[oldest]
    return found


# ---------------------------------------------------------------------- runs


def runs_page(site: Site, query: Mapping[str, str], *, is_part: bool) -> str:
    """The runs, newest first; or only their table."""
    name, limit = query.get("name", ""), _number(query.get("limit", "")) or _RUNS
    found = site.store.runs(name=name.strip() or None, limit=limit + 1)
    wanted = name.strip().lower()
    sets = [run for run in site.store.sets.runs() if wanted in run.facts.name.lower()]
    return render(
        "runs_table.html" if is_part else "runs.html",
        runs=found[:limit], name=name, limit=limit, has_more=len(found) > limit, where=site.store.where,
        sets=sets[:limit],
    )  # fmt: skip


def run_page(site: Site, run_id: int, query: Mapping[str, str], *, is_part: bool) -> str:
    """One run; or only its table of classes."""
    run = site.store.run(run_id)
    choice = choice_from(query, status=Status.UNARGMAXABLE if run.counts.unargmaxable else None)
    page = site.store.page(run_id, choice)
    if choice.first >= page.total > 0:  # the address is of a page that is no more
        choice = choice_from({**query, "page": "1"}, status=choice.status)
        page = site.store.page(run_id, choice)
    names = site.store.named(run_id, referred_to(page.verdicts))
    values = {
        "run": run,
        "choice": choice,
        "orders": list(SortKey),
        "rows": class_rows(page.verdicts, names),
        "total": page.total,
    }
    if is_part:
        return render("classes.html", **values)
    # What all verdicts say together would be old before it is read.
    is_running = run.state is State.RUNNING
    return render(
        "run.html",
        **values,
        headline=headline(run),
        is_running=is_running,
        findings=site.findings(run) if not is_running and site.has_findings_at_hand(run) else None,
        methods=[method for method in Method if method is not Method.NONE],
        is_part=False,
    )


def findings_part(site: Site, run_id: int) -> str:
    """What takes longer than a page may: the answer, and what goes below the table."""
    run = site.store.run(run_id)
    return render("findings.html", run=run, findings=site.findings(run), is_part=True)


def progress_part(site: Site, run_id: int) -> tuple[str, bool]:
    """How far the run is, and whether it still works."""
    run = site.store.run(run_id)
    return render("progress.html", run=run, headline=headline(run)), run.state is State.RUNNING


def report_page(site: Site, run_id: int) -> str:
    """The report that `argmaxable report` writes."""
    run = site.store.run(run_id)
    head = site.heads.get(run.facts.sha256)
    content = content_of(subject_of_run(site.store, run))
    return report_html(content, None if head is None else weights_of(head))


def sets_page(site: Site, run_id: int) -> str:
    """The page about stored sets of labels that `argmaxable report` writes."""
    return sets_html(site.store.sets.read(run_id), site.store.sets.run(run_id).domain_source, home="/")


# ---------------------------------------------------------------------- a class


@dataclass(frozen=True)
class _Numbers:
    """A vector as it is shown."""

    values: list[str]
    size: int


def class_page(site: Site, run_id: int, class_id: int) -> str:
    """One class: its verdict, what it means, its evidence, and its neighbours."""
    run = site.store.run(run_id)
    entry = site.store.entry(run_id, class_id, most_fellows=_FELLOWS)
    verdict, head = entry.verdict, site.heads.get(run.facts.sha256)
    near = nearest(head, class_id, _NEIGHBOURS) if head is not None and class_id < head.classes else None
    rival = _rival(verdict)
    wanted = referred_to([verdict], most=_BLOCKERS) | {each.class_id for each in near or ()}
    names = site.store.named(run_id, wanted if rival is None else wanted | {rival})
    (row,) = class_rows([verdict], names)
    noun = noun_for([verdict.label])
    mixture = references_of(verdict, names, most=_BLOCKERS)
    return render(
        "class.html",
        run=run,
        entry=entry,
        verdict=verdict,
        row=row,
        noun=noun,
        is_proven=run.state is not State.IMPORTED,
        meaning=meaning(verdict, noun, is_proven=run.state is not State.IMPORTED),
        distance=distance(verdict, row),
        witness=witness_in_words(verdict, run.domain),
        point=_numbers(verdict.witness) if isinstance(verdict.witness, Point) else None,
        rival=None if rival is None else reference(rival, names),
        mixture=mixture,
        heaviest=_HEAVIEST,
        standing=standing_of(head, verdict, mixture[:_HEAVIEST]) if near is not None else None,
        unlisted=row.others + len(row.references) - len(mixture),
        fellows=[reference(each.class_id, {each.class_id: each}) for each in entry.fellows],
        how=METHODS[verdict.method],
        checked="" if verdict.strength is None else STRENGTHS[verdict.strength],
        has_weights=near is not None,
        near=None if near is None else [(each, reference(each.class_id, names)) for each in near],
    )


def margin_part(site: Site, run_id: int, class_id: int) -> str:
    """The exact margin, as `argmaxable explain` tells it, where the weights are known."""
    run = site.store.run(run_id)
    verdict = site.store.entry(run_id, class_id, most_fellows=0).verdict
    margin = site.margin(run, class_id)
    return render("margin.html", told="" if margin is None else exact_margin(verdict, margin))


def _rival(verdict: Verdict) -> int | None:
    """The one class that bounds the lead of a class that can win."""
    certificate = verdict.certificate
    if verdict.status is not Status.ARGMAXABLE or certificate is None or len(certificate.classes) != 1:
        return None
    return int(certificate.classes[0])


def _numbers(point: Point) -> _Numbers:
    return _Numbers([f"{value:.9g}" for value in point.values[:_NUMBERS].tolist()], len(point.values))


# ---------------------------------------------------------------------- two runs


def compare_page(site: Site, query: Mapping[str, str], *, is_part: bool) -> str:
    """What changed from one run to another, or only the table of that; without two numbers, the choice."""
    before, after = _number(query.get("before", "")), _number(query.get("after", ""))
    if before is None or after is None:
        choices = site.store.runs(limit=_CHOICES)
        return render("compare.html", choices=choices, before=before, after=after, comparison=None)
    runs = site.store.run(before), site.store.run(after)
    comparison, choice = site.comparison(*runs), ChangeChoice.of(query)
    found = [pair for pair in comparison.changed if choice.takes(pair)]
    values = {"before": before, "after": after, "rows": change_rows(found[:_CHANGES]), "total": len(found)}
    if is_part:
        return render("changes.html", **values)
    return render(
        "compare.html",
        **values,
        choices=site.store.runs(limit=_CHOICES),
        runs=runs,
        comparison=comparison,
        is_contradiction=bool(contradictions(*runs, comparison)),
        headline=headline_of(comparison),
        choice=choice,
        kinds=KINDS,
        moved=moved_rows(comparison),
        shifted=shifted_rows(comparison),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


# ---------------------------------------------------------------------- no run


def playground_page() -> str:
    """The playground; its script does all of it."""
    return render("playground.html")


def error_page(title: str, message: str) -> str:
    return render("error.html", title=title, message=message)
