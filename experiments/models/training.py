"""Training a language model as AWD-LSTM is trained (Merity, Keskar & Socher 2018): plain SGD on stretches of
text of varying length, then the average of its iterates once validation no longer improves.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from argmaxable.layers import PLIF
from experiments.harness.corpus import Corpus
from experiments.harness.means import Checkpoint, means
from experiments.models.awd_lstm import AWDLSTM, Read, Shape, State, detached

# Lengths of stretches vary around `Schedule.stretch` with this deviation; one in twenty is half as long.
_LENGTH_DEVIATION, _HALF = 5.0, 0.05
_SHORTEST = 5
_EVALUATED_AT_ONCE = 10  # streams side by side; the published code reads validation text so


@dataclass(frozen=True)
class Schedule:
    """How a model is trained; the rates are the published ones for Penn Treebank."""

    seed: int = 0
    epochs: int = 500
    batch: int = 20
    stretch: int = 70  # tokens through which gradients flow back, about
    rate: float = 30.0
    slope_rate: float = 30.0  # of a PLIF's slopes
    clip: float = 0.25
    decay: float = 1.2e-6
    activation: float = 2.0  # α of AR, on the head's inputs
    change: float = 1.0  # β of TAR, on how much they change from one token to the next
    patience: int = 5  # n of the non-monotone trigger
    average_after: int | None = None  # epochs after which averages begin even if the trigger was silent
    stop_after: int | None = None  # epochs of averages without a better validation, after which training ends


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training text cost and brought."""

    seconds: float  # of the processor, or by the clock on a GPU; without evaluation
    training: float  # perplexity with dropout, before averaging
    validation: float
    is_averaged: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """A model with the weights of its best epoch (by validation), on the device it was trained on."""

    model: AWDLSTM
    epochs: tuple[Epoch, ...]
    validation: float  # perplexities
    test: float


def train(shape: Shape, schedule: Schedule, text: Corpus) -> Trained:
    """Train a model on the text; the same arguments give the same numbers on the same machine.

    Raises FloatingPointError when the loss is no longer finite.
    """
    # Dropout draws from PyTorch's global generator: it is borrowed, and given back as it was.
    with torch.random.fork_rng():
        checkpoint = means().checkpoint(shape, schedule, hashlib.sha256(text.train.tobytes()).hexdigest())
        return _prepare(shape, schedule, text).run(checkpoint)


def step_bytes(shape: Shape, schedule: Schedule, text: Corpus) -> int:
    """The most that PyTorch allocates at a time in one step of that training, parameters not counted."""
    with torch.random.fork_rng():
        training = _prepare(shape, schedule, text)
        end = min(schedule.stretch, len(training.streams) - 1)
        return _peak_bytes(lambda: training.learn_from(0, end, None), training.streams.device)


def _prepare(shape: Shape, schedule: Schedule, text: Corpus) -> _Training:
    torch.manual_seed(schedule.seed)
    model = AWDLSTM(shape).to(means().torch_device())
    # Heads draw different amounts as they are built: this way models of the same sizes drop the same.
    torch.manual_seed(schedule.seed)
    return _Training(model, schedule, text)


@torch.no_grad()
def perplexity(model: AWDLSTM, tokens: NDArray[np.int64], *, stretch: int = 70) -> float:
    """e to the mean loss of a token, each read with all that stands before it in its stream."""
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    for read, targets in _read_through(model, tokens, stretch):
        total += float(model.head.loss(read.hidden, targets, reduction="sum"))
        count += targets.numel()
    model.train(was_training)
    return math.exp(total / count)


@torch.no_grad()
def contexts(model: AWDLSTM, tokens: NDArray[np.int64], *, limit: int, stretch: int = 70) -> Tensor:
    """What the head sees (at most `limit` × features) as the model reads a text, without dropout."""
    was_training = model.training
    model.eval()
    parts, found = [], 0
    for read, _ in _read_through(model, tokens, stretch):
        parts.append(read.hidden.flatten(0, 1))
        found += len(parts[-1])
        if found >= limit:
            break
    model.train(was_training)
    return torch.cat(parts)[:limit]


