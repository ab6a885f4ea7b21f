"""What a cell computes with: a device, and a place where training leaves a checkpoint.

The harness says so around a cell; whoever trains asks `means()`. Without a harness (in tests, in a notebook)
there are no checkpoints, and the device is a GPU if there is one. A checkpoint holds all that training needs,
random numbers too, so that an interrupted cell ends with the numbers of one that was not.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

AUTO = "auto"


@dataclass(frozen=True)
class Means:
    """`checkpoints` is the beginning of their files' names; one is written every so many seconds, and `saved`
    is called then. `reached` is told how many epochs (or visits) are done, of at most how many."""

    device: str = AUTO
    checkpoints: Path | None = None
    every: float = 60.0
    steps: int | None = None  # after which every training ends: a trial of a machine
    saved: Callable[[], None] = lambda: None
    reached: Callable[[int, int], None] = lambda done, of: None

    def torch_device(self) -> torch.device:
        import torch

        if self.device != AUTO:
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def checkpoint(self, *what: object) -> Checkpoint:
        """That of one training, which `what` tells from others of the same cell."""
        if self.checkpoints is None:
            return Checkpoint(None, self)
        digest = hashlib.sha256(repr(what).encode()).hexdigest()[:12]
        return Checkpoint(self.checkpoints.with_name(f"{self.checkpoints.name}.{digest}.pt"), self)

    def forget(self) -> None:
        """Remove the checkpoints of a cell that is finished."""
        if self.checkpoints is not None:
            for path in self.checkpoints.parent.glob(f"{self.checkpoints.name}.*.pt"):
                path.unlink()


_MEANS: ContextVar[Means | None] = ContextVar("means", default=None)


def means() -> Means:
    """What the cell that is being measured computes with."""
    return _MEANS.get() or Means()


@contextmanager
def using(chosen: Means) -> Iterator[None]:
    token = _MEANS.set(chosen)
    try:
        yield
    finally:
        _MEANS.reset(token)


@dataclass
class Checkpoint:
    """The state of one training on disk."""

    path: Path | None
    means: Means
    at: float = field(default_factory=time.monotonic)

    def load(self, device: torch.device) -> Mapping[str, Any] | None:
        """The state that an interrupted process left, with its random numbers taken up; None at the start."""
        import torch

        if self.path is None or not self.path.exists():
            return None
        # Written by this program into its own cache; the state holds NumPy's generator too.
        state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=False)
        torch.set_rng_state(state.pop("random").cpu())
        if device.type == "cuda":
            torch.cuda.set_rng_state(state.pop("random_cuda").cpu(), device)
        return state

    def save(self, state: Mapping[str, Any], device: torch.device, *, is_last: bool = False) -> None:
        """Write the state, if there is a place for it and the last one is old enough."""
        import torch

        if self.path is None or (time.monotonic() - self.at < self.means.every and not is_last):
            return
        random = {"random": torch.get_rng_state()}
        if device.type == "cuda":
            random["random_cuda"] = torch.cuda.get_rng_state(device)
        unfinished = self.path.with_suffix(".part")
        torch.save({**state, **random}, unfinished)
        unfinished.rename(self.path)
        self.means.saved()
        self.at = time.monotonic()
