"""The plan of a run: every default filled in, and nonsense refused before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.run.plan import ONE_PROCESS, make_plan

HEAD = am.Head(np.eye(5, 3))
BOX = am.Box(-1.0, 1.0)


def test_defaults_are_filled_in() -> None:
    settings = make_plan(HEAD, BOX).settings
    assert settings.algorithm is am.Algorithm.AUTO
    assert settings.patience == 30
    assert settings.workers is not None
    assert settings.workers >= 1


def test_reflection_alone_is_patient() -> None:
    assert make_plan(HEAD, BOX, method="reflection").settings.patience == 2500


def test_all_classes_are_wanted_unless_some_are_chosen() -> None:
    assert make_plan(HEAD, BOX).wanted.tolist() == [0, 1, 2, 3, 4]
    chosen = make_plan(HEAD, BOX, only=[3, 1, 3])
    assert (chosen.only, chosen.wanted.tolist()) == ((1, 3), [1, 3])


def test_processes_share_the_memory_that_the_head_leaves() -> None:
    one, two = (
        make_plan(HEAD, BOX, engine=am.Engine(workers=workers, memory=2**31)).settings.compute.memory
        for workers in (1, 2)
    )
    assert one is not None
    assert two is not None
    assert one > 2 * two > 0


def test_a_ray_cluster_has_as_many_workers_as_it_has() -> None:
    assert make_plan(HEAD, BOX, engine=am.Engine(ray="local")).settings.workers is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"method": "guess"}, "no method 'guess'"),
        ({"patience": -1}, "patience"),
        ({"seed": -1}, "seed"),
        ({"time_limit": 0.0}, "time limit"),
        ({"only": []}, "no classes chosen"),
        ({"only": [5]}, "class 5 does not exist"),
        ({"engine": am.Engine(workers=0)}, "workers"),
        ({"engine": am.Engine(workers=1, memory=10)}, "memory"),
        ({"domain": am.Box([0.0, 0.0], [1.0, 1.0])}, "feature"),
        ({"domain": am.Ball(1.0), "method": "chebyshev"}, "box"),
    ],
    ids=str,
)
def test_nonsense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        make_plan(HEAD, wrong.pop("domain", BOX), **{"engine": ONE_PROCESS, **wrong})
