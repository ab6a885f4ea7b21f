"""teach(head, domain, examples, classes): a head with new rows for these classes, which reads them.

One row (w, b) for each class is fitted to the features of examples; no other row changes, and neither does
the network. What is promised is proven with `verify`, what depends on inputs is measured on held-out ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from argmaxable.compute.readings import standings
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.core.progress import Deadline, Progress, ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status
from argmaxable.edit.teach.fit import Fitter, RowFit
from argmaxable.edit.teach.lesson import Lesson, Target, prepare
from argmaxable.edit.teach.look_alikes import LookAlike, look_alikes
from argmaxable.edit.teach.measure import HeldOut, measure
from argmaxable.edit.teach.promise import ExampleWitness, LeftOut, Proven, prove
from argmaxable.questions.argmax import run_plan
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, make_plan

DEFAULT_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class TeachingRules:
    """How classes are taught, and what is refused.

    `blank` is the class that means "nothing" in a CTC model. Classes that look like another to the model are
    left out unless `allow_look_alikes`. More than the share `max_change` of ordinary held-out inputs changed,
    by the upper bound of 95 %, is an error. Labels to add become classes from the number `add_at` on
    (default: after the last). `seed` draws the first negatives.
    """

    blank: int | None = None
    allow_look_alikes: bool = False
    max_change: float | None = None
    add_at: int | None = None
    seed: int = 0


DEFAULT_RULES = TeachingRules()


@dataclass(frozen=True)
class TaughtClass:
    """A class with a new row: its number in the new head, its label, what was proven of it before (None: it
    did not exist), how its row was fitted, and an example at which it provably wins (None: `verify` found
    another input, for no example lies in the domain and wins)."""

    class_id: int
    label: str
    was: Status | None
    fit: RowFit
    witness: ExampleWitness | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Taught:
    """A head with new rows, verified, and what they do to inputs that the fit never saw.

    `result` are the verdicts of `after` and `result_before` those of `before`. `look_alikes` are pairs that
    the model can hardly tell apart; unless asked for, they are among `left_out`. `refitted` rows were fitted
    again because another class needed room. `held_out` is None where no examples were held out.
    """

    before: Head
    after: Head
    domain: Domain
    result_before: Result
    result: Result
    classes: tuple[TaughtClass, ...]
    left_out: tuple[LeftOut, ...]
    look_alikes: tuple[LookAlike, ...]
    refitted: int
    held_out: HeldOut | None
    phases: dict[str, float]

    def __repr__(self) -> str:
        read = "" if self.held_out is None else f", {self.held_out.read_after} held-out examples read"
        return f"Taught({len(self.classes):,} classes{read}, {self.result})"

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())


@dataclass
class _Clock:
    """Seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def end(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self.last
        self.last = now


def teach(
    head: Head,
    domain: Domain,
    examples: Examples,
    classes: Iterable[int],
    *,
    add: Sequence[str] = (),
    held_out: Examples | None = None,
    rules: TeachingRules = DEFAULT_RULES,
    before: Result | None = None,
    time_limit: float | None = DEFAULT_SECONDS,
    engine: Engine = DEFAULT_ENGINE,
    progress: ProgressCallback = ignore_progress,
) -> Taught:
    """Fit new rows for these classes, and for labels to `add` as classes of their own.

    Each class needs examples, occurrences of its label; every other row of features is one that it should not
    win. `held_out` inputs are only counted. `before` are the head's verdicts over the domain, if they are
    known.

    Every taught class is then argmaxable, and so is every class that was: proven, or InputError is raised. It
    is also raised for examples that don't fit, classes without any and classes that win at all of theirs
    already.
    """
    deadline, clock = Deadline(time_limit), _Clock()
    targets = targets_of(head, classes, add, rules.blank)
    at = head.classes if rules.add_at is None else rules.add_at
    if rules.max_change is not None and held_out is None:
        raise InputError("how many inputs change can only be measured on held-out examples: hold some out.")
    progress(Progress("read examples", 0, len(examples.features)))
    lesson = prepare(head, examples, targets, blank=rules.blank)
    _require_something_to_learn(head, lesson)
    clock.end("read examples")
    plan = make_plan(head, domain, engine=engine, time_limit=deadline.seconds_left, seed=rules.seed)
    before = run_plan(plan, progress=progress) if before is None else before
    _require_verdicts(before, head, domain)
    clock.end("verify before")
    fitter = Fitter(lesson, rules.seed, plan.settings.workers or 1, deadline, progress)
    fits, alike, excluded = _fitted(fitter, head, clock, allow_look_alikes=rules.allow_look_alikes)
    proven = prove(before, fitter, fits, at=at, engine=engine)
    clock.end("prove")
    measured = None
    if held_out is not None:
        measured = measure(head, proven.candidate.rows_of(lesson.targets), held_out, blank=rules.blank)
        _require_few_changes(measured, rules.max_change)
        clock.end("measure")
    return Taught(
        before=head, after=proven.candidate.head, domain=domain, result_before=before, result=proven.result,
        classes=_taught_classes(proven, before, lesson), left_out=(*excluded, *proven.left_out),
        look_alikes=alike, refitted=proven.refitted, held_out=measured, phases=clock.phases,
    )  # fmt: skip


def _fitted(
    fitter: Fitter, head: Head, clock: _Clock, *, allow_look_alikes: bool
) -> tuple[dict[int, RowFit], tuple[LookAlike, ...], tuple[LeftOut, ...]]:
    """The rows of all targets but look-alikes, unless those are allowed; and what was found and left out."""
    alike = look_alikes(fitter, head, seed=fitter.seed)
    clock.end("compare look-alikes")
    excluded = {} if allow_look_alikes else {place: _left_out(each) for place, each in alike.items()}
    chosen = [place for place in range(len(fitter.lesson.targets)) if place not in excluded]
    if not chosen:
        first = next(iter(excluded.values()))
        raise InputError(f"nothing to teach: {visible(first.label)} {first.reason}.")
    fits = fitter.fit(chosen)
    clock.end("fit rows")
    return fits, tuple(alike.values()), tuple(excluded.values())


def targets_of(
    head: Head, classes: Iterable[int], add: Sequence[str], blank: int | None
) -> tuple[Target, ...]:
    """The classes to teach; raises InputError for those that don't exist, or whose label is not their own."""
    chosen = sorted(set(classes))
    if not chosen and not add:
        raise InputError("nothing to teach: name a class, or a label to add.")
    stray = [
        class_id
        for class_id in (*chosen, *(() if blank is None else (blank,)))
        if not 0 <= class_id < head.classes
    ]
    if stray:
        raise InputError(f"class {stray[0]} does not exist: the head has classes 0 to {head.classes - 1}.")
    if blank in chosen:
        raise InputError(f"class {blank} is the blank, which stands for no label: it can't be taught.")
    if add and head.labels is None:
        raise InputError("the model has no labels, so none can be added. Pass --labels FILE.")
    known = [head.label(class_id) for class_id in range(head.classes)]
    there = [label for label in add if label in known]
    if there:
        raise InputError(f"the head has a class {visible(there[0])} already: teach it instead of adding it.")
    if len(set(add)) < len(add):
        raise InputError("a label to add is named twice.")
    shared = [class_id for class_id in chosen if known.count(known[class_id]) > 1]
    if shared:
        raise InputError(
            f"several classes have the label {visible(known[shared[0]])}, so its examples don't say which is "
            "meant."
        )
    return (
        *(Target(known[class_id], class_id) for class_id in chosen),
        *(Target(label, None) for label in add),
    )


def _require_something_to_learn(head: Head, lesson: Lesson) -> None:
    """Raise InputError for a class that wins at all of its examples already."""
    known = np.array([each.class_id for each in lesson.targets if each.class_id is not None], np.intp)
    if not len(known):
        return
    old = standings(head, lesson.examples.features, known, blank=None)
    winner = np.where(old.top > lesson.rest.top, old.winner, -1)
    for target, positives in zip(lesson.targets, lesson.positives, strict=True):
        if target.class_id is not None and (winner[positives] == target.class_id).all():
            raise InputError(
                f"{visible(target.label)} (class {target.class_id}) wins at all {len(positives):,} of its "
                "examples already: there is nothing to teach. Leave it out, or bring examples that are "
                "misread."
            )


def _require_verdicts(before: Result, head: Head, domain: Domain) -> None:
    if before.head is not head or before.domain != domain or before.wanted != head.classes:
        raise InputError("the verdicts given are not about all classes of this head over this domain.")
    if not before.is_complete:
        raise InputError(
            f"the time limit passed while the head was being verified ({len(before.undecided):,} classes to "
            "go). "
            "Pass a larger --time-limit."
        )


def _left_out(alike: LookAlike) -> LeftOut:
    return LeftOut(
        alike.label,
        f"looks like {visible(alike.other)} to the model, {alike.taken:,} of whose {alike.places:,} places "
        "it would "
        "take (--look-alikes teaches it all the same)",
    )


def _require_few_changes(measured: HeldOut, most: float | None) -> None:
    changed = measured.changed
    if most is not None and changed.bound > most:
        raise InputError(
            f"{changed} held-out ordinary inputs read differently, so up to {100 * changed.bound:.3g} % of "
            "all may "
            f"(95 % bound); --max-change allows {100 * most:.3g} %. Nothing was written. Hold out more "
            "ordinary "
            "inputs if few changed, or leave out the classes that take them."
        )


def _taught_classes(proven: Proven, before: Result, lesson: Lesson) -> tuple[TaughtClass, ...]:
    status = {verdict.class_id: verdict.status for verdict in before.verdicts}
    found = [
        TaughtClass(
            class_id, (target := lesson.targets[place]).label,
            None if target.class_id is None else status[target.class_id],
            proven.fits[place], proven.witnesses.get(place),
        )
        for place, class_id in proven.candidate.ids.items()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: each.class_id))
