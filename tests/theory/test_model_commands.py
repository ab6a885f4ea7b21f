"""argmaxable rank and argmaxable activations: answers, exit codes and machine output."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from running import Command, is_one_clear_line
from tiny_models import CLASSES, FEATURES, TOKENS, Saved

import argmaxable as am
from argmaxable.layers import SoftmaxHead, language_model, replace_head


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    torch.manual_seed(0)
    return tiny_models.save(tiny_models.llama(), tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def logits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 contexts × 50 classes of a head with 6 features and a bias."""
    generator = np.random.default_rng(0)
    product = generator.standard_normal((300, 6)) @ generator.standard_normal((6, 50))
    path = tmp_path_factory.mktemp("logits") / "logits.npy"
    np.save(path, (product + generator.standard_normal(50)).astype(np.float32))
    return path


# ---------------------------------------------------------------------- rank


def test_the_rank_of_a_model_is_within_what_its_head_allows(command: Command, llama: Saved) -> None:
    ran = command("rank", llama.directory, "--text", llama.text, "--json")
    assert ran.code == 0
    record = ran.record
    assert (record["contexts"], record["classes"]) == (TOKENS, CLASSES)
    assert (record["features"], record["bias"]) == (FEATURES, False)
    assert record["rank"] == record["most_rank"] == record["rank_from_features"] == FEATURES + 1
    assert record["features_by_output"] == FEATURES
    assert record["centred"]["singular_values"][0] > 0


def test_the_same_as_text(command: Command, llama: Saved) -> None:
    ran = command("rank", llama.directory, "--text", llama.text, "--tokens", "200", "--dtype", "float64")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"model: 200 contexts × {CLASSES} classes"
    assert f"at most {FEATURES + 1}, with {FEATURES} features without bias: within it" in ran.out
    assert "an effective rank of" in ran.out


def test_a_mixture_of_softmaxes_is_above_it(command: Command, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = tiny_models.llama()
    replace_head(model, SoftmaxHead(FEATURES, CLASSES, 3, bias=False))
    saved = tiny_models.save(model, tmp_path)
    ran = command("rank", saved.directory, "--text", saved.text)
    assert ran.code == 1
    assert ": above it" in ran.out
    assert "from the features" not in ran.out


def test_too_few_contexts_exit_with_3(command: Command, llama: Saved) -> None:
    ran = command("rank", llama.directory, "--text", llama.text, "--tokens", "8")
    assert ran.code == 3
    assert "The number of contexts limits this rank: pass more text." in ran.out


def test_logits_alone_tell_the_number_of_features(command: Command, logits: Path) -> None:
    ran = command("rank", "--logits", logits, "--json")
    assert ran.code == 0
    assert (ran.record["rank"], ran.record["features_by_output"], ran.record["most_rank"]) == (7, 6, None)


@pytest.mark.parametrize(("options", "code"), [(["--features", "6", "--bias"], 0), (["--features", "5"], 1)])
def test_logits_are_tested_against_a_size(
    command: Command, logits: Path, options: list[str], code: int
) -> None:
    assert command("rank", "--logits", logits, *options).code == code


def test_a_threshold_of_the_users_counts(command: Command, logits: Path) -> None:
    assert command("rank", "--logits", logits, "--threshold", "0.99", "--json").record["rank"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["model"],
        ["model", "--logits", "x.npy"],
        ["--logits", "missing.npy"],
        ["missing", "--text", "missing.txt"],
        ["missing", "--text", "missing.txt", "--features", "3"],
        ["--logits", "x.npy", "--threshold", "2"],
    ],
    ids=str,
)
def test_bad_input_of_rank_is_one_clear_line(command: Command, arguments: list[str]) -> None:
    ran = command("rank", *arguments)
    assert ran.code == 2
    assert is_one_clear_line(ran)


# ---------------------------------------------------------------------- activations


