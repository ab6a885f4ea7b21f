"""A run of a million verdicts written, summarised and read back, in SQLite and in PostgreSQL.

The yardstick writes the very same rows with the bare driver: sqlite3's executemany, psycopg's COPY. It
makes no digests, no counts and no rows: those are given to it. The PostgreSQL is the tests' server, with
fsync on. Verdicts are as a large head has them: most proven by their own direction, some by a point, some
unargmaxable by certificates that many share.

    python benchmarks/store.py [--verdicts 1000000] [--features 64]
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import _record
import numpy as np
import psycopg
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost
from argmaxable.store import Plan, Store, open_store
from argmaxable.store.rows import EvidenceRow, VerdictRow, batch_of
from argmaxable.store.schema import METADATA

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgres_server import running_server  # the tests' own server

BATCH = 20_000
CENTRE = np.zeros(3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=64)
    options = parser.parse_args()
    count, features = options.verdicts, options.features
    with tempfile.TemporaryDirectory() as folder:
        sqlite = measure(f"{folder}/runs.db", count, features)
        sqlite |= against(sqlite, count, plain_sqlite(f"{folder}/plain.db", count, features))
    with running_server(is_durable=True) as server:
        place = server.new_place()
        postgresql = measure(place, count, features)
        postgresql |= against(postgresql, count, plain_postgresql(server.url(), count, features))
    _record.write(
        "store",
        {
            "verdicts": count,
            "features": features,
            "verdicts_per_batch": BATCH,
            "yardstick": "the same rows, made beforehand, by sqlite3 executemany / psycopg COPY alone",
            "sqlite": {"library": sqlite3.sqlite_version, **sqlite},
            "postgresql": {"library": psycopg.__version__, **postgresql},
        },
    )


# ---------------------------------------------------------------------- the store


def measure(place: str, count: int, features: int) -> dict[str, Any]:
    plan = Plan(
        Facts("large", "00" * 32, count, features, False, "float32"),
        None, am.Box(-100.0, 100.0), am.Algorithm.AUTO, 30, 0,
    )  # fmt: skip
    with open_store(place) as store:
        with store.begin(plan, centre=CENTRE) as run:
            writing = [timed(partial(run.record, batch, Cost())) for batch in batches(count, features)]
            run.finish(Cost())
        found = {
            "write_s": sum(writing),
            "slowest_batch_s": max(writing),
            "summary_ms": 1e3 * typical(lambda: store.run(run.run_id)),
            "list_ms": 1e3 * typical(store.runs),
            "open_and_summary_ms": 1e3 * typical(lambda: opened_summary(place, run.run_id)),
            "unargmaxable_s": timed(lambda: consume(store, run.run_id, am.Status.UNARGMAXABLE)),
            "stream_s": timed(lambda: consume(store, run.run_id, None)),
            "found_again_s": timed(lambda: known(store, plan)),
        }
        assert store.run(run.run_id).counts.open == 0
        found["delete_s"] = timed(lambda: store.delete([run.run_id]))
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def opened_summary(place: str, run_id: int) -> None:
    with open_store(place) as store:
        store.run(run_id)


def consume(store: Store, run_id: int, status: am.Status | None) -> None:
    for _ in store.verdicts(run_id, status=status):
        pass


def known(store: Store, plan: Plan) -> None:
    with store.begin(plan, centre=CENTRE) as run:
        assert len(run.known) == plan.facts.classes


def batches(count: int, features: int) -> Iterator[list[am.Verdict]]:
    generator = np.random.default_rng(0)
    shared = [certificate(generator, count, features) for _ in range(100)]
    for first in range(0, count, BATCH):
        ids = range(first, min(first + BATCH, count))
        yield [verdict(class_id, generator, features, shared) for class_id in ids]


def certificate(generator: np.random.Generator, count: int, features: int) -> am.Certificate:
    classes = np.sort(generator.choice(count, features + 1, replace=False))
    return am.Certificate(classes, generator.random(features + 1), features + 1)


def verdict(
    class_id: int, generator: np.random.Generator, features: int, shared: list[am.Certificate]
) -> am.Verdict:
    """90 of 100 by their own direction, 5 by a point, 4 unargmaxable, 1 undecided."""
    kind, label = class_id % 100, f"▁token{class_id}"
    if kind < 95:
        point = generator.standard_normal(features).astype(np.float32).astype(np.float64)
        return am.Verdict(
            class_id, label, am.Status.ARGMAXABLE, lower=0.1 + kind, upper=200.0 + kind,
            method=am.Method.OWN_DIRECTION if kind < 90 else am.Method.REFLECTION,
            strength=am.Strength.FLOAT32,
            witness=am.OwnDirection(-kind) if kind < 90 else am.Point(point),
            certificate=am.Certificate(np.array([class_id + 1]), np.ones(1)),
        )  # fmt: skip
    if kind < 99:
        return am.Verdict(
            class_id, label, am.Status.UNARGMAXABLE, -math.inf, -1e-17, am.Method.TRANSFER,
            am.Strength.INTERVAL, certificate=shared[class_id % len(shared)],
            steps=9, rows=120, seconds=0.006,
        )  # fmt: skip
    return am.Verdict(
        class_id, label, am.Status.UNDECIDED, -math.inf, math.inf, am.Method.NONE, None,
        steps=60, rows=300, seconds=0.5, reason="no decision after 60 Newton steps",
    )  # fmt: skip


# ---------------------------------------------------------------------- the yardstick


def plain_rows(count: int, features: int) -> list[tuple[list[VerdictRow], list[EvidenceRow]]]:
    """The rows of each batch; evidence that an earlier batch has written is left out."""
    seen: set[bytes] = set()
    made = []
    for verdicts in batches(count, features):
        batch = batch_of(1, verdicts)
        evidence = [row for row in batch.evidence_rows() if row.digest not in seen]
        seen |= batch.evidence.keys()
        made.append(([row for rows in batch.verdicts.values() for row in rows], evidence))
    return made


def tables(dialect: str) -> list[str]:
    """The two tables as they are, but for the reference to a run."""
    kind = {"sqlite": sqlite, "postgresql": postgresql}[dialect].dialect()
    return [
        str(CreateTable(METADATA.tables[name], include_foreign_key_constraints=[]).compile(dialect=kind))
        for name in ("verdicts", "evidence")
    ]


def plain_sqlite(path: str, count: int, features: int) -> float:
    made = plain_rows(count, features)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    for statement in tables("sqlite"):
        connection.execute(statement)
    started = time.perf_counter()
    for verdicts, evidence in made:
        for table, rows in (("evidence", evidence), ("verdicts", verdicts)):
            marks = ", ".join("?" * len(rows[0])) if rows else ""
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        connection.commit()
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def plain_postgresql(url: str, count: int, features: int) -> float:
    made = plain_rows(count, features)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for statement in tables("postgresql"):
            cursor.execute(statement)
        started = time.perf_counter()
        for verdicts, evidence in made:
            for table, rows in (("evidence", evidence), ("verdicts", verdicts)):
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            connection.commit()
        return time.perf_counter() - started


# ---------------------------------------------------------------------- time


def against(found: dict[str, Any], count: int, yardstick_s: float) -> dict[str, Any]:
    return {
        "verdicts_per_s": round(count / found["write_s"]),
        "yardstick_write_s": float(f"{yardstick_s:.3g}"),
        "ratio": round(found["write_s"] / yardstick_s, 2),
    }


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def typical(work: Callable[[], Any]) -> float:
    """Median of 21 times, the first one left out."""
    return statistics.median([timed(work) for _ in range(22)][1:])


if __name__ == "__main__":
    main()
