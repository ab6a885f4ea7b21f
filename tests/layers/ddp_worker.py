"""One of several processes that train a head together: python ddp_worker.py RANK WORLD FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from layer_references import NAMES, small_head
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from argmaxable.layers import SoftmaxHead


class Loss(nn.Module):
    def __init__(self, head: SoftmaxHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, h: Tensor, targets: Tensor) -> Tensor:
        return self.head.loss(h, targets)


def main(rank: int, world: int, folder: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world
    )
    h = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0))[rank]
    targets = torch.arange(12).view(2, 6)[rank]
    found = {}
    for name in NAMES:
        module = DistributedDataParallel(Loss(small_head(name, 5, 20)))
        module(h, targets).backward()
        found[name] = [parameter.grad for parameter in module.parameters()]
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.barrier()  # whoever leaves early may leave the other waiting for its last words
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