def _read_through(model: AWDLSTM, tokens: NDArray[np.int64], stretch: int) -> Iterator[tuple[Read, Tensor]]:
    streams = _streams(tokens, _EVALUATED_AT_ONCE).to(model.embedding.weight.device)
    states: tuple[State, ...] | None = None
    for start in range(0, len(streams) - 1, stretch):
        end = min(start + stretch, len(streams) - 1)
        read = model(streams[start:end], states)
        states = read.states
        yield read, streams[start + 1 : end + 1]


def _streams(tokens: NDArray[np.int64], count: int) -> Tensor:
    """The text cut into `count` equal streams side by side (length × count); the few tokens left over go."""
    length = len(tokens) // count
    if length < 2:
        raise ValueError(f"A text of {len(tokens)} tokens is too short to be read in {count} streams.")
    return torch.tensor(tokens[: length * count]).view(count, length).T.contiguous()


class _Average:
    """The mean of a model's parameters since this was made."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        self.means = [each.detach().clone() for each in self.parameters]
        self.count = 0

    @torch.no_grad()
    def add(self) -> None:
        self.count += 1
        for mean, parameter in zip(self.means, self.parameters, strict=True):
            mean.lerp_(parameter, 1 / self.count)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The model has the averages as its parameters, and afterwards its own again."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for number, parameter in enumerate(self.parameters):
            parameter.data, self.means[number] = self.means[number], parameter.data


class _Training:
    """A model while it learns."""

    def __init__(self, model: AWDLSTM, schedule: Schedule, text: Corpus) -> None:
        self.model, self.schedule, self.text = model, schedule, text
        self.streams = _streams(text.train, schedule.batch).to(model.embedding.weight.device)
        self.lengths = np.random.default_rng(schedule.seed)
        self.optimiser = _optimiser(model, schedule)
        self.average: _Average | None = None
        self.epochs: list[Epoch] = []
        self.best: dict[str, Tensor] = {}
        # On one thread a processor's time is what a clock would show if nothing else ran.
        self.clock = time.perf_counter if self.streams.is_cuda else time.process_time

    def run(self, checkpoint: Checkpoint) -> Trained:
        self._resume(checkpoint)
        while not self._is_over():
            self._add_epoch()
            means().reached(len(self.epochs), self.schedule.epochs)
            checkpoint.save(self._state(), self.streams.device, is_last=self._is_over())
        self.model.load_state_dict(self.best)
        self.model.eval()
        validation = min(each.validation for each in self.epochs)
        return Trained(self.model, tuple(self.epochs), validation, perplexity(self.model, self.text.test))

    def _is_over(self) -> bool:
        if len(self.epochs) >= self.schedule.epochs or (self.epochs and means().steps):
            return True
        averaged = [each.validation for each in self.epochs if each.is_averaged]
        patience = self.schedule.stop_after
        return patience is not None and len(averaged) - _place_of_least(averaged) >= patience

    def _add_epoch(self) -> None:
        started = self.clock()
        training = self._pass()
        seconds = self.clock() - started
        with self._for_evaluation():
            validation = perplexity(self.model, self.text.valid)
            if validation < min((each.validation for each in self.epochs), default=math.inf):
                self.best = {name: each.clone() for name, each in self.model.state_dict().items()}
        self.epochs.append(Epoch(seconds, training, validation, self.average is not None))
        if self.average is None and _stalls(self.epochs, self.schedule):
            self.average = _Average(self.model)

    def _state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "average": None if self.average is None else (self.average.means, self.average.count),
            "best": self.best,
            "epochs": [astuple(each) for each in self.epochs],
            "lengths": self.lengths.bit_generator.state,
        }

    def _resume(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.load(self.streams.device)
        if state is None:
            return
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if state["average"] is not None:
            self.average = _Average(self.model)
            self.average.means, self.average.count = state["average"]
        self.best = state["best"]
        self.epochs = [Epoch(*each) for each in state["epochs"]]
        self.lengths.bit_generator.state = state["lengths"]

    @contextmanager
    def _for_evaluation(self) -> Iterator[None]:
        if self.average is None:
            yield
        else:
            with self.average.in_use():
                yield

    def _pass(self) -> float:
        """One epoch; returns the perplexity on the way."""
        self.model.train()
        states: tuple[State, ...] | None = None
        total, end = 0.0, 0
        stretches = _stretches(len(self.streams) - 1, self.schedule.stretch, self.lengths)
        for start, end in islice(stretches, means().steps):
            loss, states = self._step(start, end, states)
            total += loss * (end - start)
        mean = total / end
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"The loss became {mean} with seed {self.schedule.seed}: lower the rate "
                f"({self.schedule.rate:g}) or the clipping norm ({self.schedule.clip:g})."
            )
        return math.exp(mean)

    def _step(
        self, start: int, end: int, states: tuple[State, ...] | None
    ) -> tuple[float, tuple[State, ...]]:
        # The longer a stretch, the more its gradient says.
        for group in self.optimiser.param_groups:
            group["lr"] = group["full_rate"] * (end - start) / self.schedule.stretch
        loss, read = self.learn_from(start, end, states)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
        self.optimiser.step()
        if self.average is not None:
            self.average.add()
        return loss, detached(read.states)

    def learn_from(self, start: int, end: int, states: tuple[State, ...] | None) -> tuple[float, Read]:
        """The loss of a stretch; its gradients, with those of the penalties, are left in the parameters."""
        self.optimiser.zero_grad()
        read = self.model(self.streams[start:end], states)
        loss = self.model.head.loss(read.hidden, self.streams[start + 1 : end + 1])
        penalty = self.schedule.activation * read.hidden.square().mean()
        if end - start > 1:
            penalty = penalty + self.schedule.change * read.raw.diff(dim=0).square().mean()
        (loss + penalty).backward()
        return float(loss.detach()), read


def _optimiser(model: AWDLSTM, schedule: Schedule) -> torch.optim.Optimizer:
    transform = model.head.transform
    slopes = [transform.raw] if isinstance(transform, PLIF) and transform.raw.requires_grad else []
    weights = [
        each
        for each in model.parameters()
        if each.requires_grad and all(each is not slope for slope in slopes)
    ]
    groups = [{"params": weights, "full_rate": schedule.rate}]
    if slopes:
        groups.append({"params": slopes, "full_rate": schedule.slope_rate})
    return torch.optim.SGD(groups, lr=schedule.rate, weight_decay=schedule.decay)


def _stretches(length: int, around: int, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Ends of the stretches that a text of that length is read in."""
    start = 0
    while start < length:
        mean = around / 2 if generator.random() < _HALF else around
        end = min(length, start + max(_SHORTEST, int(generator.normal(mean, _LENGTH_DEVIATION))))
        yield start, end
        start = end


def _stalls(epochs: list[Epoch], schedule: Schedule) -> bool:
    """Whether it is time to average: the last epoch was no better than the best one `patience` ago."""
    if schedule.average_after is not None and len(epochs) >= schedule.average_after:
        return True
    earlier = [each.validation for each in epochs[: -schedule.patience - 1]]
    return bool(earlier) and epochs[-1].validation > min(earlier)


def _place_of_least(values: Sequence[float]) -> int:
    """1 for the first; 0 without any."""
    return 1 + min(range(len(values)), key=values.__getitem__) if values else 0


def _peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """The most that PyTorch held at a time during the work, beyond what it held before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would announce its start and end on stderr
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        work()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    moves = [event["args"] for event in events if event.get("name") == "[memory]"]
    before = moves[0]["Total Allocated"] - moves[0]["Bytes"]
    return max(int(move["Total Allocated"]) for move in moves) - int(before)
