"""Rounded copies of heads, and leads measured in units of rounding error against logits really computed."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from argmaxable import Box, Everywhere, Head, HeadError, LayerNorm, RMSNorm
from argmaxable.questions.arithmetic.formats import Float, Rounding, rounded
from argmaxable.questions.arithmetic.rounding import Machine

DTYPES = {Float.BF16: torch.bfloat16, Float.FP16: torch.float16, Float.FP32: torch.float32}


def random_head(seed: int, classes: int = 40, features: int = 8, *, bias: bool = True) -> Head:
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(classes, features)) + rng.normal(size=features)
    return Head(weight, rng.normal(size=classes) if bias else None)


def computed(head: Head, x: NDArray[np.float64], number: Float) -> NDArray[np.float64]:
    """Logits as PyTorch computes them in that format."""
    dtype = DTYPES[number]
    weight = torch.tensor(head.rows(slice(None))).to(dtype)
    bias = None if head.bias is None else torch.tensor(head.biases()).to(dtype)
    return torch.nn.functional.linear(torch.tensor(x).to(dtype), weight, bias).double().numpy()


# ---------------------------------------------------------------------- rounded copies


@pytest.mark.parametrize(
    ("to", "dtype"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16), ("fp32", np.float32)]
)
def test_a_rounded_head_has_the_weights_and_bias_of_that_format(to: str, dtype: type) -> None:
    head = random_head(0)
    copy = rounded(head, to)
    assert copy.bias is not None
    assert copy.weight.dtype == copy.bias.dtype == np.dtype(dtype)
    assert (copy.weight == head.weight.astype(dtype)).all()


def test_rounding_to_the_format_of_a_head_changes_nothing() -> None:
    head = rounded(random_head(1), Rounding.BF16)
    assert rounded(head, Rounding.BF16).sha256() == head.sha256()


def test_int8_has_at_most_255_values_a_row() -> None:
    copy = rounded(random_head(2, features=1000, classes=3), Rounding.INT8)
    assert all(len(set(row.tolist())) <= 255 for row in copy.weight)


def test_int8_with_one_scale_loses_small_rows() -> None:
    weight = np.array([[127.0, 1.0], [0.1, 0.2]])
    assert (rounded(Head(weight), "int8-tensor").weight == [[127, 1], [0, 0]]).all()


def test_int8_with_a_scale_a_row_keeps_small_rows() -> None:
    weight = np.array([[127.0, 1.0], [0.1, 0.2]])
    error = np.abs(rounded(Head(weight), "int8").weight - weight)
    assert (error <= np.abs(weight).max(axis=1, keepdims=True) / 254 * (1 + 1e-6)).all()


def test_int8_of_a_zero_row_is_zero() -> None:
    assert (rounded(Head([[0.0, 0.0], [1.0, 2.0]]), "int8").weight[0] == 0).all()


def test_int8_leaves_the_bias_alone() -> None:
    head = random_head(3)
    assert (rounded(head, "int8").biases() == head.biases()).all()


def test_weights_beyond_the_format_are_an_error_that_names_it() -> None:
    with pytest.raises(HeadError, match=r"does not fit into fp16.*wider range"):
        rounded(Head([[1e6, 0.0], [0.0, 1.0]]), Rounding.FP16)


@pytest.mark.parametrize("to", ["int8", "int8-tensor"])
def test_weights_beyond_any_scale_of_int8_are_such_an_error_too(to: str) -> None:
    with pytest.raises(HeadError, match=f"does not fit into {to}"):
        rounded(Head([[1e300, 0.0], [0.0, 1.0]]), to)


def test_a_rounded_head_is_named_after_its_format() -> None:
    assert rounded(Head([[1.0]], name="m.onnx"), "int8").name == "m.onnx in int8"


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize("number", Float)
@pytest.mark.parametrize("bias", [True, False])
def test_a_lead_above_one_unit_wins_in_logits_that_pytorch_computes(number: Float, bias: bool) -> None:
    head = random_head(4, classes=200, bias=bias)
    machine = Machine(head, Box(-100, 100), number)
    points = np.random.default_rng(5).normal(size=(500, head.features)) * 3
    winners = (points @ head.rows(slice(None)).T + head.biases()).argmax(axis=1)
    sure = machine.units(winners, points) > 1
    logits = computed(head, points, number)
    own = logits[np.arange(len(points)), winners]
    logits[np.arange(len(points)), winners] = -np.inf
    assert sure.sum() > 50
    assert (own > logits.max(axis=1))[sure].all()


@given(seed=st.integers(0, 2**32 - 1), number=st.sampled_from(list(Float)))
def test_no_input_with_more_than_one_unit_loses(seed: int, number: Float) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, 3))
    head = Head(np.concatenate([rows, rows + 2.0 ** -rng.integers(2, 26) * rng.normal(size=(6, 3))]))
    points = rng.normal(size=(20, 3))
    winners = (points @ head.rows(slice(None)).T).argmax(axis=1)
    sure = Machine(head, Everywhere(), number).units(winners, points) > 1
    logits = computed(head, points, number)
    best = logits.max(axis=1, keepdims=True)
    assert ((logits == best).sum(axis=1) == 1)[sure].all()
    assert (logits.argmax(axis=1) == winners)[sure].all()


@pytest.mark.parametrize("number", Float)
def test_rows_that_round_to_the_same_lead_by_no_unit(number: Float) -> None:
    row = np.array([1.0, -0.5, 0.25])
    head = Head(np.stack([row, row * (1 + 2.0**-40), -row]))
    assert Machine(head, Everywhere(), number).units(np.array([1]), row[None])[0] == 0


def test_units_do_not_depend_on_scale_without_bias() -> None:
    head = random_head(6, bias=False)
    machine = Machine(head, Everywhere(), Float.BF16)
    points = head.rows(np.arange(5))
    assert np.allclose(machine.units(np.arange(5), points), machine.units(np.arange(5), points * 8))


def test_logits_beyond_the_format_do_not_count_as_won() -> None:
    head = Head([[60000.0, 0.0], [0.0, 1.0]])
    assert not Machine(head, Everywhere(), Float.FP16).units(np.array([0]), np.array([[4.0, 0.0]]))[0] > 1


def test_a_coarser_format_makes_leads_smaller_in_units() -> None:
    head = rounded(random_head(7), Rounding.BF16)
    points = 3 * rounded(Head(head.rows(slice(None))), Rounding.BF16).rows(slice(None))
    classes = np.arange(head.classes)
    units = [Machine(head, Everywhere(), number).units(classes, points) for number in Float]
    won = units[2] > 0
    assert (units[0][won] < units[1][won]).all()
    assert (units[1][won] < units[2][won]).all()


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_points_of_a_norm_are_measured_at_their_features(kind: type[RMSNorm] | type[LayerNorm]) -> None:
    head, rng = random_head(8), np.random.default_rng(9)
    solid = kind(rng.normal(size=head.features), rng.normal(size=head.features))
    z = rng.normal(size=(10, head.features))
    classes = np.arange(10)
    inside = Machine(head, solid, Float.FP32).units(classes, z)
    assert (inside == Machine(head, Everywhere(), Float.FP32).units(classes, solid.place(z)[0])).all()


@pytest.mark.parametrize(
    "domain", [Everywhere(), RMSNorm(np.linspace(0.5, 2, 8), 0.1), LayerNorm(np.linspace(0.5, 2, 8), 0.1)]
)
def test_units_grow_in_the_direction_of_climbing(domain: Everywhere | RMSNorm | LayerNorm) -> None:
    head = random_head(10)
    machine = Machine(head, domain, Float.FP32)
    classes = np.arange(head.classes)
    points = np.random.default_rng(11).normal(size=(head.classes, head.features))
    units, direction = machine.climb(classes, points, 1e-6)
    step = 1e-3 * direction / np.sqrt((direction**2).sum(axis=1, keepdims=True))
    assert (machine.units(classes, points + step) > units).mean() > 0.9
