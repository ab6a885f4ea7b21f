"""Heads that are odd but legitimate get right verdicts; those that are no heads get a clear error."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from evidence import assert_agrees_exactly, assert_evidence_holds_exactly, statuses, verified
from numpy.typing import NDArray

import argmaxable as am

INF, NAN = math.inf, math.nan
ARGMAXABLE, UNARGMAXABLE = am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE
LARGEST = np.finfo(np.float64).max
LARGEST32 = np.finfo(np.float32).max
TINIEST = 5e-324
SUBNORMAL = 2.0**-1050  # small enough to be subnormal, large enough for margins to be floats

BOUNDED, UNBOUNDED = [am.Box(-100, 100), am.Box(1, 3)], [am.Box(0, INF), am.Everywhere()]
WHOLE_SOLIDS, LAYER_NORMS = [am.Ball(2.0), am.RMSNorm(1.0)], [am.LayerNorm(1.0), am.LayerNorm(-0.5, 0.25)]
BOXES, SOLIDS = [*BOUNDED, *UNBOUNDED], [*WHOLE_SOLIDS, *LAYER_NORMS]


def draw(*shape: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=shape)


def integers(*shape: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).integers(-3, 3, size=shape, endpoint=True).astype(float)


# ---------------------------------------------------------------------- no heads


def spoiled(value: float, row: int, column: int, dtype: Any = float) -> NDArray[Any]:
    weight = draw(6, 4).astype(dtype)
    weight[row, column] = value
    return weight


NO_WEIGHTS = {
    "NaN": (spoiled(NAN, 5, 2), "class 5, feature 2 is nan"),
    "infinite": (spoiled(INF, 0, 3), "class 0, feature 3 is inf"),
    "minus infinity": (spoiled(-INF, 1, 0), "class 1, feature 0 is -inf"),
    "NaN in float16": (spoiled(NAN, 2, 1, np.float16), "class 2, feature 1 is nan"),
    "infinite in bfloat16": (spoiled(INF, 2, 1, ml_dtypes.bfloat16), "class 2, feature 1 is inf"),
    "NaN in a late block": (np.append(np.zeros((9000, 1)), [[NAN]], axis=0), "class 9000, feature 0 is nan"),
    "no classes": (np.zeros((0, 3)), "empty: 0 classes"),
    "no features": (np.zeros((3, 0)), "empty: 3 classes × 0 features"),
    "an empty list": ([], "matrix"),
    "a number": (1.0, "matrix"),
    "a vector": (np.zeros(3), "matrix"),
    "three dimensions": (np.zeros((2, 3, 4)), "matrix"),
    "ragged": ([[1.0, 2.0], [3.0]], "rectangular"),
    "bool": (np.zeros((2, 2), bool), "dtype bool"),
    "complex": (np.zeros((2, 2), complex), "dtype complex128"),
    "objects": (np.array([[None, 1], [2, 3]], object), "dtype object"),
    "text": (np.array([["1", "2"], ["3", "4"]]), "dtype <U1"),
    "dates": (np.zeros((2, 2), "datetime64[s]"), "dtype datetime64"),
    "long double": (np.zeros((2, 2), np.longdouble), "dtype"),
    "an integer beyond 2^53": (np.array([[2**53 + 1, 0]]), "integers beyond"),
    "an integer below -2^53": (np.array([[-(2**53) - 1, 0]]), "integers beyond"),
    "the largest unsigned integer": (np.array([[2**64 - 1, 0]], np.uint64), "integers beyond"),
    "the least integer": (np.array([[-(2**63), 0]]), "integers beyond"),
    "an integer of any size": ([[10**30, 0]], "dtype object"),
}


@pytest.mark.parametrize(("weight", "message"), NO_WEIGHTS.values(), ids=NO_WEIGHTS)
def test_a_matrix_that_is_no_weight_is_refused(weight: Any, message: str) -> None:
    with pytest.raises(am.HeadError) as error:
        am.Head(weight)
    assert message in str(error.value)


NO_BIASES = {
    "too short": (np.zeros(2), "shape (2,) but the weight has 3 classes"),
    "too long": (np.zeros(4), "shape (4,) but the weight has 3 classes"),
    "a number": (0.5, "shape ()"),
    "a matrix": (np.zeros((3, 3)), "shape (3, 3)"),
    "empty": ([], "shape (0,)"),
    "ragged": ([1.0, [2.0], 3.0], "rectangular"),
    "NaN": ([0.0, NAN, 0.0], "bias of class 1 is nan"),
    "infinite": ([0.0, 0.0, -INF], "bias of class 2 is -inf"),
    "bool": ([True, False, True], "bias has dtype bool"),
    "complex": ([1j, 0, 0], "bias has dtype complex128"),
    "text": (["0", "1", "2"], "bias has dtype <U1"),
    "too large integers": ([0, 2**54 + 1, 0], "bias holds integers beyond"),
}


@pytest.mark.parametrize(("bias", "message"), NO_BIASES.values(), ids=NO_BIASES)
def test_a_vector_that_is_no_bias_is_refused(bias: Any, message: str) -> None:
    with pytest.raises(am.HeadError) as error:
        am.Head(np.eye(3), bias)
    assert message in str(error.value)


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "b", "c", "d"]])
def test_labels_of_another_length_are_refused(labels: list[str]) -> None:
    with pytest.raises(am.HeadError, match=f"{len(labels)} labels for 3 classes"):
        am.Head(np.eye(3), labels=labels)


# ---------------------------------------------------------------------- no domains

NO_DOMAINS = {
    "lo above hi": (lambda: am.Box(1, -1), "empty"),
    "lo above hi in one feature": (lambda: am.Box([0.0, 2.0], [1.0, 1.0]), "feature 1"),
    "lo infinite": (lambda: am.Box(INF, INF), "empty"),
    "hi minus infinity": (lambda: am.Box(-INF, -INF), "empty"),
    "NaN in a box": (lambda: am.Box(NAN, 1), "NaN"),
    "bounds of two lengths": (lambda: am.Box([0.0, 0.0], [1.0, 1.0, 1.0]), "differ in length"),
    "a matrix as a bound": (lambda: am.Box(np.zeros((2, 2)), 1), "shape (2, 2)"),
    "text as a bound": (lambda: am.Box("low", 1), "number"),
    "a ball of no size": (lambda: am.Ball(0.0), "radius"),
    "a negative ball": (lambda: am.Ball(-1.0), "radius"),
    "an infinite ball": (lambda: am.Ball(INF), "radius"),
    "a ball of NaN": (lambda: am.Ball(NAN), "radius"),
    "an infinite gain": (lambda: am.RMSNorm(INF), "RMSNorm gain"),
    "NaN as a shift": (lambda: am.LayerNorm(1.0, [0.0, NAN]), "LayerNorm shift"),
}


@pytest.mark.parametrize(("build", "message"), NO_DOMAINS.values(), ids=NO_DOMAINS)
def test_a_set_that_is_no_domain_is_refused(build: Any, message: str) -> None:
    with pytest.raises(am.DomainError) as error:
        build()
    assert message in str(error.value)


@pytest.mark.parametrize(
    "domain",
    [
        am.Box([0.0, 0.0], 1.0),
        am.Box(-1.0, [1.0, 1.0, 1.0, 1.0]),
        am.RMSNorm([1.0, 1.0]),
        am.RMSNorm(1.0, [0.0, 0.0]),
        am.LayerNorm([1.0]),
    ],
    ids=repr,
)
def test_a_domain_of_another_dimension_is_refused(domain: am.Domain) -> None:
    with pytest.raises(am.DomainError, match="3 features"):
        am.verify(am.Head(np.eye(3)), domain, engine=am.Engine(workers=1))
    with pytest.raises(am.DomainError, match="3 features"):
        am.Checker(am.Head(np.eye(3)), domain)


@pytest.mark.parametrize("only", [[], [3], [-1], [0, 99]])
def test_classes_that_do_not_exist_are_refused(only: list[int]) -> None:
    with pytest.raises(am.InputError):
        am.verify(am.Head(np.eye(3)), only=only, engine=am.Engine(workers=1))


# ---------------------------------------------------------------------- odd heads

SCALES = np.array([1e30, 1e-30, 1.0, 1e15, 1e-15, 1e30])[:, None]
SPREAD = np.array([[1, 1], [-1, 1], [0.5, -1], [0.1, 0]])
BIAS = integers(6, seed=1)
ODD: dict[str, tuple[Any, Any]] = {
    "one class": ([[1.0, 2.0]], None),
    "one class with a bias": ([[1.0, 2.0]], [3.0]),
    "one class of zeros": ([[0.0, 0.0]], None),
    "two classes": ([[1.0, 2.0], [1.0, 3.0]], None),
    "two classes and a bias": ([[1.0, 2.0], [1.0, 3.0]], [1000.0, 0.0]),
    "two equal rows, two biases": ([[1.0, 2.0], [1.0, 2.0]], [1.0, 0.0]),
    "one feature": (integers(6, 1), None),
    "one feature and a bias": (integers(6, 1), BIAS),
    "as many classes as features": (integers(4, 4), [3, 0, -1, 2]),
    "one class more than features": (np.vstack([np.eye(3), np.zeros(3)]), None),
    "fewer classes than features": (integers(3, 7), [0, 5, -5]),
    "a row of zeros": (np.vstack([draw(5, 3), np.zeros(3)]), None),
    "a row of zeros and a bias": (np.vstack([draw(5, 3), np.zeros(3)]), BIAS),
    "zeros only": (np.zeros((5, 3)), None),
    "zeros only and a bias": (np.zeros((5, 3)), [0, 1, 2, 2, 1]),
    "zeros only and one best bias": (np.zeros((4, 3)), [0, 1, 2, 1]),
    "zeros of both signs": ([[0.0, 2.0], [-0.0, 2.0], [0.0, 1.0]], [0.0, -0.0, 0.0]),
    "all rows equal": (np.ones((5, 3)), None),
    "all rows equal and a bias": (np.ones((5, 3)), [0, 1, 2, 2, 1]),
    "all rows equal and one best bias": (np.full((4, 3), 0.1), [0, 1, 2, 1]),
    "rank one": (integers(6, 1) @ integers(1, 4, seed=2), BIAS),
    "rank two": (integers(6, 2) @ integers(2, 4, seed=2), None),
    "rank two and a bias": (integers(6, 2) @ integers(2, 4, seed=2), BIAS),
    "columns of zeros": (draw(6, 4) * [1.0, 0.0, 0.0, 1.0], BIAS),
    "constant columns": (draw(6, 4) * [1.0, 0.0, 1.0, 0.0] + [0.0, 7.0, 0.0, 0.1], BIAS),
    "a large common row": (integers(6, 3) + 2.0**40, BIAS),
    "all scaled up": (draw(6, 3) * 1e30, None),
    "all scaled up and a bias": (draw(6, 3) * 1e30, BIAS),
    "all scaled down": (draw(6, 3) * 1e-30, None),
    "all scaled down and a bias": (draw(6, 3) * 1e-30, BIAS),
    "scales mixed": (draw(6, 3) * SCALES, None),
    "scales mixed and a bias": (draw(6, 3) * SCALES, BIAS),
    "integer scales mixed": (integers(6, 3) * SCALES, BIAS),
    "features of mixed scales": (draw(6, 3) * [1e30, 1.0, 1e-30], BIAS),
    "float32 scaled up": ((draw(6, 3) * 1e30).astype(np.float32), BIAS),
    "float32 scaled down": ((draw(6, 3) * 1e-30).astype(np.float32), None),
    "float32 scales mixed": ((draw(6, 3) * SCALES).astype(np.float32), BIAS),
    "float32 near its largest": (SPREAD.astype(np.float32) * LARGEST32, None),
    "beyond float32": (draw(6, 3) * 1e100, BIAS),
    "below float32": (draw(6, 3) * 1e-100, None),
    "squares overflow": (draw(6, 3) * 1e200, None),
    "squares underflow": (draw(6, 3) * 1e-200, None),
    "near the largest": (SPREAD * LARGEST, None),
    "subnormals": (np.array([[3, 0], [0, 3], [-3, 0], [1, 1], [0, 0]]) * SUBNORMAL, None),
    "subnormals and a bias": (np.array([[3, 0], [0, 3], [-3, 0]]) * SUBNORMAL, [SUBNORMAL, 0, 0]),
    "float32 subnormals": (integers(6, 2).astype(np.float32) * np.float32(2.0**-149), None),
    "integers": (integers(6, 3).astype(np.int64), BIAS.astype(np.int32)),
    "small unsigned integers": (integers(6, 3).astype(np.int64).astype(np.uint8), None),
    "the largest exact integers": ([[2**53, -(2**53)], [2**53 - 1, 1], [0, 0], [1, 2]], [1, 2, 3, 4]),
    "float16": (draw(6, 3).astype(np.float16), BIAS.astype(np.float16)),
    "bfloat16": (draw(6, 3).astype(ml_dtypes.bfloat16), BIAS.astype(ml_dtypes.bfloat16)),
    "bfloat16 scaled up": ((draw(6, 3) * 1e30).astype(ml_dtypes.bfloat16), None),
    "float16 and a bias in float64": (draw(6, 3).astype(np.float16), draw(6, seed=3)),
    "one enormous bias": (draw(6, 3), [0, 0, 1e30, 0, 0, 0]),
    "one enormous negative bias": (draw(6, 3), [0, 0, -1e30, 0, 0, 0]),
    "enormous biases that tie": (integers(8, 2), [1e30, 1e30, 0, 1e30, 0, 0, 0, -1e30]),
    "biases near the largest": (integers(4, 2), [LARGEST, LARGEST, 0, 1]),
    "biases from one end to the other": (integers(4, 2), [LARGEST, -LARGEST, -LARGEST, 0]),
    "subnormal biases": (integers(5, 2), np.array([1, 2, 0, 3, -1]) * SUBNORMAL),
    "a bias in a column": (integers(6, 2), BIAS[:, None]),
    "a bias in a row": (integers(6, 2), BIAS[None, :]),
}  # fmt: skip


# Curved domains have no exact programme to fall back on. Where the sizes within one problem differ by more
# than float64 can hold, a class may stay undecided; it must say why, and what is decided must be right.
BEYOND_FLOATS = frozenset(
    {
        "all scaled up and a bias", "scales mixed", "scales mixed and a bias", "integer scales mixed",
        "float32 scales mixed", "features of mixed scales", "beyond float32", "squares overflow",
        "float32 scaled up", "near the largest", "one enormous negative bias", "biases near the largest",
        "biases from one end to the other", "subnormal biases",
    }
)  # fmt: skip
# A witness of these would need coordinates beyond the largest float when the domain has no bounds.
BEYOND_THE_LARGEST_FLOAT = frozenset({"biases near the largest", "biases from one end to the other"})


def assert_right_or_undecided_with_a_reason(head: am.Head, domain: am.Domain) -> None:
    result = am.verify(head, domain, engine=am.Engine(workers=1))
    assert all(verdict.reason for verdict in result.undecided)
    assert_evidence_holds_exactly(head, domain, result)


def in_turn(*tables: list[Any]) -> list[Any]:
    """Each odd head with one domain of each table. All combinations of domains come up; the turn slips by one
    after each round, so that heads with a bias and those without do not always meet the same ones."""
    rounds = list(itertools.product(*tables))
    return [
        pytest.param(name, domain, id=f"{name}-{domain}")
        for number, name in enumerate(ODD)
        for domain in rounds[(number + number // len(rounds)) % len(rounds)]
    ]


@pytest.mark.parametrize(("name", "domain"), in_turn(BOUNDED, UNBOUNDED))
def test_an_odd_head_agrees_with_the_rational_simplex(name: str, domain: Any) -> None:
    weight, bias = ODD[name]
    head = am.Head(weight, bias)
    if domain == am.Everywhere() and name in BEYOND_THE_LARGEST_FLOAT:
        assert_right_or_undecided_with_a_reason(head, domain)
    else:
        assert_agrees_exactly(head, domain)


@pytest.mark.parametrize(("name", "domain"), in_turn(WHOLE_SOLIDS, LAYER_NORMS))
def test_an_odd_head_is_decided_over_curved_domains(name: str, domain: am.Domain) -> None:
    weight, bias = ODD[name]
    head = am.Head(weight, bias)
    if name in BEYOND_FLOATS:
        assert_right_or_undecided_with_a_reason(head, domain)
    else:
        assert_evidence_holds_exactly(head, domain, verified(head, domain))


@pytest.mark.parametrize("domain", [*BOXES, *SOLIDS], ids=str)
def test_the_only_class_is_argmaxable(domain: am.Domain) -> None:
    assert statuses(verified(am.Head([[1.0, -2.0]]), domain)) == [ARGMAXABLE]


@pytest.mark.parametrize("domain", [*BOXES, *SOLIDS], ids=str)
def test_equal_rows_are_all_tied(domain: am.Domain) -> None:
    result = verified(am.Head(np.ones((4, 2))), domain)
    assert [verdict.tied_with for verdict in result.tied] == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]


@pytest.mark.parametrize("domain", [*WHOLE_SOLIDS, LAYER_NORMS[0]], ids=str)
def test_rivals_that_never_win_hide_nothing_however_low_their_biases(domain: am.Domain) -> None:
    for seed in range(12):
        bias = np.random.default_rng(seed).choice([1e39, 1e39, 0.0, -1e39], 9)
        head = am.Head(integers(9, 3, seed=seed), bias)
        assert_evidence_holds_exactly(head, domain, verified(head, domain))


@pytest.mark.parametrize("features", [1, 2, 5, 20])
def test_affinely_independent_rows_are_all_argmaxable_everywhere(features: int) -> None:
    rows = np.vstack([np.eye(features), np.zeros(features)])
    bias = np.arange(features + 1.0)
    assert not verified(am.Head(rows, bias), am.Everywhere()).unargmaxable


def test_an_enormous_bias_leaves_one_class_argmaxable() -> None:
    result = verified(am.Head(draw(8, 3), [0, 0, 1e30, 0, 0, 0, 0, 0]), am.Box(-100, 100))
    assert [verdict.class_id for verdict in result.argmaxable] == [2]


@functools.cache
def without_bias(number: int) -> list[am.Status]:
    return statuses(verified(am.Head(draw(8, 3)), [*BOXES, *SOLIDS][number]))


@pytest.mark.parametrize("constant", [0.0, 3.0, -1e30, 1e300, 0.1, TINIEST])
@pytest.mark.parametrize("number", range(8), ids=lambda number: str([*BOXES, *SOLIDS][number]))
def test_a_constant_bias_is_as_good_as_none(number: int, constant: float) -> None:
    head = am.Head(draw(8, 3), np.full(8, constant))
    assert statuses(verified(head, [*BOXES, *SOLIDS][number])) == without_bias(number)


# ---------------------------------------------------------------------- odd domains

ODD_BOXES = {
    "one point": am.Box(2, 2),
    "the point 0": am.Box(0, 0),
    "one point with different features": am.Box([1.0, -1.0, 0.0], [1.0, -1.0, 0.0]),
    "one feature fixed": am.Box([1.0, -1.0, -INF], [1.0, 2.0, 0.0]),
    "two features fixed": am.Box([1.0, 0.5, -1.0], [1.0, 0.5, 1.0]),
    "hardly any room": am.Box(1.0, np.nextafter(1.0, 2.0)),
    "subnormal room": am.Box(0.0, SUBNORMAL),
    "tiny": am.Box(-1e-200, 1e-200),
    "enormous": am.Box(-1e200, 1e200),
    "the largest": am.Box(-LARGEST, LARGEST),
    "far away": am.Box(1e15, 1e15 + 1),
    "infinite on both sides": am.Box(-INF, INF),
    "half a space in one feature": am.Box([0.0, -INF, -INF], INF),
}


@pytest.mark.parametrize("bias", [None, integers(7, seed=4)], ids=["no bias", "bias"])
@pytest.mark.parametrize("domain", ODD_BOXES.values(), ids=ODD_BOXES)
def test_an_odd_box_agrees_with_the_rational_simplex(domain: am.Box, bias: Any) -> None:
    assert_agrees_exactly(am.Head(integers(7, 3, seed=5), bias), domain)
    assert_agrees_exactly(am.Head(draw(7, 3, seed=5), bias), domain)


ODD_SOLIDS = {
    "a tiny ball": am.Ball(1e-30),
    "a ball whose square underflows": am.Ball(1e-200),
    "an enormous ball": am.Ball(1e30),
    "a ball whose square overflows": am.Ball(1e200),
    "no gain": am.RMSNorm(0.0),
    "no gain but a shift": am.RMSNorm(0.0, [1.0, 2.0, -1.0]),
    "gain in one feature": am.RMSNorm([1.0, 0.0, 0.0], 0.5),
    "gains of mixed scales": am.RMSNorm([1e-20, 1.0, 1e20]),
    "no gain under a LayerNorm": am.LayerNorm(0.0, [1.0, 2.0, -1.0]),
    "gain in one feature under a LayerNorm": am.LayerNorm([1.0, 0.0, 0.0]),
    "gains of mixed scales under a LayerNorm": am.LayerNorm([1e-20, 1.0, 1e20]),
    "a far shift": am.LayerNorm(1.0, 1e15),
}


SOLIDS_BEYOND_FLOATS = frozenset(name for name in ODD_SOLIDS if "mixed scales" in name or "square" in name)


@pytest.mark.parametrize("bias", [None, draw(7, seed=4)], ids=["no bias", "bias"])
@pytest.mark.parametrize("name", ODD_SOLIDS)
def test_an_odd_solid_is_decided(name: str, bias: Any) -> None:
    head, domain = am.Head(draw(7, 3, seed=5), bias), ODD_SOLIDS[name]
    if name in SOLIDS_BEYOND_FLOATS:
        assert_right_or_undecided_with_a_reason(head, domain)
    else:
        assert_evidence_holds_exactly(head, domain, verified(head, domain))


def test_a_layer_norm_of_one_feature_leaves_ties_only() -> None:
    """With one feature the mean is all there is: x is the shift, whatever the input."""
    assert statuses(verified(am.Head([[1.0], [2.0], [3.0]]), am.LayerNorm(1.0))) == [UNARGMAXABLE] * 3


# A class whose best is an exact tie on the curved surface, where nothing rounds in its favour.
TIES_ON_A_SURFACE = {
    "ball": ([[1.0, 0.0], [0.0, 0.0]], [-2.0, 0.0], am.Ball(2.0)),
    "ball, in a slanted direction": ([[3.0, 4.0], [0.0, 0.0]], [-10.0, 0.0], am.Ball(2.0)),
    "RMSNorm": ([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [-2.0, 0.0], am.RMSNorm(1.0)),
    "RMSNorm of one feature": ([[2.0], [0.0]], [-2.0, 0.0], am.RMSNorm(1.0)),
    "LayerNorm": ([[1.0, -1.0], [0.0, 0.0]], [-2.0, 0.0], am.LayerNorm(1.0)),
    "enormous": ([[1e30, 0.0], [0.0, 0.0]], [0.0, 1e30], am.Ball(1.0)),
    "ball, one feature of five": (
        [[0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.0], [-0.1, -0.1, -0.1, 0.1, -0.1]],
        [-0.1, 0.1, 0.0],
        am.Ball(2.0),
    ),
    "RMSNorm, at the shift's far end": ([[0.0], [1.0], [-1.0]], None, am.RMSNorm(-1.0, -1.0)),
    "ball, of three classes": ([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], [-2.0, 0.0, 0.0], am.Ball(2.0)),
}


@pytest.mark.parametrize("case", TIES_ON_A_SURFACE.values(), ids=TIES_ON_A_SURFACE)
def test_a_tie_on_a_curved_surface_is_unargmaxable(case: tuple) -> None:
    weight, bias, domain = case
    head = am.Head(weight, bias)
    result = verified(head, domain)
    assert_evidence_holds_exactly(head, domain, result)
    assert result.verdicts[0].status is UNARGMAXABLE


# ---------------------------------------------------------------------- odd arrays

PLAIN = draw(15, 4).astype(np.float32)


def mapped(array: NDArray[Any], folder: Path) -> NDArray[Any]:
    path = folder / f"{array.shape[1]} columns.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


ARRAYS = {
    "Fortran order": lambda array, folder: np.asfortranarray(array),
    "every second of twice the columns": lambda array, folder: np.repeat(array, 2, axis=1)[:, ::2],
    "every second of twice the rows": lambda array, folder: np.repeat(array, 2, axis=0)[::2],
    "reversed twice": lambda array, folder: array[::-1].copy()[::-1],
    "big-endian": lambda array, folder: array.astype(">f4"),
    "read-only": lambda array, folder: np.frombuffer(array.tobytes(), np.float32).reshape(array.shape),
    "a read-only memory map": mapped,
    "lists": lambda array, folder: array.tolist(),
    "float64": lambda array, folder: array.astype(np.float64),
}


@pytest.mark.parametrize("lay_out", ARRAYS.values(), ids=ARRAYS)
def test_the_layout_of_an_array_changes_no_status(lay_out: Any, tmp_path: Path) -> None:
    bias = draw(15, seed=1).astype(np.float32)
    expected = verified(am.Head(PLAIN, bias), am.Box(-1, 1))
    head = am.Head(lay_out(PLAIN, tmp_path), lay_out(bias[:, None], tmp_path))
    assert (head.rows(slice(None)) == PLAIN).all()
    assert (head.biases() == bias).all()
    assert statuses(verified(head, am.Box(-1, 1))) == statuses(expected)


def test_a_head_does_not_change_the_arrays_it_is_given() -> None:
    weight, bias = PLAIN.copy(), draw(15, seed=1)
    before = weight.tobytes(), bias.tobytes()
    verified(am.Head(weight, bias), am.Box(-1, 1))
    assert (weight.tobytes(), bias.tobytes()) == before
    assert weight.flags.writeable
    assert bias.flags.writeable


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=str)
def test_a_head_keeps_its_dtype_and_every_value(dtype: Any) -> None:
    weight = draw(5, 3).astype(dtype)
    head = am.Head(weight)
    assert head.weight.dtype == np.dtype(dtype)
    assert (head.rows(slice(None)) == weight.astype(np.float64)).all()
