"""Distributions without structure, and heads learned on them jointly with a vector for each context (Ganea
et al. 2019, section 5.1).

Contexts come in blocks, each from random numbers of its own, one block after the other: their distributions
need not fit into memory, only their vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from argmaxable.core.head import Head
from argmaxable.layers import PLIF, MonotonicNetwork, SoftmaxHead
from argmaxable.theory.bounds import squared_error_bounds
from argmaxable.theory.cross_entropy import entropy, kl_divergence, least_cross_entropy
from experiments.harness.means import Checkpoint, means

# LMS as the paper's equation 14 has it, without the linear term that `argmaxable.layers` adds.
EQUATION_14 = "lms-14"

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Steps in which all contexts are seen once, whatever their number: all heads learn as many times.
_BLOCKS = 50
# Up to this size what is learned from is kept, in at most 400 MB; beyond, it is drawn again for each visit.
_KEPT_LOGITS = 10**8

# Smaller than the papers' where this problem has no use for more: with 10 units and with 100,000 bins the
# losses are the same to a percent. 15 components would take five times as long as 3.
_SMALLER: dict[str, Callable[[], dict[str, Any]]] = {
    "lms": lambda: {"transform": MonotonicNetwork(5)},
    EQUATION_14: lambda: {"transform": MonotonicNetwork(5, linear=False)},
    "lms-plif": lambda: {"transform": PLIF(1000)},
    "mos": lambda: {"mixtures": 3},
}
# Adam. A context's moments are as old as its last visit, while the head has gone on: with the usual 0.9 all
# heads learned more slowly.
_BETAS = (0.5, 0.95)
_CONTEXT_RATE, _WEIGHT_RATE, _TRANSFORM_RATE = 0.5, 0.03, 0.03
_WARM_UP = 0.1  # of all steps

# Contexts whose least cross-entropy is proven, and contexts of which log P is decomposed: enough for a mean,
# few enough to be quick. The gap is far below the last digit shown.
_PROVEN, _DECOMPOSED = 100, 2000
_GAP = 1e-6


@dataclass(frozen=True)
class Problem:
    """So many distributions over so many classes, each drawn from the Dirichlet distribution of alpha."""

    alpha: float
    classes: int
    contexts: int
    seed: int

    def blocks(self) -> Iterator[Matrix]:
        """log P of all contexts (block × classes each)."""
        return (self.block(number) for number in range(self.count))

    @property
    def count(self) -> int:
        """Of blocks."""
        return min(_BLOCKS, self.contexts)

    def block(self, number: int) -> Matrix:
        """log P of one block, the same whenever it is asked for.

        A gamma variate of shape α is one of shape α + 1 times U^(1/α): in logarithms nothing underflows, as
        with α = 0.01 many probabilities would.
        """
        random = np.random.default_rng([self.seed, number])
        ends = [self.contexts * each // self.count for each in (number, number + 1)]
        shape = (ends[1] - ends[0], self.classes)
        log_gamma = np.log(random.standard_gamma(self.alpha + 1, shape))
        log_gamma += np.log1p(-random.random(shape)) / self.alpha
        drawn: Matrix = log_gamma - np.logaddexp.reduce(log_gamma, axis=1, keepdims=True)
        return drawn

    def target(self, number: int) -> Tensor:
        """P of one block in single precision, to learn from."""
        is_kept = self.classes * self.contexts <= _KEPT_LOGITS
        return (_kept_target if is_kept else _target)(self, number)


def _target(problem: Problem, number: int) -> Tensor:
    return torch.from_numpy(np.exp(problem.block(number))).float()


_kept_target = lru_cache(maxsize=_BLOCKS)(_target)


# ---------------------------------------------------------------------- learning


@dataclass(frozen=True, eq=False)
class Learned:
    """A head, and the vectors of all contexts in their blocks."""

    head: SoftmaxHead
    vectors: list[nn.Parameter]

    def blocks(self) -> Iterator[Matrix]:
        """log Q of all contexts."""
        # Nothing is yielded under no_grad, which would go on for whoever asked.
        for block in self.vectors:
            yield self._without_grad(self.head.log_prob, block).double().cpu().numpy()

    def modes(self) -> Iterator[NDArray[np.int64]]:
        """The most probable class of all contexts, by the logits before the head's function: it increases,
        but where it is nearly flat its values are equal in single precision."""
        for block in self.vectors:
            yield self._without_grad(self.head.argmax, block).cpu().numpy()

    @staticmethod
    @torch.no_grad()
    def _without_grad(function: Callable[[Tensor], Tensor], block: Tensor) -> Tensor:
        return function(block)


def learn(problem: Problem, name: str, *, features: int, visits: int, rate: float = 1.0) -> Learned:
    """Minimise the cross-entropy over the head and all contexts' vectors by Adam, every context visited so
    many times. `rate` multiplies all learning rates."""
    device = means().torch_device()
    checkpoint = means().checkpoint(problem, name, features, visits)
    head = _fresh_head(name, features, problem).to(device)
    vectors = [_first_vectors(head, problem.target(number).to(device)) for number in range(problem.count)]
    optimizer, rates = _optimizer(head, vectors)
    order = np.random.default_rng([problem.seed, 1, visits])
    first = _resume(checkpoint, head, vectors, optimizer, order)
    steps = visits * problem.count
    if means().steps:
        visits = 1
    for visit in range(first, visits):
        for place, number in enumerate(order.permutation(problem.count).tolist()[: means().steps]):
            share = _schedule((visit * problem.count + place) / steps)
            for group, own in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * own * share
            _step(head, vectors[number], problem.target(number).to(device), optimizer)
        means().reached(visit + 1, visits)
        state = {"visit": visit + 1, "order": order.bit_generator.state, "optimizer": optimizer.state_dict()}
        checkpoint.save(
            {**state, "head": head.state_dict(), "vectors": list(map(Tensor.detach, vectors))}, device
        )
    return Learned(head, vectors)


def _step(head: SoftmaxHead, vectors: nn.Parameter, target: Tensor, optimizer: torch.optim.Adam) -> None:
    optimizer.zero_grad()  # to None: Adam leaves the blocks alone that are not visited
    head.loss(vectors, target).backward()
    optimizer.step()


def _resume(
    checkpoint: Checkpoint,
    head: SoftmaxHead,
    vectors: list[nn.Parameter],
    optimizer: torch.optim.Adam,
    order: np.random.Generator,
) -> int:
    """Take up what an interrupted process left; returns how many visits it had made."""
    state = checkpoint.load(head.weight.device)
    if state is None:
        return 0
    head.load_state_dict(state["head"])
    for vector, kept in zip(vectors, state["vectors"], strict=True):
        vector.data.copy_(kept)
    optimizer.load_state_dict(state["optimizer"])
    order.bit_generator.state = state["order"]
    return int(state["visit"])


def _fresh_head(name: str, features: int, problem: Problem) -> SoftmaxHead:
    """Without a bias, as in the paper."""
    settings = _SMALLER[name]() if name in _SMALLER else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(problem.seed)
        known = "lms" if name == EQUATION_14 else name
        return SoftmaxHead.from_name(known, features, problem.classes, bias=False, **settings)


def _first_vectors(head: SoftmaxHead, target: Tensor) -> nn.Parameter:
    """Where the loss of a linear head falls fastest from h = 0, with entries of about 1."""
    weight = head.weight.detach()
    downhill = target @ (weight - weight.mean(0))
    length = downhill.norm(dim=1, keepdim=True) / math.sqrt(weight.shape[1])
    return nn.Parameter(downhill / length)


def _optimizer(head: SoftmaxHead, vectors: list[nn.Parameter]) -> tuple[torch.optim.Adam, list[float]]:
    transform = list(head.transform.parameters())
    own = {id(each) for each in transform}
    weights = [each for each in head.parameters() if id(each) not in own]
    groups = [(vectors, _CONTEXT_RATE), (weights, _WEIGHT_RATE), (transform, _TRANSFORM_RATE)]
    kept = [(list[Tensor](parameters), rate) for parameters, rate in groups if parameters]
    optimizer = torch.optim.Adam([{"params": parameters} for parameters, _ in kept], betas=_BETAS)
    return optimizer, [rate for _, rate in kept]


def _schedule(done: float) -> float:
    """The share of the learning rate: up for a tenth of the steps, then down to 0 by a cosine."""
    return min(1.0, done / _WARM_UP + 0.02) * (1 + math.cos(math.pi * done)) / 2


# ---------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Judged:
    """How near a model comes: KL(P* ‖ Q) with its standard deviation over contexts, the share of contexts
    whose most likely class is right, and the root mean square error of log P (of the first contexts)."""

    divergence: float
    deviation: float
    matched: float
    log_error: float


def judge(problem: Problem, learned: Learned) -> Judged:
    """All contexts, one block after the other."""
    divergences, matched, squares = [], [], []
    for log_p, log_q, modes in zip(problem.blocks(), learned.blocks(), learned.modes(), strict=True):
        divergences.append(kl_divergence(np.exp(log_p), log_q))
        matched.append(log_p.argmax(axis=1) == modes)
        squares.append(((log_p - log_q) ** 2).mean(axis=1))
    divergence = np.concatenate(divergences)
    return Judged(
        divergence=float(divergence.mean()),
        deviation=float(divergence.std()),
        matched=float(np.concatenate(matched).mean()),
        log_error=math.sqrt(np.concatenate(squares)[:_DECOMPOSED].mean()),
    )


@dataclass(frozen=True)
class Proven:
    """What no choice of context vectors can beat, as means over the first contexts.

    `least` ≤ the mean KL that the weights allow at best ≤ `least` + `gap`; `reached` is what the learned
    vectors of the same contexts have. `log_error` bounds the root mean square error of log P for linear heads
    with any weights: it says nothing of KL.
    """

    least: float
    gap: float
    reached: float
    log_error: float


def prove(problem: Problem, learned: Learned, *, features: int) -> Proven:
    """Both bounds, for a linear head."""
    p = np.exp(_first(problem.blocks(), _PROVEN))
    weight = learned.head.weight.detach().double().cpu().numpy()
    best = least_cross_entropy(Head(weight), p, gap=_GAP)
    log_p = _first(problem.blocks(), _DECOMPOSED)
    bound = squared_error_bounds(log_p).centred[features]
    return Proven(
        least=float((best.dual - entropy(p)).mean()),
        gap=float(best.gap.mean()),
        reached=float(kl_divergence(p, _first(learned.blocks(), _PROVEN)).mean()),
        log_error=math.sqrt(bound / log_p.size),
    )


def _first(blocks: Iterator[Matrix], most: int) -> Matrix:
    """The first rows of all blocks, at most so many; no block is asked for that is not needed."""
    found: list[Matrix] = []
    for block in blocks:
        found.append(block)
        if sum(map(len, found)) >= most:
            break
    return np.concatenate(found)[:most]
