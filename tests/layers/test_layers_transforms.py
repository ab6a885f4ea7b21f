"""The increasing functions: order kept, slopes and inverses right, formula and kernel the same."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from layer_references import naive_transform
from torch import Tensor

from argmaxable.core.errors import InputError
from argmaxable.layers import PLIF, Identity, MonotonicNetwork, SigSoftmax, SoftCap, Transform
from argmaxable.layers import pointwise as pointwise_module


def moved(transform: Transform) -> Transform:
    """With its parameters away from where they start, in float64."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in transform.parameters():
            parameter.add_(torch.randn_like(parameter))
    return transform.double()


TRANSFORMS = {
    "identity": moved(Identity()),
    "sigsoftmax": moved(SigSoftmax()),
    "network": moved(MonotonicNetwork(5)),
    "bounded network": moved(MonotonicNetwork(5, linear=False)),
    "one unit": moved(MonotonicNetwork(1)),
    "plif": moved(PLIF(40, 3.0)),
    "plif of one bin": moved(PLIF(1, 2.0)),
    "soft cap": SoftCap(cap=15.0).double(),
    "scale": SoftCap(scale=0.25).double(),
    "soft cap before a plif": SoftCap(moved(PLIF(40, 3.0)), cap=15.0, scale=2.0).double(),
}
ONTO = [name for name, transform in TRANSFORMS.items() if transform.is_onto]
LINE = torch.linspace(-9, 9, 4001, dtype=torch.float64)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_increases(name: str) -> None:
    assert (TRANSFORMS[name](LINE).diff() > 0).all()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_values_are_those_of_the_definition(name: str) -> None:
    transform = TRANSFORMS[name]
    torch.testing.assert_close(transform(LINE), naive_transform(transform, LINE), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_formula_and_kernel_agree_in_value_and_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointwise_module, "BLOCK_LOGITS", 500)  # so that several blocks add up
    transform = TRANSFORMS[name]
    weights = torch.sin(LINE)
    found = []
    for function in (transform.forward, lambda z: transform.formula(z, transform.tables())):
        z = LINE.clone().requires_grad_()
        values = function(z)
        inputs = [z, *transform.parameters()]
        found.append((values, *torch.autograd.grad((values * weights).sum(), inputs)))
    for kernel, formula in zip(*found, strict=True):
        torch.testing.assert_close(kernel, formula, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradcheck(name: str) -> None:
    transform = TRANSFORMS[name]
    z = torch.tensor([[-7.3, -2.11, 0.017], [1.3, 2.9, 11.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *_: transform(z), (z, *transform.parameters()))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_slopes_are_the_derivative(name: str) -> None:
    z = (LINE + 1e-3).requires_grad_()  # off the knots
    (derivative,) = torch.autograd.grad(TRANSFORMS[name](z).sum(), z)
    torch.testing.assert_close(TRANSFORMS[name].slopes(z), derivative, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ONTO)
def test_the_inverse_leads_back(name: str) -> None:
    transform = TRANSFORMS[name]
    with torch.no_grad():
        wide = torch.cat([LINE, torch.tensor([-1e4, -300.0, 300.0, 1e4], dtype=torch.float64)])
        torch.testing.assert_close(transform.inverse(transform(wide)), wide, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(transform(transform.inverse(wide)), wide, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_half_precision_is_computed_in_float32(name: str) -> None:
    transform = copy.deepcopy(TRANSFORMS[name]).float()
    z = torch.linspace(-5, 5, 101).bfloat16()
    assert torch.equal(transform(z), transform(z.float()))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_empty_tensor_stays_empty(name: str) -> None:
    assert TRANSFORMS[name](torch.zeros(0, 5, dtype=torch.float64)).shape == (0, 5)


# ---------------------------------------------------------------------- SigSoftmax and networks


@pytest.mark.parametrize("size", [1e4, -1e4, 3e38, -1e38])
def test_sigsoftmax_is_finite_at_extreme_logits(size: float) -> None:
    z = torch.tensor([size], requires_grad=True)
    value = SigSoftmax()(z)
    value.backward()
    assert value.isfinite()
    assert z.grad is not None
    assert z.grad.tolist() == [1.0 if size > 0 else 2.0]


def test_a_network_without_its_linear_term_is_bounded_and_has_no_inverse() -> None:
    network = MonotonicNetwork(4, linear=False)
    assert (network(torch.tensor([1e6])) - network(torch.tensor([-1e6]))).item() < 9
    with pytest.raises(InputError, match="bounded"):
        network.inverse(torch.zeros(1))


def test_a_network_of_no_units_is_refused() -> None:
    with pytest.raises(InputError, match="at least one unit, found 0"):
        MonotonicNetwork(0)


# ---------------------------------------------------------------------- PLIF


def test_plif_starts_as_the_identity_to_the_last_bit() -> None:
    torch.manual_seed(0)
    z = torch.cat([7 * torch.randn(5000), torch.tensor([-1e30, -20.0, 0.0, 20.0, 1e30])])
    for bins in (1, 7, 100_000):
        plif = PLIF(bins)
        assert torch.equal(plif(z), z)
        assert torch.equal(plif.formula(z, plif.tables()), z)


def test_plif_is_continuous_at_its_knots() -> None:
    plif = moved(PLIF(40, 3.0))
    assert isinstance(plif, PLIF)
    knots = plif.knots()
    step = 1e-9
    jumps = (plif(knots + step) - plif(knots - step)).abs()
    assert jumps.max().item() < 3 * step * plif.bin_slopes().max().item()


def test_in_float32_plif_decreases_nowhere_by_more_than_rounding() -> None:
    torch.manual_seed(0)
    plif = PLIF(1000, 5.0)
    torch.nn.init.normal_(plif.raw, std=2)
    z = torch.linspace(-7, 7, 200_001)
    values = plif(z)
    assert values.diff().min().item() > -4 * torch.finfo(torch.float32).eps * values.abs().max().item()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_gradients_past_the_bound_are_those_of_the_end_slope(side: float) -> None:
    plif = moved(PLIF(6, 2.0))
    assert isinstance(plif, PLIF)
    z = torch.tensor([side * 2.5, side * 50.0], dtype=torch.float64, requires_grad=True)
    values = plif(z)
    by_z, by_raw = torch.autograd.grad(values[1] - values[0], [z, plif.raw])
    end = 0 if side < 0 else 5
    slope = plif.bin_slopes()[end]
    torch.testing.assert_close(by_z, torch.stack([-slope, slope]))
    # Only the end bin's slope matters to the difference, by the distance of 47.5.
    by_slope = by_raw / torch.sigmoid(plif.raw * np.log(2))
    expected = torch.zeros(6, dtype=torch.float64)
    expected[end] = side * 47.5
    torch.testing.assert_close(by_slope, expected)


@pytest.mark.parametrize("function", [torch.sinh, torch.atan, lambda z: z + z.abs() / 2])
def test_plif_approximates_an_increasing_function_as_fast_as_theorem_7_says(function: object) -> None:
    bound, errors = 3.0, []
    z = torch.linspace(-bound, bound, 20_011, dtype=torch.float64)
    all_bins = (11, 21, 43, 87, 175)  # odd, so that no knot hides the kink at 0
    for bins in all_bins:
        plif = PLIF.from_function(function, bins=bins, bound=bound)  # type: ignore[arg-type]
        errors.append((plif.double()(z) - function(z)).abs().max().item())  # type: ignore[operator]
    largest_slope = 10.1  # sinh′(3)
    assert all(
        error <= 4 * largest_slope * bound / bins for error, bins in zip(errors, all_bins, strict=True)
    )
    exponent = np.polyfit(np.log(all_bins), np.log(errors), 1)[0]
    assert exponent < -0.95


def test_a_million_knots_agree_with_the_definition() -> None:
    torch.manual_seed(0)
    plif = PLIF(1_000_000)
    torch.nn.init.normal_(plif.raw, std=0.5)
    z = 4 * torch.randn(20_000)
    exact = naive_transform(copy.deepcopy(plif).double(), z.double())
    naive_error = (naive_transform(plif, z).double() - exact).abs().max()
    assert (plif(z).double() - exact).abs().max().item() <= naive_error.item()


def test_the_slopes_of_many_bins_get_the_gradient_of_the_definition() -> None:
    torch.manual_seed(0)
    plif = PLIF(100_000)
    torch.nn.init.normal_(plif.raw, std=0.5)
    z, weights = 4 * torch.randn(20_000), torch.randn(20_000)

    def by_raw(module: PLIF, values: Tensor) -> Tensor:
        return torch.autograd.grad((values * weights).sum(), module.raw)[0].double()

    double = copy.deepcopy(plif).double()
    exact = by_raw(double, naive_transform(double, z.double()))
    naive_error = (by_raw(plif, naive_transform(plif, z)) - exact).abs().max()
    assert (by_raw(plif, plif(z)) - exact).abs().max().item() <= naive_error.item()


def test_a_function_that_does_not_increase_is_refused() -> None:
    with pytest.raises(InputError, match="does not increase from knot 0 to knot 1"):
        PLIF.from_function(torch.square, bins=4, bound=1.0)


@pytest.mark.parametrize(
    ("bins", "bound", "message"),
    [
        (0, 1.0, "at least one bin, found 0"),
        (-5, 1.0, "at least one bin, found -5"),
        (10, -1.0, "finite number above 0, found -1.0"),
        (10, 0.0, "finite number above 0, found 0.0"),
        (10, float("inf"), "finite number above 0, found inf"),
        (10, float("nan"), "finite number above 0, found nan"),
    ],
)
def test_bad_sizes_of_a_plif_are_refused(bins: int, bound: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PLIF(bins, bound)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float64), (torch.float64, torch.float32)])
def test_logits_may_have_another_precision_than_the_parameters(
    name: str, dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    of_parameters, of_logits = dtypes
    transform = copy.deepcopy(TRANSFORMS[name]).to(of_parameters)
    values = transform(LINE.to(of_logits).requires_grad_())
    values.sum().backward()
    assert torch.allclose(values.double(), TRANSFORMS[name](LINE), rtol=1e-5, atol=1e-5)
