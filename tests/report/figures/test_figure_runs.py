"""Figures of kept runs: their numbers are the runs'."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keeping import keep, keep_some, lossy

import argmaxable as am
from argmaxable.core.verdict import Status
from argmaxable.models.random_heads import random_head
from argmaxable.report.figures import (
    Effort,
    FigureGroup,
    effort_of,
    run_figures,
    save,
    steps_needed,
    steps_over_classes,
    unargmaxable_counts,
)
from argmaxable.report.figures.counts import bars_of
from argmaxable.report.figures.effort import share_needing_more
from argmaxable.report.figures.listing import Listed, is_database, read_listing
from argmaxable.report.published import UNNUMBERED
from argmaxable.store import PublishedVerdict, open_store


def test_bars_have_the_counts_of_their_runs(database: Path) -> None:
    keep(database, lossy())
    keep_some(database, random_head(10, 3, seed=0), (1, 2))
    with open_store(str(database)) as store:
        runs = store.runs()
    bars = {bar.name: bar for bar in bars_of(runs)}
    for run in runs:
        bar = bars[run.facts.name]
        assert bar.unargmaxable == run.counts.unargmaxable
        assert bar.tied == run.counts.tied
        assert bar.undecided == run.counts.undecided + run.counts.open
        assert bar.verified == run.counts.wanted
    assert sum(bar.unargmaxable for bar in bars.values()) == 3
    assert sum(bar.undecided for bar in bars.values()) == 8


def test_the_most_unargmaxable_classes_come_first(database: Path) -> None:
    keep(database, random_head(4, 3, seed=0))
    keep(database, lossy())
    with open_store(str(database)) as store:
        axes = unargmaxable_counts(store.runs()).axes[0]
    assert axes.get_yticklabels()[0].get_text() == "lossy.npz"
    assert [text.get_text() for text in axes.texts] == ["3 of 6", "none of 4"]


def test_the_domain_is_told_once_or_for_each_run(database: Path) -> None:
    keep(database, lossy())
    with open_store(str(database)) as store:
        assert unargmaxable_counts(store.runs()).axes[0].get_xlabel() == "classes; domain: box ±100"
    keep(database, lossy(), am.Box(-1.0, 1.0))
    with open_store(str(database)) as store:
        axes = unargmaxable_counts(store.runs()).axes[0]
    assert sorted(text.get_text() for text in axes.texts) == ["3 of 6; box ±1", "3 of 6; box ±100"]


def test_dots_are_the_steps_of_the_verdicts(database: Path) -> None:
    run = keep(database, random_head(60, 4, seed=1))
    with open_store(str(database)) as store:
        verdicts = list(store.verdicts(run))
    axes = steps_over_classes([effort_of("model", verdicts)]).axes[0]
    dots = np.vstack([np.asarray(each.get_offsets()) for each in axes.collections])
    expected = [(verdict.class_id, verdict.steps) for verdict in verdicts]
    assert sorted(map(tuple, dots.astype(int).tolist())) == expected


def effort(steps: list[int], name: str = "model") -> Effort:
    return Effort(name, np.arange(len(steps)), np.array(steps), np.array([Status.ARGMAXABLE] * len(steps)))


def test_the_share_that_needs_more_steps_is_counted() -> None:
    steps, shares = share_needing_more(np.array([0, 0, 1, 3]))
    assert steps.tolist() == [0, 1, 2, 3]
    assert shares.tolist() == [0.5, 0.25, 0.25, 0]


@pytest.mark.parametrize("steps", [[0], [0, 0, 0], [2500, 1, 0]])
def test_any_number_of_steps_can_be_drawn(steps: list[int], tmp_path: Path) -> None:
    save(steps_needed([effort(steps)]), tmp_path / "needed.png")
    save(steps_over_classes([effort(steps), effort(steps), effort(steps)]), tmp_path / "steps.png")


def test_models_side_by_side_share_their_scale() -> None:
    panels = steps_over_classes([effort([0, 1]), effort([40, 3])]).axes
    assert panels[0].get_ylim() == panels[1].get_ylim()


@pytest.mark.parametrize("draw", [steps_needed, steps_over_classes])
def test_no_models_and_too_many_are_rejected(draw: object) -> None:
    assert callable(draw)
    with pytest.raises(am.InputError, match="at least one run"):
        draw([])
    with pytest.raises(am.InputError, match="up to 8 models"):
        draw([effort([1])] * 9)


def test_counts_of_no_runs_are_rejected() -> None:
    with pytest.raises(am.InputError, match="at least one run"):
        unargmaxable_counts([])


def test_a_run_without_verdicts_has_no_steps() -> None:
    with pytest.raises(am.InputError, match="no class has a verdict yet"):
        effort_of("model", [])


def test_published_labels_without_numbers_have_no_steps(database: Path) -> None:
    rows = [PublishedVerdict(UNNUMBERED, "a", Status.ARGMAXABLE)]
    with open_store(str(database)) as store:
        run = store.add_published("m", origin="", family="", task="", rows=rows, domain=am.Box(-1.0, 1.0))
        with pytest.raises(am.InputError, match="without the classes' numbers"):
            effort_of("m", store.verdicts(run))


def test_large_groups_have_pages_and_all_files_have_names_of_their_own() -> None:
    many = tuple(effort([0, 1], f"model {number}") for number in range(9))
    groups = [
        FigureGroup("a/b", (), (), many),
        FigureGroup("a b", (), (), many[:1]),
        FigureGroup("", (), (), many[:1]),
    ]
    names = [name for name, _ in run_figures(groups)]
    assert names == [
        *("steps-a-b", "steps-needed-a-b", "steps-a-b-2", "steps-needed-a-b-2"),
        *("steps-a-b-3", "steps-needed-a-b-3", "steps", "steps-needed"),
    ]


def test_a_listing_has_groups_names_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_text("# all\n3\n[Family]\n\nrec.onnx = PP-OCRv5\nodd=name.npz\n", encoding="utf-8")
    assert not is_database(path)
    assert read_listing(path) == [
        Listed("3", "", None),
        Listed("rec.onnx", "Family", "PP-OCRv5"),
        Listed("odd=name.npz", "Family", None),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"# nothing\n", "lists no runs"),
        (b"= name\n", "line 1"),
        (b"3\n3 =\n", "line 2"),
        (b"\xff\xfe\x00", "neither a list"),
    ],
)
def test_what_is_no_listing_is_rejected(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_bytes(content)
    with pytest.raises(am.InputError, match=why):
        read_listing(path)


def test_a_listing_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    for read in (is_database, read_listing):
        with pytest.raises(am.InputError, match=r"can't read .*No such file"):
            read(tmp_path / "runs.txt")
