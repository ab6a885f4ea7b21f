"""Runs a checker over the suite: the good bundles, and forgeries made from them.

    python conformance/run.py [--sets] [--every N] COMMAND...

A bundle's folder and the .npz file of its head are added to the command. It answers by its exit code: 0 if
every class is proven ("proven"), 3 if nothing is wrong but classes are undecided or missing ("open"), 1 or 2
for anything that is not proven, not true or not a bundle ("refused"). `--every 10` takes every tenth forgery.
`--sets` takes the bundles of label sets instead of those of verdicts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from forge import GOOD, HERE, forge_all
from forge_sets import GOOD_SETS, forge_all_sets

ANSWERS = {0: "proven", 1: "refused", 2: "refused", 3: "open"}
Ask = Callable[[Path, Path], int]


def disagreements(ask: Ask, forged: Path, every: int = 1, *, sets: bool = False) -> Iterator[str]:
    """Where the checker's answer is not the expected one; `ask` gives its exit code."""
    name, good, forge = (
        ("expected_sets.json", GOOD_SETS, forge_all_sets) if sets else ("expected.json", GOOD, forge_all)
    )
    expected = json.loads((HERE / name).read_text(encoding="utf-8"))
    cases = [(good / name, HERE / entry["head"], entry["answer"]) for name, entry in expected.items()]
    cases += [(folder, head, "refused") for folder, head in [*forge(forged).items()][::every]]
    for folder, head, answer in cases:
        code = ask(folder, head)
        if ANSWERS.get(code) != answer:
            yield f"{folder.name}: {ANSWERS.get(code, f'exit code {code}')}, expected {answer}"
    print(f"{len(expected)} good bundles and {len(cases) - len(expected)} forgeries.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sets", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()

    def ask(folder: Path, head: Path) -> int:
        command = [*given.command, str(folder), str(head)]
        return subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode

    with tempfile.TemporaryDirectory() as forged:
        found = list(disagreements(ask, Path(forged), given.every, sets=given.sets))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
