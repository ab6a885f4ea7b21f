"""One of several processes that compute a loss together: python two_processes.py RANK WORLD FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from layer_references import NAMES, small_head
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.nn.parallel import DistributedDataParallel

from argmaxable.layers import SoftmaxHead, VocabularyShard

FEATURES, CLASSES, TOKENS = 5, 21, 12  # an odd number of classes: the shards differ in size


class Loss(nn.Module):
    """A model with something in front of its head."""

    def __init__(self, head: SoftmaxHead) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, FEATURES)
        self.head = head

    def forward(self, h: Tensor, targets: Tensor) -> Tensor:
        return self.head.loss(self.body(h), targets)


def model_of(name: str) -> Loss:
    model = Loss(small_head(name, FEATURES, CLASSES))
    nn.init.eye_(model.body.weight)
    nn.init.zeros_(model.body.bias)
    return model


def batch() -> tuple[Tensor, Tensor]:
    """Of all processes together; the same number of tokens is ignored in each half."""
    h = torch.randn(TOKENS, FEATURES, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(TOKENS) + 4
    targets[[2, 8]] = -100
    return h, targets


def with_ddp(name: str, h: Tensor, targets: Tensor) -> dict[str, Any]:
    model = DistributedDataParallel(model_of(name))
    loss = model(h, targets)
    loss.backward()
    return {"loss": loss.detach(), "gradients": [each.grad for each in model.parameters()]}


def with_fsdp(name: str, h: Tensor, targets: Tensor) -> dict[str, Any]:
    """The head is a group of its own, whose weights are gathered when `loss` is called."""
    model: Any = model_of(name)
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    fully_shard(model.head, mesh=mesh)
    register_fsdp_forward_method(model.head, "loss")
    fully_shard(model, mesh=mesh)
    loss = model(h, targets)
    loss.backward()
    return {"loss": loss.detach(), "gradients": [each.grad.full_tensor() for each in model.parameters()]}


def with_shards(name: str, rank: int, h: Tensor, targets: Tensor) -> dict[str, Any]:
    """Each process has all features and some of the rows."""
    model = model_of(name)
    head = model.head
    mine = slice(0, 11) if rank == 0 else slice(11, CLASSES)
    head.weight = nn.Parameter(head.weight.detach()[mine].clone())
    assert head.bias is not None
    head.bias = nn.Parameter(head.bias.detach()[mine].clone())
    shard = VocabularyShard.of_rows(head.classes)
    weights = torch.linspace(0.5, 1.5, CLASSES)
    losses = head.loss(model.body(h), targets, reduction="none", class_weights=weights, shard=shard).detach()
    loss = head.loss(model.body(h), targets, shard=shard)
    loss.backward()
    return {
        "loss": loss.detach(),
        "losses": losses,
        "gradients": {parameter: each.grad for parameter, each in model.named_parameters()},
    }


def main(rank: int, world: int, folder: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world
    )
    torch.set_num_threads(1)
    h, targets = batch()
    half = slice(rank * TOKENS // world, (rank + 1) * TOKENS // world)
    found = {
        name: {
            "ddp": with_ddp(name, h[half], targets[half]),
            "fsdp": with_fsdp(name, h[half], targets[half]),
            "shards": with_shards(name, rank, h, targets),
        }
        for name in NAMES
    }
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.barrier()  # whoever leaves early may leave the other waiting for its last words
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
