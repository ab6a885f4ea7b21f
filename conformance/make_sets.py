"""Writes good_sets/ and expected_sets.json anew, with argmaxable: sets of labels about heads of heads/.

python conformance/make_sets.py
"""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np

import argmaxable as am

HERE = Path(__file__).parent
GOOD = HERE / "good_sets"
ONE = am.Engine(workers=1)


def cases() -> dict[str, tuple[str, am.Domain, str, object]]:
    """Name of the bundle: head, domain, kind of set, thresholds."""
    gain, shift = np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.0, -0.1])
    inputs = np.random.default_rng(3).normal(size=(9, 3))
    each = np.linspace(-0.5, 0.5, 14)
    return {
        "box": ("labelled", am.Box(-100.0, 100.0), "exactly", 0.0),
        "box-thresholds": ("labelled", am.Box([-1.0, 0.0, -2.5], [1.0, 4.0, 0.5]), "exactly", each),
        "box-top": ("labelled", am.Box(-1.0, 1.0), "top", 0.0),
        "relu": ("plain", am.Box(0.0, np.inf), "exactly", 0.0),
        "relu-top": ("labelled", am.Box(0.0, np.inf), "top", 0.0),
        "everywhere": ("plain", am.Everywhere(), "exactly", 0.0),
        "everywhere-top": ("labelled", am.Everywhere(), "top", 0.0),
        "ball": ("double", am.Ball(2.5), "exactly", am.logits_of(0.3)),
        "rmsnorm-top": ("half", am.RMSNorm(gain), "top", 0.0),
        "layernorm": ("labelled", am.LayerNorm(gain, shift), "at-least", 0.25),
        "hull": ("labelled", am.Hull(inputs), "exactly", 0.0),
    }


def chosen(labels: int) -> list[tuple[int, ...]]:
    """The empty set, all labels, and some of those between."""
    pairs = list(combinations(range(labels), 2))[:: labels // 2]
    return [(), (0,), (5,), (3, 4), *pairs, (1, 6, 9), (0, 2, 5, 8, 11), tuple(range(labels))]


def main() -> None:
    shutil.rmtree(GOOD, ignore_errors=True)
    expected = {}
    for name, (stem, domain, kind, thresholds) in cases().items():
        head = am.load_head(str(HERE / "heads" / f"{stem}.npz"))
        found = am.sets(
            head, domain, dict.fromkeys(chosen(head.classes)), kind=kind, thresholds=thresholds, engine=ONE
        )
        am.write_sets(found, GOOD / name)
        is_open = bool(found.having(am.Feasibility.UNDECIDED))
        expected[name] = {"head": f"heads/{stem}.npz", "answer": "open" if is_open else "proven"}
    text = json.dumps(dict(sorted(expected.items())), indent=2)
    (HERE / "expected_sets.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
