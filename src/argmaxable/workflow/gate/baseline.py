"""What was known before: a stored run, a proof bundle, or a file that `verify --json` or `export` wrote.

A baseline's verdicts are taken at their word. Only the new run's are proven.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Method, Status, Verdict
from argmaxable.proofs.bundle import read_bundle
from argmaxable.report.comparison import Comparison, compare

if TYPE_CHECKING:
    from argmaxable.core.head import Facts
    from argmaxable.core.result import Record
    from argmaxable.store import RunSummary, Store

_SUFFIXES = (".json", ".jsonl", ".csv", ".csv.gz")


@dataclass(frozen=True, eq=False)
class Baseline:
    """Verdicts to compare with. `domain` is empty where the file does not say it. `lists_argmaxable` is
    False for the JSON of `verify`, which only counts the classes that can be predicted."""

    name: str
    domain: str
    verdicts: tuple[Verdict, ...]
    lists_argmaxable: bool = True

    def compared_with(self, result: Record) -> Comparison:
        """What changed since."""
        before, after = self.verdicts, result.verdicts
        if not self.lists_argmaxable:
            shared = {label for label, count in Counter(v.label for v in after).items() if count > 1}
            before, after = (
                _told_apart(before, shared),
                _told_apart(_without_argmaxable(self, result), shared),
            )
        return compare(lambda: iter(before), lambda: iter(after), most_moved=0)


def _without_argmaxable(baseline: Baseline, result: Record) -> tuple[Verdict, ...]:
    """The verdicts without classes that can be predicted, which the baseline does not list either; except
    those that it lists because they could not be."""
    taken = {verdict.label for verdict in (*result.unargmaxable, *result.undecided)}
    recovered = {verdict.label for verdict in baseline.verdicts} - taken
    return tuple(
        verdict
        for verdict in result.verdicts
        if verdict.status is not Status.ARGMAXABLE or verdict.label in recovered
    )


def _told_apart(verdicts: tuple[Verdict, ...], shared: set[str]) -> tuple[Verdict, ...]:
    """The verdicts with their number in labels that several classes share: which of those can be predicted
    is not listed, so another class of the label must not be taken for the one that is."""
    return tuple(
        replace(verdict, label=f"{verdict.label}\0{verdict.class_id}") if verdict.label in shared else verdict
        for verdict in verdicts
    )


# The baseline of the model that was verified: among several runs or tables it is chosen by the head.
BaselineChoice = Callable[["Facts"], Baseline]


def find_baseline(
    named: str, *, opened: Callable[[], Store], find_run: Callable[[Store, str], RunSummary]
) -> BaselineChoice:
    """The baseline of that name: a file or folder, else a run as `find_run` finds it.

    Files are read and runs are looked up at once, so that a wrong name is noticed before any work. Raises
    InputError.
    """
    path = Path(named)
    if (path / "manifest.json").is_file():
        bundle = read_bundle(path)
        found = Baseline(named, str(bundle.domain), bundle.claims)
        return lambda _: found
    if named.lower().endswith(_SUFFIXES):
        return _of_file(path)
    with opened() as store:
        newest = find_run(store, named)
        # A name stands for several runs, and the newest may soon be the one that is to be judged.
        runs = [newest] if named == str(newest.run_id) else store.runs(name=newest.facts.name)
    candidates = [run for run in runs if run.facts.name == newest.facts.name]

    def of_other_weights(facts: Facts) -> Baseline:
        chosen = next((run for run in candidates if run.facts.sha256 != facts.sha256), candidates[0])
        with opened() as store:
            verdicts = tuple(store.verdicts(chosen.run_id, with_evidence=False))
        return Baseline(f"run {chosen.run_id}", str(chosen.domain), verdicts)

    return of_other_weights


def _of_file(path: Path) -> BaselineChoice:
    if not path.is_file():
        raise InputError(
            f"--baseline {path}: no such file. Write one with: "
            "argmaxable verify MODEL --json --fail-on none > baseline.json"
        )
    if path.suffix.lower() == ".json":
        found = _of_answer(path)
        return lambda _: found
    tables = {model: tuple(rows) for model, rows in _tables(path)}

    def of_model(facts: Facts) -> Baseline:
        if len(tables) > 1 and facts.name not in tables:
            raise InputError(
                f"--baseline {path}: it has several models, and none of them is {visible(facts.name)}."
            )
        return Baseline(str(path), "", tables.get(facts.name, next(iter(tables.values()))))

    return of_model


def _of_answer(path: Path) -> Baseline:
    """What `verify --json` printed."""
    try:
        record = json.loads(path.read_bytes())
        groups = ((Status.UNARGMAXABLE, "unargmaxable_classes"), (Status.UNDECIDED, "undecided_classes"))
        verdicts = [_claim(row, status) for status, key in groups for row in record[key]]
        domain = str(record["domain"])
    except OSError as error:
        raise InputError(f"--baseline {path}: can't read it ({error.strerror or error}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"--baseline {path} is not what `argmaxable verify --json` prints "
            f"({type(error).__name__}: {error})."
        ) from error
    return Baseline(str(path), domain, tuple(sorted(verdicts, key=_class_id)), lists_argmaxable=False)


def _tables(path: Path) -> Iterator[tuple[str, list[Verdict]]]:
    """The verdicts of each model in what `export` wrote."""
    if path.suffix.lower() == ".jsonl":
        yield from _of_rows(path).items()
        return
    from argmaxable.report.published import published_models  # loads the database's nouns

    for model, verdicts in published_models(path, name=""):
        rows = [_verdict(row.class_id, row.label, row.status) for row in verdicts]
        yield model.name, sorted(rows, key=_class_id)


def _of_rows(path: Path) -> dict[str, list[Verdict]]:
    models: dict[str, list[Verdict]] = {}
    try:
        for line in path.read_text(encoding="utf-8-sig").splitlines():
            if line.strip():
                row = json.loads(line)
                models.setdefault(str(row["model"]), []).append(_claim(row, Status(row["status"])))
    except OSError as error:
        raise InputError(f"--baseline {path}: can't read it ({error.strerror or error}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"--baseline {path} is not what `argmaxable export` writes: {type(error).__name__} {error}."
        ) from error
    if not models:
        raise InputError(f"--baseline {path} is empty.")
    return {model: sorted(verdicts, key=_class_id) for model, verdicts in models.items()}


def _claim(row: dict[str, Any], status: Status) -> Verdict:
    return _verdict(int(row["class"]), str(row["label"]), status)


def _verdict(class_id: int, label: str, status: Status) -> Verdict:
    return Verdict(class_id, label, status, -math.inf, math.inf, Method.NONE, None)


def _class_id(verdict: Verdict) -> int:
    return verdict.class_id
