"""Runs on other devices and within a limit of memory: the same verdicts, by checked evidence."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import dot, placed, rationals

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.compute.budget import PROCESS_BYTES, SOLVE_BYTES, Compute, parse_bytes
from argmaxable.compute.prepared import PreparedHead
from argmaxable.compute.rows import StreamedRows
from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.search.own_direction import own_exponents

CLASSES = 400


def planted_head(*, bias: bool) -> am.Head:
    """A head some of whose rows are mixtures of others, some of them twice there."""
    generator = np.random.default_rng(7)
    weight = generator.standard_normal((CLASSES, 12)).astype(np.float32)
    for class_id in range(40):
        some = generator.choice(np.arange(100, CLASSES), 60, replace=False)
        weight[class_id] = generator.dirichlet(np.ones(60)) @ weight[some]
    weight[50] = weight[51]
    return am.Head(weight, generator.normal(0, 0.1, CLASSES).astype(np.float32) if bias else None)


def statuses(result: am.Result) -> list[Status]:
    return [verdict.status for verdict in result.verdicts]


@pytest.mark.parametrize("bias", [False, True])
def test_pytorch_gives_the_verdicts_of_numpy(bias: bool) -> None:
    head = planted_head(bias=bias)
    engines = am.Engine(workers=1), am.Engine(workers=1, device="cpu")
    plain, torch = (am.verify(head, engine=engine) for engine in engines)
    assert statuses(plain) == statuses(torch)
    assert len(plain.unargmaxable) > 40
    assert not plain.undecided


@pytest.mark.parametrize("domain", [am.Box(-100, 100), am.Box(0, np.inf), am.Ball(5), am.Everywhere()])
def test_streamed_rows_give_the_verdicts_of_held_ones(domain: am.Domain) -> None:
    head = planted_head(bias=True)
    held = am.verify(head, domain, engine=am.Engine(workers=1))
    least = head.weight.nbytes + PROCESS_BYTES + SOLVE_BYTES * head.features**2
    streamed = am.verify(head, domain, engine=am.Engine(workers=1, memory=least))
    assert statuses(held) == statuses(streamed)


def test_rows_are_streamed_where_they_do_not_fit() -> None:
    head = planted_head(bias=False)
    prepared = PreparedHead(head, compute=Compute(memory=head.weight.nbytes - 1))
    assert isinstance(prepared.rows32, StreamedRows)
    prepared = PreparedHead(head, compute=Compute(memory=head.weight.nbytes))
    assert isinstance(prepared.rows32, np.ndarray)


def test_too_little_memory_is_refused_before_anything_is_done() -> None:
    with pytest.raises(InputError, match=r"Allow 0\.5 GB"):
        am.verify(planted_head(bias=False), engine=am.Engine(workers=1, memory=10_000_000))


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("1.5 g", 1_500_000_000), ("2GiB", 2**31), ("800mb", 8 * 10**8)]
)
def test_amounts_of_memory_are_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-4GB", "4 parsecs", "4G!"])
def test_what_is_no_amount_of_memory_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="4GB or 800MB"):
        parse_bytes(text)


def all_gaps(head: am.Head, domain: am.Domain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower bounds on the gaps at own directions: class by class at its point, and of rows by each other."""
    checker = Checker(head, domain)
    ids = np.arange(head.classes)
    exponents = own_exponents(checker, ids)
    mutual = np.full(head.classes, np.nan)
    for some, gaps in checker.own_gaps(ids, exponents):
        mutual[some] = gaps.lower
    return checker.gaps(ids, checker.rebuild(ids, exponents)).lower, mutual


GAIN = np.array([1.0, -0.3, 0.0, 2.5, 1e-3, 7.0, 0.1, -1.0, 0.5, 3.0, 1.7, 0.9])


@pytest.mark.parametrize(
    "domain",
    [
        *(am.Box(-100, 100), am.Box(-0.5, 2), am.Ball(5), am.RMSNorm(np.ones(12)), am.RMSNorm(GAIN)),
        *(am.RMSNorm(GAIN, 0.1 * np.ones(12)), am.LayerNorm(GAIN)),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_rows_compared_with_each_other_prove_the_gaps_at_their_points(domain: am.Domain, bias: bool) -> None:
    plain, mutual = all_gaps(planted_head(bias=bias), domain)
    np.testing.assert_array_equal(plain > 0, mutual > 0)
    np.testing.assert_allclose(plain, mutual, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("factor", [1e-200, 1e-40, 1e-19, 1.0, 1e18, 1e40, 1e150])
@pytest.mark.parametrize("bias", [False, True])
def test_gaps_through_a_gain_are_never_above_the_true_ones(factor: float, bias: bool) -> None:
    whole, domain = planted_head(bias=bias), am.RMSNorm(factor * GAIN)
    head = am.Head(whole.weight[20:80], None if whole.bias is None else whole.bias[20:80])
    _, mutual = all_gaps(head, domain)
    checker = Checker(head, domain)
    for class_id in (0, 10, 30, 31, 59):
        ids = np.array([class_id])
        (point,) = checker.rebuild(ids, own_exponents(checker, ids))
        x = placed(domain, rationals(point))
        assert x is not None
        rows, biases = head.rows(slice(None)), head.biases()
        nearest = np.argsort(rows @ np.array(x, float))[-20:].tolist()
        own = dot(rationals(rows[class_id]), x) + Fraction(biases[class_id])
        rivals = [dot(rationals(rows[k]), x) + Fraction(biases[k]) for k in nearest if k != class_id]
        assert Fraction(mutual[class_id]) <= own - max(rivals)


@pytest.mark.parametrize("factor", [1e-30, 1e-19, 1.0, 1e18, 1e30])
def test_rows_of_extreme_size_are_compared_safely(factor: float) -> None:
    head = planted_head(bias=True)
    scaled = am.Head(head.weight.astype(float) * factor, head.bias)
    exact = am.Head(scaled.weight, scaled.bias)
    plain, mutual = all_gaps(exact, am.Everywhere())
    np.testing.assert_array_equal(plain > 0, mutual > 0)


_PEAK = """
import sys
import numpy as np
import argmaxable as am
from argmaxable.compute.budget import PROCESS_BYTES, SOLVE_BYTES

weight = np.lib.format.open_memmap(sys.argv[1], "w+", np.float16, (20_000, 1024))
for first in range(0, 20_000, 1000):
    weight[first : first + 1000] = np.random.default_rng(first).standard_normal((1000, 1024))
head = am.Head(weight)
limit = head.weight.nbytes + PROCESS_BYTES + SOLVE_BYTES * 1024**2
result = am.verify(head, only=range(200), engine=am.Engine(workers=1, memory=limit))
assert len(result.argmaxable) == 200, result
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak * 1024 / limit)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_a_limit_of_memory_is_obeyed(tmp_path: object) -> None:
    """Half-precision rows of 41 MB, which would be 82 MB more in float32."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, f"{tmp_path}/weight.npy"], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) <= 1
