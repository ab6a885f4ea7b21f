"""Train a small language model on a text file with four output layers, and watch the words that can never be
predicted.

    pip install 'argmaxable[torch,plot]'
    python examples/train_language_model.py book.txt

The model is a small recurrent network over words. Its output layer has few features, so that the softmax
bottleneck shows. Each layer gets the same time: ten minutes on a laptop for all four. The plot shows the loss
on held-out text, and the monitor's count of words that can never be predicted.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from argmaxable.layers import PLIF, HeadMonitor, SoftmaxHead, SphericalLinear

UNKNOWN = "<unk>"
# Each row: a name, and its head as a function of the numbers of features and classes.
HEADS: dict[str, Callable[[int, int], nn.Module]] = {
    "linear": lambda features, classes: SoftmaxHead(features, classes),
    "mixture of softmaxes": lambda features, classes: SoftmaxHead(features, classes, mixtures=5),
    "PLIF": lambda features, classes: SoftmaxHead(features, classes, transform=PLIF(10_000)),
    "spherical": lambda features, classes: SphericalLinear(features, classes, radius=3.0),
}


@dataclass(frozen=True)
class Settings:
    """Of the model and its training."""

    words: int
    features: int
    width: int
    seconds: float
    steps: int | None
    every: int
    length: int = 32
    rows: int = 32


@dataclass
class Curve:
    """What was seen while one head trained; counts are None for mixtures."""

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    never: list[int | None] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)
    seconds: float = 0.0


class LanguageModel(nn.Module):
    """Words, a recurrent layer, and few features for the head."""

    def __init__(self, head: nn.Module, settings: Settings) -> None:
        super().__init__()
        self.words = nn.Embedding(settings.words, settings.width)
        self.body = nn.GRU(settings.width, settings.width, batch_first=True)
        self.narrow = nn.Linear(settings.width, settings.features)
        self.head = head

    def loss(self, ids: Tensor) -> Tensor:
        features = self.narrow(self.body(self.words(ids[:, :-1]))[0])
        if isinstance(self.head, SoftmaxHead):
            return self.head.loss(features, ids[:, 1:])
        return F.cross_entropy(self.head(features).flatten(0, 1), ids[:, 1:].flatten())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, help="any UTF-8 text; a few hundred kB are enough")
    parser.add_argument("--words", type=int, default=2000, help="size of the vocabulary")
    parser.add_argument("--features", type=int, default=8, help="of the output layer")
    parser.add_argument("--width", type=int, default=64, help="of the rest of the model")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all four layers together")
    parser.add_argument("--steps", type=int, help="train each layer for this many steps instead")
    parser.add_argument("--every", type=int, default=100, help="steps between two measurements")
    parser.add_argument("--output", type=Path, default=Path("language_model.png"))
    options = parser.parse_args(arguments)
    ids, vocabulary = read(options.text, options.words)
    seconds = options.minutes * 60 / len(HEADS)
    settings = Settings(
        len(vocabulary), options.features, options.width, seconds, options.steps, options.every
    )
    curves = {name: train(name, ids, settings) for name in HEADS}
    draw(curves, settings, options.output)
    print(f"{options.output}: the curves of {len(curves)} layers")


def read(path: Path, words: int) -> tuple[Tensor, list[str]]:
    """The text as word ids, and the vocabulary: the most frequent words, and one entry for the rest."""
    found = re.findall(r"\w+|[^\w\s]", path.read_text(encoding="utf-8").lower())
    common = [word for word, _ in Counter(found).most_common(words - 1) if word != UNKNOWN]
    vocabulary = [UNKNOWN, *common]
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return torch.tensor([numbers.get(word, 0) for word in found]), vocabulary


def train(name: str, ids: Tensor, settings: Settings) -> Curve:
    """One head, on the first nine tenths of the text; its losses are on the last."""
    torch.manual_seed(0)
    model = LanguageModel(HEADS[name](settings.features, settings.words), settings)
    slopes = [each for key, each in model.named_parameters() if key.endswith("transform.raw")]
    others = [each for key, each in model.named_parameters() if not key.endswith("transform.raw")]
    # A PLIF's slopes learn with a larger rate than weights.
    groups: list[dict[str, Any]] = [{"params": others, "lr": 3e-3}, {"params": slopes, "lr": 2e-2}]
    optimizer = torch.optim.Adam([group for group in groups if group["params"]])
    monitor = HeadMonitor(model.head, every=settings.every, time_limit=10.0)
    cut = len(ids) * 9 // 10
    held_out, curve, started = windows(ids[cut:], settings)[:8], Curve(), time.perf_counter()
    step = 0
    while step < settings.steps if settings.steps else time.perf_counter() - started < settings.seconds:
        step += 1
        rows = windows(ids[:cut], settings)
        batch = rows[torch.randint(len(rows), (settings.rows,))]
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
        health = monitor(step)
        if health is not None:
            with torch.no_grad():
                curve.losses.append(model.loss(held_out).item())
            curve.steps.append(step)
            curve.never.append(health.unargmaxable)
            curve.undecided.append(health.undecided or 0)
            never = (
                "" if health.unargmaxable is None else f", {health.unargmaxable} words can never be predicted"
            )
            undecided = f" ({health.undecided} undecided)" if health.undecided else ""
            print(f"{name}: step {step}, loss {curve.losses[-1]:.3f}{never}{undecided}", file=sys.stderr)
    monitor.close()
    curve.seconds = time.perf_counter() - started
    return curve


def windows(ids: Tensor, settings: Settings) -> Tensor:
    """The text in rows of one length, each with the word that follows it."""
    many = (len(ids) - 1) // settings.length
    if many < 1:
        raise SystemExit(f"the text is too short: {len(ids)} words, and rows have {settings.length}.")
    return ids[: many * settings.length + 1].unfold(0, settings.length + 1, settings.length)


def draw(curves: dict[str, Curve], settings: Settings, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for number, (name, curve) in enumerate(curves.items()):
        left.plot(curve.steps, curve.losses, f"C{number}.-", label=name)
        if None not in curve.never:
            right.plot(curve.steps, curve.never, f"C{number}.-", label=name)
            # The monitor's time is limited: what it did not decide may be among them.
            most = [(never or 0) + open_ for never, open_ in zip(curve.never, curve.undecided, strict=True)]
            right.fill_between(curve.steps, curve.never, most, color=f"C{number}", alpha=0.15, linewidth=0)
    left.set(xlabel="step", ylabel="loss on held-out text (nats a word)", title="Loss")
    right.set(
        xlabel="step",
        ylabel=f"of {settings.words:,} words",
        title=f"Words that can never be predicted ({settings.features} features)",
    )
    right.set_ylim(bottom=-0.015 * settings.words)  # a line at 0 shows above the axis
    left.legend()
    right.legend(title="shaded: undecided (no count for a mixture)")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
