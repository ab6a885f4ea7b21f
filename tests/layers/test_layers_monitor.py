"""The training monitor: proven counts from old witnesses, effective rank, and the lost share of the
gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from layer_references import NAMES, small_head
from torch import Tensor, nn

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.layers import (
    HeadMonitor,
    Health,
    SoftmaxHead,
    effective_rank,
    gradient_lost,
    replace_head,
    trainer_callback,
)
from argmaxable.layers.monitor import Census

FEATURES, CLASSES = 4, 60
BOX = am.Box(-10, 10)


def some_head(seed: int = 0) -> am.Head:
    generator = np.random.default_rng(seed)
    return am.Head(generator.normal(size=(CLASSES, FEATURES)), generator.normal(size=CLASSES))


# ---------------------------------------------------------------------- counting


def test_counts_are_those_of_verify_at_every_step_of_a_walk() -> None:
    census, generator = Census(BOX), np.random.default_rng(0)
    head = some_head()
    for _ in range(4):
        result = am.verify(head, BOX, engine=am.Engine(workers=1))
        assert census.count(head) == (len(result.unargmaxable), len(result.undecided))
        head = am.Head(head.weight + 0.01 * generator.normal(size=head.weight.shape), head.bias)


def test_old_witnesses_settle_most_classes_of_a_head_that_moved_a_little() -> None:
    census, head = Census(BOX), some_head()
    unargmaxable, _ = census.count(head)
    assert census.reused == 0
    moved = am.Head(head.weight * (1 + 1e-4), head.bias)
    census.count(moved)
    assert census.reused >= 0.9 * (CLASSES - unargmaxable)


def test_a_head_of_another_size_starts_afresh() -> None:
    census = Census(BOX)
    census.count(some_head())
    smaller = am.Head(some_head().weight[:20])
    assert census.count(smaller)[0] == len(am.verify(smaller, BOX, engine=am.Engine(workers=1)).unargmaxable)


# ---------------------------------------------------------------------- rank and gradient


def test_effective_rank_counts_equal_directions_and_ignores_a_common_row() -> None:
    rows = torch.cat([torch.eye(5), -torch.eye(5)])
    assert effective_rank(rows) == pytest.approx(5)
    assert effective_rank(rows + torch.arange(5.0)) == pytest.approx(5)
    assert effective_rank(torch.outer(torch.arange(9.0), torch.ones(3))) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("features", [3, 7])
def test_the_lost_share_is_what_least_squares_leaves(features: int) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(features, 12)
    gradient = torch.randn(20, 12)
    rows = layer.weight.detach().double()
    kept = rows @ torch.linalg.lstsq(rows, gradient.T.double()).solution
    expected = 1 - float(kept.norm() / gradient.double().norm())
    found = gradient_lost(layer, torch.zeros(20, features), gradient)
    assert found == pytest.approx(expected, abs=1e-12)
    # A random gradient keeps √(features / classes) of its norm on average.
    assert found == pytest.approx(1 - (features / 12) ** 0.5, abs=0.1)


def test_nothing_is_lost_with_as_many_features_as_classes() -> None:
    torch.manual_seed(0)
    assert gradient_lost(nn.Linear(9, 9), torch.zeros(5, 9), torch.randn(5, 9)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_loss_and_logits_lead_to_the_same_lost_share(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, targets = torch.randn(30, FEATURES, dtype=torch.float64), torch.randint(CLASSES, (30,))
    found = []
    for loss in (lambda: head.loss(h, targets), lambda: F.cross_entropy(head(h), targets)):
        monitor = HeadMonitor(head, every=1, domain=BOX)
        loss().backward()
        found.append(monitor(1).gradient_lost)  # type: ignore[union-attr]
        monitor.close()
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert 0 < found[0] < 1  # type: ignore[operator]


# ---------------------------------------------------------------------- the monitor


def test_it_measures_every_so_many_steps_and_logs() -> None:
    torch.manual_seed(0)
    head = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    rows: list[Health] = []
    monitor = HeadMonitor(head, every=3, domain=BOX, log=rows.append)
    for step in range(1, 8):
        optimizer.zero_grad()
        F.cross_entropy(head(torch.randn(16, FEATURES)), torch.randint(CLASSES, (16,))).backward()
        optimizer.step()
        monitor(step)
    assert [row.step for row in rows] == [3, 6]
    expected = am.verify(am.Head.from_module(head), BOX, engine=am.Engine(workers=1))
    assert monitor.measure().unargmaxable == len(expected.unargmaxable)
    assert all(row.gradient_lost is not None and 0 < row.gradient_lost < 1 for row in rows)
    assert all(row.effective_rank <= FEATURES for row in rows)


def test_mixtures_have_no_linear_counts() -> None:
    health = HeadMonitor(small_head("mos", FEATURES, CLASSES)).measure()
    assert (health.unargmaxable, health.undecided) == (None, None)
    assert set(health.as_record()) == {"head_effective_rank"}


def test_the_time_limit_leaves_classes_undecided_and_says_so() -> None:
    head = SoftmaxHead(24, 4000)
    with torch.no_grad():
        head.weight[2000:] = 0.5 * head.weight[:2000]
    health = HeadMonitor(head, time_limit=1e-3).measure()
    assert health.undecided


def test_a_closed_monitor_watches_no_longer() -> None:
    head = small_head("linear", FEATURES, CLASSES)
    monitor = HeadMonitor(head, every=1, domain=BOX)
    monitor.close()
    head.loss(torch.randn(3, FEATURES), torch.arange(3)).backward()
    assert monitor.measure().gradient_lost is None
    assert not head.loss_hooks


def test_every_must_be_at_least_one() -> None:
    with pytest.raises(InputError, match="at least 1; found 0"):
        HeadMonitor(nn.Linear(2, 3), every=0)


# ---------------------------------------------------------------------- the Trainer of Hugging Face


class Copies(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Sequences that repeat one token."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = torch.full((6,), 3 + index % 20)
        return {"input_ids": ids, "labels": ids}


@pytest.mark.parametrize("replaced", [False, True], ids=["its own head", "a replaced head"])
def test_a_trainer_logs_what_the_monitor_finds(replaced: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=30, n_embd=8, n_layer=1, n_head=2, n_positions=16, bos_token_id=1, eos_token_id=2
    )
    model: Any = transformers.GPT2LMHeadModel(config)
    if replaced:
        replace_head(model, small_head("lms-plif", 8, 30, bias=False))
    monitor = HeadMonitor(model.get_output_embeddings(), every=2, domain=BOX)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=6,
        max_steps=4,
        logging_steps=100,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=Copies(), callbacks=[trainer_callback(monitor)]
    )
    trainer.train()
    rows = [row for row in trainer.state.log_history if "head_effective_rank" in row]
    assert [row["step"] for row in rows] == [2, 4]
    expected = am.verify(am.Head.from_module(model.get_output_embeddings()), BOX, engine=am.Engine(workers=1))
    assert rows[-1]["head_unargmaxable"] == len(expected.unargmaxable)
    assert all(0 < row["head_gradient_lost"] < 1 for row in rows)


def test_a_module_without_a_matrix_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="ReLU has no matrix of weights"):
        HeadMonitor(nn.ReLU())
