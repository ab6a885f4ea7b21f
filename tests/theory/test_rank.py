"""Ranks of models: what theory says for their size, from features, logits and log-probabilities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from scipy.special import log_softmax, logsumexp
from tiny_models import CLASSES, FEATURES, Saved

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.layers import PLIF, SoftmaxHead, replace_head
from argmaxable.layers.language_model import LanguageModel, Text
from argmaxable.theory.rank import RankReport, measure_head, measure_rank, most_rank
from argmaxable.theory.spectrum import Rows, Spectrum, open_rows, rows_of


def ranks(report: RankReport) -> tuple[int, int, int]:
    return report.plain.rank, report.shifted.rank, report.centred.rank


def three_ways(saved: Saved, dtype: str) -> tuple[RankReport, RankReport, RankReport]:
    """By features, by logits and by log-probabilities."""
    model, inputs, logits = saved.run(dtype)
    head = model.head()
    assert head is not None
    by_features = measure_head(rows_of(inputs), head)
    return by_features, measure_rank(rows_of(logits)), measure_rank(rows_of(log_softmax(logits, axis=1)))


def with_bias(model: Any) -> Any:
    layer = torch.nn.Linear(FEATURES, CLASSES, bias=True)
    with torch.no_grad():
        layer.weight.copy_(model.lm_head.weight)
    model.lm_head = layer
    return model


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trained", [False, True], ids=["random", "trained"])
def test_log_p_of_a_llama_has_rank_d_plus_1_three_ways(trained: bool, dtype: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = tiny_models.llama()
    saved = tiny_models.save(tiny_models.train(model) if trained else model, tmp_path)
    by_features, by_logits, by_log_p = three_ways(saved, dtype)
    assert ranks(by_features) == ranks(by_log_p) == (FEATURES + 1, FEATURES, FEATURES)
    assert ranks(by_logits) == (FEATURES, FEATURES, FEATURES)


def test_a_layer_norm_without_shift_takes_a_feature_away(tmp_path: Path) -> None:
    torch.manual_seed(0)
    by_features, by_logits, by_log_p = three_ways(tiny_models.save(tiny_models.gpt2(), tmp_path), "float32")
    assert ranks(by_features) == ranks(by_log_p) == (FEATURES, FEATURES - 1, FEATURES - 1)
    assert ranks(by_logits) == (FEATURES - 1, FEATURES - 1, FEATURES - 1)


def test_the_shift_of_a_trained_layer_norm_gives_it_back_as_a_bias(tmp_path: Path) -> None:
    torch.manual_seed(0)
    saved = tiny_models.save(tiny_models.train(tiny_models.gpt2()), tmp_path)
    by_features, by_logits, by_log_p = three_ways(saved, "float32")
    assert ranks(by_features) == ranks(by_log_p) == (FEATURES + 1, FEATURES, FEATURES - 1)
    assert ranks(by_logits) == (FEATURES, FEATURES, FEATURES - 1)


def test_a_bias_lifts_the_rank_by_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = tiny_models.llama()
    inputs = {"input_ids": torch.randint(CLASSES, (20, 40))}
    with torch.no_grad():
        hidden = model.model(**inputs).last_hidden_state.reshape(-1, FEATURES)
        layer = with_bias(model).lm_head
        logits = layer(hidden).numpy()
    head = Head.from_module(layer)
    reports = measure_head(rows_of(hidden.numpy()), head), measure_rank(rows_of(log_softmax(logits, axis=1)))
    assert [ranks(report) for report in reports] == [(FEATURES + 2, FEATURES + 1, FEATURES)] * 2
    assert ranks(measure_rank(rows_of(logits))) == (FEATURES + 1, FEATURES + 1, FEATURES)


@pytest.mark.parametrize("kind", ["mos", "plif"])
def test_a_head_that_breaks_the_bottleneck_has_a_higher_rank(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = tiny_models.llama()
    transform = (
        PLIF.from_function(lambda z: z + torch.sinh(z / 4), bins=64, bound=20.0) if kind == "plif" else None
    )
    head = SoftmaxHead(FEATURES, CLASSES, 3 if kind == "mos" else 1, transform, bias=False)
    replace_head(model, head)
    saved = tiny_models.save(model, tmp_path)
    running, inputs, logits = saved.run()
    assert running.head() is None
    report = measure_rank(rows_of(log_softmax(logits, axis=1)))
    assert inputs.shape[1] == running.features == FEATURES
    assert report.exceeds(FEATURES, bias=False)
    assert report.plain.rank > 2 * FEATURES


# ---------------------------------------------------------------------- the measurement


def low_rank(
    contexts: int, classes: int, features: int, *, seed: int = 0, dtype: Any = np.float64
) -> np.ndarray:
    generator = np.random.default_rng(seed)
    logits = generator.standard_normal((contexts, features)) @ generator.standard_normal((features, classes))
    return logits.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_constant_added_to_a_row_changes_nothing_but_the_plain_rank(dtype: Any) -> None:
    logits = low_rank(200, 90, 7, dtype=dtype)
    shifted = (logits + np.random.default_rng(1).standard_normal((200, 1))).astype(dtype)
    before, after = measure_rank(rows_of(logits)), measure_rank(rows_of(shifted))
    assert ranks(before) == (7, 7, 7)
    assert ranks(after) == (8, 7, 7)
    noise = float(np.finfo(dtype).eps) * 100
    assert before.shifted.values[:7] == pytest.approx(after.shifted.values[:7], rel=noise)


def test_the_spectra_are_numpys() -> None:
    matrix = np.random.default_rng(0).standard_normal((3000, 40)) + 3
    report = measure_rank(rows_of(matrix))
    shifted = matrix - matrix.mean(axis=1, keepdims=True)
    centred = shifted - shifted.mean(axis=0)
    for found, expected in zip(
        (report.plain, report.shifted, report.centred), (matrix, shifted, centred), strict=True
    ):
        truth = np.linalg.svd(expected, compute_uv=False)
        assert found.values == pytest.approx(truth, rel=1e-9, abs=1e-9)
        assert found.energy == pytest.approx((expected**2).sum())


def test_the_rank_does_not_depend_on_how_the_rows_are_cut() -> None:
    logits = low_rank(500, 60, 9)
    for cut in (1, 7, 500):
        read = Rows(60, 2.0**-52, lambda cut=cut: (logits[at : at + cut] for at in range(0, 500, cut)))
        found = measure_rank(read)
        assert ranks(found) == (9, 9, 9)
        assert found.contexts == 500


def test_a_sketch_finds_the_spectrum_of_a_matrix_with_many_classes() -> None:
    logits = low_rank(300, 1500, 12, dtype=np.float32)
    log_p = log_softmax(logits, axis=1)
    report = measure_rank(rows_of(log_p), expected=13)
    assert report.is_sketch
    assert ranks(report) == (13, 12, 12)
    truth = np.linalg.svd(log_p.astype(np.float64), compute_uv=False)[:13]
    assert report.plain.values[:13] == pytest.approx(truth, rel=1e-6)


def test_a_sketch_that_is_too_small_is_made_anew() -> None:
    report = measure_rank(rows_of(low_rank(200, 600, 70)), expected=3)
    assert report.is_sketch
    assert ranks(report) == (70, 70, 70)


def test_features_and_outputs_have_the_same_spectrum() -> None:
    generator = np.random.default_rng(0)
    head = Head(generator.standard_normal((80, 6)), generator.standard_normal(80))
    inputs = generator.standard_normal((300, 6))
    logits = inputs @ head.weight.T + head.biases()
    log_p = logits - logsumexp(logits, axis=1, keepdims=True)
    for chosen, matrix in ((True, log_p), (False, logits)):
        inside, outside = (
            measure_head(rows_of(inputs), head, log_probabilities=chosen),
            measure_rank(rows_of(matrix)),
        )
        assert ranks(inside) == ranks(outside) == (8 if chosen else 7, 7, 6)
        assert inside.plain.values[:7] == pytest.approx(outside.plain.values[:7], rel=1e-9)
        assert inside.centred.values[:6] == pytest.approx(outside.centred.values[:6], rel=1e-9)


def test_too_few_contexts_are_reported() -> None:
    logits = low_rank(100, 50, 12)
    assert not measure_rank(rows_of(logits[:10])).has_enough_contexts
    assert measure_rank(rows_of(logits)).has_enough_contexts


def test_noise_of_full_rank_is_no_low_rank() -> None:
    report = measure_rank(rows_of(np.random.default_rng(0).standard_normal((400, 60)).astype(np.float32)))
    assert ranks(report) == (60, 59, 59)
    assert report.exceeds(57, bias=True)
    assert not report.exceeds(58, bias=True)


def test_a_threshold_is_relative_to_the_largest_singular_value() -> None:
    matrix = np.diag([1.0, 0.1, 0.01, 0.001])
    assert measure_rank(rows_of(matrix), threshold=0.05).plain.rank == 2
    assert measure_rank(rows_of(matrix), threshold=0.005).plain.rank == 3


def test_the_largest_rank_of_a_linear_softmax_is_d_plus_1_or_2() -> None:
    assert (most_rank(400, bias=False), most_rank(400, bias=True)) == (401, 402)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    logits = low_rank(20, 10, 3)
    logits[7, 2] = value
    with pytest.raises(InputError, match="row 7"):
        measure_rank(rows_of(logits))


@pytest.mark.parametrize("shape", [(5,), (0, 4), (2, 3, 4)])
def test_what_is_no_matrix_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="contexts × classes"):
        rows_of(np.zeros(shape))


def test_rows_of_a_file_are_mapped_and_not_read_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "logits.npy", low_rank(50, 20, 3))
    assert ranks(measure_rank(open_rows(str(tmp_path / "logits.npy")))) == (3, 3, 3)
    (tmp_path / "text.npy").write_text("no numbers")
    with pytest.raises(InputError, match=r"it is not an \.npy file of numbers"):
        open_rows(str(tmp_path / "text.npy"))


# ---------------------------------------------------------------------- saturation


def test_equal_singular_values_have_the_entropy_of_the_uniform_distribution() -> None:
    spectrum = Spectrum(np.full(8, 2.0), 0.1, 32.0)
    assert spectrum.entropy == pytest.approx(math.log(8))
    assert spectrum.effective_rank == pytest.approx(8)
    assert spectrum.directions_for(0.5) == 4
    assert spectrum.directions_for(1.0) == 8


def test_one_direction_that_holds_all_has_an_effective_rank_of_one() -> None:
    spectrum = Spectrum(np.array([5.0, 0.0, 0.0]), 1e-9, 25.0)
    assert (spectrum.entropy, spectrum.effective_rank, spectrum.rank) == (0.0, 1.0, 1)
    assert spectrum.shares.tolist() == [1, 0, 0]


def test_what_a_sketch_lost_counts_as_variance() -> None:
    spectrum = Spectrum(np.array([3.0, 1.0]), 0.1, 20.0)
    assert spectrum.directions_for(0.5) == 2
    assert spectrum.directions_for(0.9) is None


# ---------------------------------------------------------------------- running a model


def test_every_token_of_the_text_is_a_context(tmp_path: Path) -> None:
    torch.manual_seed(0)
    saved = tiny_models.save(tiny_models.llama(), tmp_path)
    model, inputs, logits = saved.run("float64")
    assert inputs.shape == (tiny_models.TOKENS, FEATURES)
    head = model.head()
    assert head is not None
    assert logits == pytest.approx(inputs @ head.weight.T, abs=1e-9)
    fewer = list(model.steps(Text(saved.text), tokens=70))
    assert sum(len(step.features) for step in fewer) == 70


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a directory"):
        LanguageModel(tmp_path / "nowhere")
    with pytest.raises(InputError, match="can't load"):
        LanguageModel(tmp_path)
