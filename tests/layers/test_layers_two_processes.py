"""Two processes (gloo) against one: DDP, FSDP2 and a vocabulary whose rows they share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from layer_references import NAMES, small_head
from torch import Tensor
from two_processes import CLASSES, FEATURES, batch, main, model_of

from argmaxable.core.errors import InputError
from argmaxable.layers import VocabularyShard

EACH_HEAD = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What each process found. This one is the first of the two."""
    folder = tmp_path_factory.mktemp("processes")
    worker = Path(__file__).with_name("two_processes.py")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOO_SOCKET_IFNAME", "lo")
        patch.setattr(sys, "excepthook", sys.excepthook)  # PyTorch puts its own there for good
        other = subprocess.Popen([sys.executable, worker, "1", "2", str(folder)], env=environment)
        try:
            main(0, 2, folder)
            assert other.wait() == 0
        finally:
            other.kill()
            other.wait()
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def one_process(name: str) -> tuple[Tensor, dict[str, Tensor]]:
    model = model_of(name)
    loss = model(*batch())
    loss.backward()
    return loss.detach(), {key: each.grad for key, each in model.named_parameters() if each.grad is not None}


@EACH_HEAD
@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_two_halves_of_a_batch_make_its_loss_and_gradients(name: str, how: str, found: list[Any]) -> None:
    loss, gradients = one_process(name)
    halves = [each[name][how] for each in found]
    torch.testing.assert_close((halves[0]["loss"] + halves[1]["loss"]) / 2, loss)
    for one, other, expected in zip(
        halves[0]["gradients"], halves[1]["gradients"], gradients.values(), strict=True
    ):
        assert torch.equal(one, other)  # both processes hold the same average
        torch.testing.assert_close(one, expected)


@EACH_HEAD
def test_two_shares_of_the_vocabulary_make_the_whole_loss_and_gradients(name: str, found: list[Any]) -> None:
    loss, gradients = one_process(name)
    shares = [each[name]["shards"] for each in found]
    weights = torch.linspace(0.5, 1.5, CLASSES)
    h, targets = batch()
    expected = model_of(name).head.loss(h, targets, reduction="none", class_weights=weights)
    for share in shares:
        torch.testing.assert_close(share["loss"], loss)
        torch.testing.assert_close(share["losses"], expected)
    for key, whole in gradients.items():
        parts = [share["gradients"][key] for share in shares]
        if key in ("head.weight", "head.bias"):
            torch.testing.assert_close(torch.cat(parts), whole)
        else:
            for part in parts:
                torch.testing.assert_close(part, whole)


def test_a_shard_needs_a_process_group() -> None:
    with pytest.raises(InputError, match="call init_process_group first"):
        VocabularyShard.of_rows(3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shard": VocabularyShard(0, 3, 6, 3)}, "the shard has 3 rows, the head 21"),
        ({"label_smoothing": 0.1}, "without label smoothing"),
        ({"targets": torch.full((4, 30), 1 / 30)}, "targets must be classes"),
        ({"targets": torch.full((4,), 30)}, "target 30 is not a class: the head has classes 0 to 29"),
    ],
)
def test_what_a_shard_can_not_do_is_refused(changed: dict[str, Any], message: str) -> None:
    head = small_head("linear", FEATURES, CLASSES)
    shard = VocabularyShard(0, CLASSES, 30, CLASSES)
    call = {"h": torch.zeros(4, FEATURES), "targets": torch.arange(4), "shard": shard, **changed}
    with pytest.raises(InputError, match=message):
        head.loss(**call)
