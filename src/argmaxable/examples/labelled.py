"""Images that were found, run through a model: what each of them shows, and at which decisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from argmaxable.core.arrays import Matrix32
from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.examples.alignment import aligned
from argmaxable.examples.images import LabelledImage
from argmaxable.examples.recognised import Recogniser, joined_examples

_Occurrences = list[tuple[str, int, int]]


@dataclass(frozen=True)
class Reader:
    """A model's head, its blank (None: a classifier, which decides once), and the classes it can't read
    yet."""

    head: Head
    blank: int | None
    taught: frozenset[str]

    def occurrences(self, image: LabelledImage, features: Matrix32) -> _Occurrences:
        """The labels that an image shows, with the decisions that are theirs; empty for ordinary inputs."""
        if image.label is None:
            return []
        if not image.is_text or self.blank is None:
            return [(image.label, 0, len(features))]
        return self._in_text(image.label, features)

    def _in_text(self, text: str, features: Matrix32) -> _Occurrences:
        numbers = self._numbers
        classes = [None if char in self.taught else numbers.get(char) for char in text]
        weight, bias = (part.astype(np.float32) for part in (self.head.rows(slice(None)), self.head.biases()))
        steps = aligned(features @ weight.T + bias, classes, self.blank or 0)
        if steps is None:
            return []
        return [(char, int(a), int(z)) for char, (a, z) in zip(text, steps, strict=True) if a < z]

    @property
    def _numbers(self) -> dict[str, int]:
        return {self.head.label(number): number for number in range(self.head.classes)}


def examples_of_images(
    images: Sequence[LabelledImage], recogniser: Recogniser, reader: Reader, labels: Collection[str],
    progress: ProgressCallback = ignore_progress,
) -> Examples:  # fmt: skip
    """What the model makes of images; raises InputError for a class's folder that is named as none of the
    labels."""
    strange = sorted({image.label for image in images if image.label and not image.is_text} - set(labels))
    if strange:
        raise InputError(
            f"{strange[0]!r} is the name of a folder of images, but not of a class ({len(strange)} such "
            "folders). "
            "Rename it, or append the class with --add."
        )
    read = recogniser.read([image.opened for image in images], progress=progress, what="images")
    features = [each for each, _ in read]
    occurrences = [
        [each for each in reader.occurrences(image, rows) if each[0] in labels]
        for image, rows in zip(images, features, strict=True)
    ]
    return joined_examples(features, [image.path.parent.name for image in images], occurrences)