def test_the_measured_box_holds_every_input_and_verify_takes_it(
    command: Command, llama: Saved, tmp_path: Path
) -> None:
    path = tmp_path / "domain.json"
    ran = command("activations", llama.directory, "--text", llama.text, "--output", path, "--json")
    assert ran.code == 0
    box = am.parse_domain(f"file:{path}")
    assert isinstance(box, am.Box)
    _, inputs, _ = llama.run()
    assert box.lo.tolist() == inputs.min(axis=0).tolist()
    assert box.hi.tolist() == inputs.max(axis=0).tolist()
    assert ran.record["tokens"] == TOKENS
    assert ran.record["overall"] == [inputs.min(), inputs.max()]
    assert len(ran.record["features"]) == FEATURES
    verified = command("verify", llama.directory, "--domain", f"file:{path}", "--json")
    assert verified.code in (0, 1)
    assert verified.record["domain"] == str(box)


def test_one_range_for_all_features_can_be_asked_for(command: Command, llama: Saved, tmp_path: Path) -> None:
    path = tmp_path / "domain.json"
    ran = command(
        "activations",
        llama.directory,
        "--text",
        llama.text,
        "--tokens",
        "100",
        "--output",
        path,
        "--box",
        "overall",
    )
    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"model: 100 tokens, {FEATURES} features"
    box = am.parse_domain(f"file:{path}")
    assert isinstance(box, am.Box)
    assert box.lo.ndim == box.hi.ndim == 0


def test_a_model_that_translates_runs_over_given_translations(command: Command, tmp_path: Path) -> None:
    torch.manual_seed(0)
    saved = tiny_models.save(tiny_models.marian(), tmp_path)
    target = tmp_path / "target.txt"
    target.write_text(tiny_models.random_text(TOKENS, seed=5), encoding="utf-8")
    ran = command("activations", saved.directory, "--text", saved.text, "--target", target, "--json")
    assert ran.code == 0
    assert ran.record["tokens"] == TOKENS
    ran = command("activations", saved.directory, "--text", saved.text)
    assert (ran.code, "--target" in ran.err) == (2, True)
    target.write_text("w3\n", encoding="utf-8")
    ran = command("activations", saved.directory, "--text", saved.text, "--target", target)
    assert (ran.code, "each needs its translation" in ran.err) == (2, True)


def test_a_text_that_is_missing_or_empty_is_bad_input(command: Command, llama: Saved, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    for text in ("missing.txt", "empty.txt"):
        ran = command("activations", llama.directory, "--text", tmp_path / text)
        assert ran.code == 2
        assert is_one_clear_line(ran)


# ---------------------------------------------------------------------- odd input


@pytest.mark.parametrize(
    ("matrix", "said", "code"),
    [
        (np.zeros((5, 4)), "rank               0  (all singular values are 0)", 0),
        (np.ones((1, 4)), "Nothing varies from context to context.", 3),
    ],
)
def test_a_matrix_without_variation_has_a_plain_answer(
    command: Command, tmp_path: Path, matrix: np.ndarray, said: str, code: int
) -> None:
    np.save(tmp_path / "odd.npy", matrix)
    ran = command("rank", "--logits", tmp_path / "odd.npy")
    assert ran.code == code
    assert said in ran.out.splitlines()


def test_numbers_whose_squares_overflow_are_refused(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "huge.npy", np.full((5, 4), 1e200))
    ran = command("rank", "--logits", tmp_path / "huge.npy")
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_bias_is_said_of_features_only(command: Command, logits: Path) -> None:
    ran = command("rank", "--logits", logits, "--bias")
    assert ran.code == 2
    assert is_one_clear_line(ran)


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_that_is_not_there_is_bad_input(command: Command, llama: Saved, device: str) -> None:
    ran = command("activations", llama.directory, "--text", llama.text, "--device", device)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_cut_off_model_file_is_bad_input(command: Command, llama: Saved, tmp_path: Path) -> None:
    broken = shutil.copytree(llama.directory, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    ran = command("activations", broken, "--text", llama.text)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_text_in_one_line_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "_PIECE", 10)
    text = tmp_path / "text.txt"
    text.write_text("a line\nwords without an end in one line andonewordlongerthanapiece\nlast")
    pieces = list(language_model._pieces(text))
    assert "".join(pieces) == text.read_text()
    assert max(map(len, pieces)) <= 20
    assert pieces[0] == "a line\n"
