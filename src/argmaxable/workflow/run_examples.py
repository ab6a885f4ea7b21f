"""Examples for a model that is run: printed in fonts, or images of the user's."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.examples.images import LabelledImage, read_images
from argmaxable.examples.labelled import Reader, examples_of_images
from argmaxable.examples.material import Material, lesson, observed_lines
from argmaxable.examples.network import TappedNetwork
from argmaxable.examples.preprocess import preprocessing_for
from argmaxable.examples.recognised import PrintedLines, Recogniser
from argmaxable.workflow.example_set import ExampleSet
from argmaxable.workflow.find_model import FoundModel

if TYPE_CHECKING:
    from PIL.Image import Image

BLANK = "<blank>"
# Of images without a folder of their own to be judged by, every fifth is held out.
_HELD_OUT_EVERY = 5


class Pictures(Mapping[int, bytes]):
    """Inputs as PNG files, by their numbers, each made when it is asked for."""

    def __init__(self, source: PrintedLines | Sequence[LabelledImage]) -> None:
        self._source = source

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < len(self):
            raise KeyError(number)
        source = self._source
        image = source.printed(number)[0] if isinstance(source, PrintedLines) else source[number].opened()
        buffer = io.BytesIO()
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._source.lines if isinstance(self._source, PrintedLines) else self._source)


@dataclass(frozen=True, eq=False)
class ExampleRunner:
    """A model that can be run up to its output layer, and its labels."""

    head: Head
    recogniser: Recogniser
    progress: ProgressCallback = ignore_progress

    @staticmethod
    def of(
        found: FoundModel, head: Head, *, preprocess: str | None, progress: ProgressCallback = ignore_progress
    ) -> ExampleRunner:
        """Raises InputError for models and settings that don't fit."""
        network = TappedNetwork(found.ref.file(), found.finding, head)
        is_ctc = head.labels is not None and BLANK in head.labels
        settings = preprocessing_for(network.input, is_ctc=is_ctc, text=preprocess)
        return ExampleRunner(head, Recogniser(network, settings), progress)

    def printed(self, material: Material, wanted: Sequence[str]) -> ExampleSet:
        """Lines for classes to be taught; labels that the head lacks are those to add."""
        labels = self._require_text()
        lines = lesson(material, wanted, labels)
        known = {*labels, *wanted}
        self._require_own_answers(lines.training.printed(0)[0])
        same = () if material.held_out else ("measured with the training fonts: pass --held-out-font",)
        missing = f"no font has {' '.join(map(visible, lines.omitted))}"
        return ExampleSet(
            training=lines.training.examples(self.recogniser, known, self.progress),
            held_out=lines.judging.examples(self.recogniser, known, self.progress),
            pictures=Pictures(lines.judging),
            notes=(self._how, *same, *([missing] if lines.omitted else [])),
        )

    def printed_dictionary(self, material: Material) -> Examples:
        """Lines with every character of the dictionary."""
        labels = self._require_text()
        lines = observed_lines(material, labels)
        self._require_own_answers(lines.printed(0)[0])
        return lines.examples(self.recogniser, set(labels), self.progress)

    def photographed(
        self, folder: Path, wanted: Sequence[str], *, held_out: Path | None = None
    ) -> ExampleSet:
        """Images of a folder, and those of another or every fifth of each class to be judged by."""
        training = read_images(folder)
        judging = read_images(held_out) if held_out is not None else _every_fifth(training)
        training = tuple(image for image in training if image not in set(judging))
        self._require_own_answers(training[0].opened())
        return ExampleSet(
            training=self.images(training, wanted),
            held_out=self.images(judging, wanted),
            pictures=Pictures(judging),
            notes=(self._how,),
        )

    def all_images(self, folder: Path) -> Examples:
        """All images of a folder, as the model sees them."""
        images = read_images(folder)
        self._require_own_answers(images[0].opened())
        return self.images(images, ())

    def images(self, images: Sequence[LabelledImage], wanted: Sequence[str]) -> Examples:
        """What the model makes of images, whatever they show."""
        labels = self._labels
        blank = labels.index(BLANK) if BLANK in labels else None
        reader = Reader(self.head, blank, frozenset(wanted))
        return examples_of_images(images, self.recogniser, reader, {*labels, *wanted}, self.progress)

    @property
    def _how(self) -> str:
        return f"images became inputs by --preprocess {self.recogniser.preprocessing}"

    @property
    def _labels(self) -> tuple[str, ...]:
        return self.head.labels or tuple(map(str, range(self.head.classes)))

    def _require_text(self) -> tuple[str, ...]:
        if BLANK not in self._labels:
            raise InputError(
                f"{self.head.name} is not a recogniser of text with a known dictionary (no class {BLANK}), "
                "so printed text can't be used. Pass --labels FILE, or --images."
            )
        return self._labels

    def _require_own_answers(self, image: Image) -> None:
        """Hold the head at the tapped features against the model's own answer, once."""
        values, _ = self.recogniser.preprocessing.array(image)
        self.recogniser.network.require_own_answers(values)


def _every_fifth(images: Sequence[LabelledImage]) -> tuple[LabelledImage, ...]:
    """Every fifth image of each class, or of a list of texts."""
    groups: dict[str | None, list[LabelledImage]] = {}
    for image in images:
        groups.setdefault(None if image.is_text else image.label, []).append(image)
    return tuple(
        image for group in groups.values() for image in group[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY]
    )
