"""Printed lines, run through a recogniser: the features of every time step, and which steps lie under a
character."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.arrays import Ids, Matrix32, Vector
from argmaxable.core.examples import Examples
from argmaxable.core.progress import Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.examples.printing import PrintedLine, print_line

if TYPE_CHECKING:
    from PIL.Image import Image

    from argmaxable.examples.network import Input, TappedNetwork
    from argmaxable.examples.preprocess import Preprocessing


@dataclass(frozen=True)
class Recogniser:
    """A network for lines of text, and how lines become its input."""

    network: TappedNetwork
    preprocessing: Preprocessing

    def read(
        self,
        images: Sequence[Callable[[], Image]],
        *,
        progress: ProgressCallback = ignore_progress,
        what: str = "lines",
    ) -> list[tuple[Matrix32, float]]:
        """For each image its features (steps × features), and how many steps one of its columns is."""
        answers: list[tuple[Matrix32, float]] = []
        pace = Pace()
        for share, features in self.network.features_of(self._input(make()) for make in images):
            answers.append((features, share * len(features)))
            left = pace.seconds_left(len(answers), len(images))
            progress(Progress(f"running the model on {what}", len(answers), len(images), left))
        return answers

    def _input(self, image: Image) -> tuple[float, Input]:
        """The share of the model's width that one column of the image has, and the model's input."""
        values, columns = self.preprocessing.array(image)
        width = values.shape[1 if self.preprocessing.layout == "nhwc" else 2]
        return columns / width / image.width, values


@dataclass(frozen=True)
class PrintedLines:
    """Lines that are printed the same way each time they are asked for."""

    lines: tuple[PrintedLine, ...]
    seed: int

    def printed(self, number: int) -> tuple[Image, Vector]:
        return print_line(self.lines[number], np.random.default_rng([self.seed, number]))

    def examples(
        self, recogniser: Recogniser, labels: Collection[str], progress: ProgressCallback = ignore_progress
    ) -> Examples:
        """What the recogniser makes of them: every character that is a label occurs in the steps below it.

        Ordinary lines have no occurrences.
        """
        edges: dict[int, Vector] = {}

        def printing(number: int) -> Callable[[], Image]:
            def make() -> Image:
                image, edges[number] = self.printed(number)
                return image

            return make

        read = recogniser.read([printing(number) for number in range(len(self.lines))], progress=progress)
        occurrences = []
        for number, (line, (features, scale)) in enumerate(zip(self.lines, read, strict=True)):
            text = "" if line.is_ordinary else line.text
            steps = steps_between(edges[number] * scale, len(features)).tolist()
            occurrences.append(
                [(char, a, z) for char, (a, z) in zip(text, steps, strict=False) if char in labels and a < z]
            )
        sources = [f"{line.face.name}, {line.finish}" for line in self.lines]
        return joined_examples([features for features, _ in read], sources, occurrences)


def joined_examples(
    features: Sequence[Matrix32],
    sources: Sequence[str],
    occurrences: Sequence[Sequence[tuple[str, int, int]]],
) -> Examples:
    """Inputs in a row; their occurrences are labels with the first step and the end, counted within the
    input."""
    ends = np.concatenate([[0], np.cumsum([len(rows) for rows in features])]).astype(np.intp)
    placed = [
        (label, start + a, start + z)
        for each, start in zip(occurrences, ends, strict=False)
        for label, a, z in each
    ]
    return Examples(
        features=np.concatenate(features) if len(features) else np.zeros((0, 0), np.float32),
        ends=ends,
        sources=tuple(sources),
        labels=tuple(label for label, _, _ in placed),
        spans=np.array([(a, z) for _, a, z in placed], np.intp).reshape(-1, 2),
    )


def steps_between(edges: Vector, steps: int) -> Ids:
    """The steps from one edge to the next (n × 2), each that is touched, none beyond the last."""
    starts = np.floor(edges[:-1]).clip(0, steps)
    ends = np.ceil(edges[1:]).clip(0, steps)
    return np.stack([starts, ends], axis=1).astype(np.intp)
