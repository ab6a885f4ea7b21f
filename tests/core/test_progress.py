"""Estimates of the time left, and deadlines."""

from __future__ import annotations

import pytest

from argmaxable.core import progress
from argmaxable.core.progress import Deadline, Pace


def test_the_rest_takes_as_long_as_the_part_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.time, "perf_counter", iter([10.0, 16.0]).__next__)
    assert Pace().seconds_left(3, 5) == 4.0


def test_nothing_is_said_before_anything_is_done() -> None:
    assert Pace().seconds_left(0, 5) is None


def test_the_first_of_many_says_nothing_about_the_rest() -> None:
    assert Pace().seconds_left(1, 101) is None
    assert Pace().seconds_left(1, 100) is not None


def test_without_a_limit_no_deadline_passes() -> None:
    assert not Deadline(None).has_passed
    assert Deadline(0.0).has_passed
