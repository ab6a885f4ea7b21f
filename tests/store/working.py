"""Processes that work on a store, for tests that watch, crowd or kill them.

python working.py PLACE hold            begin the run, say so, wait for the end of the input
python working.py PLACE record          record a batch at a time and count them aloud, without end
python working.py PLACE crowd same      5 processes at once begin the same run
python working.py PLACE crowd different  or one each
python working.py PLACE fill LIMIT      record until files may grow no more
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from stored_runs import CENTRE, COST, plan, verdict, verdicts

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.store import Plan, open_store

BATCH = 7
CROWD = 5
LONG = 1_000_000


def started(place: str, *words: str) -> subprocess.Popen[str]:
    """Such a process, with the place in its environment: a command line is there for all to see."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, __file__, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "PLACE": place},
        text=True,
    )


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def long_plan() -> Plan:
    """More classes than anybody waits for."""
    return plan(facts=Facts("long", "1f" * 32, LONG, 3, False, "float32"), labels=None)


def batch(number: int) -> list[am.Verdict]:
    """The verdicts of the n-th batch of the long plan; evidence as ever."""
    kinds = verdicts(6)
    ids = range(number * BATCH, (number + 1) * BATCH)
    return [
        am.Verdict(**{name: getattr(kinds[k % 6], name) for name in am.Verdict.__slots__} | {"class_id": k})
        for k in ids
    ]


def hold(place: str) -> None:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        print(f"begun {run.run_id}", flush=True)
        sys.stdin.read()


def record(place: str) -> None:
    with open_store(place) as store, store.begin(long_plan(), centre=CENTRE) as run:
        number = len(run.known) // BATCH
        while True:
            run.record(batch(number), COST)
            number += 1
            print(number, flush=True)


def crowd(place: str, kind: str) -> None:
    import argmaxable.store.database
    import argmaxable.store.store  # once, instead of in each of them

    if place.startswith("postgresql"):
        import argmaxable.store.postgresql
    if kind == "same":  # the one that gets the run holds it until the others have given up
        argmaxable.store.database._PATIENCE_SECONDS = 0.0
    children = [os.fork() or _one_of_many(place, number, kind) for number in range(CROWD)]
    for child in children:
        os.waitpid(child, 0)


def _one_of_many(place: str, number: int, kind: str) -> int:
    try:
        with open_store(place) as store:
            mine = plan(seed=number if kind == "different" else 0)
            with store.begin(mine, centre=CENTRE) as run:
                said = f"begun {run.run_id}\n"
                os.write(1, said.encode())
                if kind == "same":
                    sys.stdin.read()
                run.record(verdicts(), COST)
                run.finish(COST)
    except am.StoreError as error:
        os.write(1, f"refused {error}\n".encode())
    except BaseException as error:
        os.write(1, f"failed {error!r}\n".encode())
    os._exit(0)


def fill(place: str, limit: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    committed = 0
    try:
        with open_store(place) as store, store.begin(long_plan(), centre=CENTRE) as run:
            while True:
                text = "x" * 10_000
                run.record([verdict(committed, am.Status.UNDECIDED, reason=text)], COST)
                committed += 1
    except am.StoreError as error:
        print(committed, error, flush=True)


if __name__ == "__main__":
    action, *rest = sys.argv[1:]
    globals()[action](os.environ["PLACE"], *rest)
