"""The options that say where examples come from, and which of them are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.compute.readings import require_width
from argmaxable.core.errors import InputError
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.examples.faces import parse_faces
from argmaxable.examples.material import COPIES, ORDINARY_LINES, Material
from argmaxable.models.npz.examples import read_examples
from argmaxable.workflow.example_set import ExampleSet, split

if TYPE_CHECKING:
    from argmaxable.core.examples import Examples
    from argmaxable.core.head import Head
    from argmaxable.workflow.find_model import FoundModel
    from argmaxable.workflow.run_examples import ExampleRunner

_DEFAULT_SHARE = "0.2"


@dataclass(frozen=True)
class ExampleOptions(OptionGroup):
    """Where examples come from."""

    features: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Examples as an .npz file: features (one per row), labels ('' for ordinary inputs), source; "
            "for sequences ends and spans (docs/teach.md).",
        ),
    ] = None
    hold_out: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE|SHARE",
            help="Inputs to hold out for measuring: all of one source (repeatable), or a share of "
            "all (default: {_DEFAULT_SHARE}).",
        ),
    ] = None

    font: Annotated[
        list[str] | None,
        Option(
            metavar="FILE[#FACE]",
            help="Font to render lines of text with, for ONNX recognisers; repeatable (extra teach).",
        ),
    ] = None
    held_out_font: Annotated[
        list[str] | None,
        Option(metavar="FILE[#FACE]", help="Font to hold out for measuring."),
    ] = None
    words: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Words to print around the classes, one `word [count]` per line (default: the dictionary's "
            "common characters).",
        ),
    ] = None
    text: Annotated[
        Path | None,
        Option(metavar="FILE", help="Ordinary text, whose printed lines should read as before."),
    ] = None
    text_lines: Annotated[int, Option(min=1, help="How many ordinary lines to measure with.")] = (
        ORDINARY_LINES
    )
    copies: Annotated[int, Option(min=1, help="How many times to render each class.")] = COPIES
    images: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Images to run MODEL on: a folder for each class (_ordinary for other inputs), or a text "
            "file with a line name<TAB>text for each (extra teach).",
        ),
    ] = None
    held_out_images: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Images to hold out for measuring (default: every fifth of each class of --images).",
        ),
    ] = None
    preprocess: Annotated[
        str | None,
        Option(
            metavar="KIND[,SETTING=VALUE]",
            help="How images become MODEL's input: ctc-line or imagenet, with height, width, channels, "
            "order, layout, mean, std, crop (default: what fits the graph; it is shown).",
        ),
    ] = None

    def gather(
        self,
        found: FoundModel,
        head: Head,
        wanted: Sequence[str],
        *,
        seed: int,
        progress: ProgressCallback = ignore_progress,
    ) -> ExampleSet:
        """The examples, some held out. `wanted` are the labels that are needed: a source that makes examples
        makes those, a file has what it has. Raises InputError."""
        self._require_one_source()
        if self.features is not None:
            return split(self._stored(self.features, head), self.hold_out or [_DEFAULT_SHARE], seed=seed)
        runner = self._runner(found, head, progress)
        if self.images is not None:
            return runner.photographed(self.images, wanted, held_out=self.held_out_images)
        return runner.printed(self._material(seed), wanted)

    def gather_all(
        self, found: FoundModel, head: Head, *, seed: int, progress: ProgressCallback = ignore_progress
    ) -> Examples:
        """Examples of every class that there are examples of, none held out. Raises InputError."""
        self._require_one_source()
        if self.features is not None:
            return self._stored(self.features, head)
        runner = self._runner(found, head, progress)
        if self.images is not None:
            return runner.all_images(self.images)
        return runner.printed_dictionary(self._material(seed))

    @staticmethod
    def _stored(path: Path, head: Head) -> Examples:
        examples = read_examples(path)
        require_width(examples.features, head)
        return examples

    def _runner(self, found: FoundModel, head: Head, progress: ProgressCallback) -> ExampleRunner:
        from argmaxable.workflow.run_examples import ExampleRunner  # imports what only runs of models need

        return ExampleRunner.of(found, head, preprocess=self.preprocess, progress=progress)

    def _require_one_source(self) -> None:
        """Raise InputError unless examples come from one place, with the options of that place."""
        sources = {"--features": self.features, "--font": self.font, "--images": self.images}
        given = [name for name, value in sources.items() if value]
        if len(given) != 1:
            together = f"{' and '.join(given)} can't be used together."
            found = together if given else "no examples were given."
            raise InputError(f"{found} Pass one of --features FILE.npz, --font FILE and --images DIR.")
        strange = {
            "--hold-out": (self.hold_out, "--features"),
            "--held-out-font": (self.held_out_font, "--font"),
            "--words": (self.words, "--font"),
            "--text": (self.text, "--font"),
            "--held-out-images": (self.held_out_images, "--images"),
        }
        for name, (value, source) in strange.items():
            if value and source not in given:
                raise InputError(f"{name} only works with {source}, but the examples come from {given[0]}.")

    def _material(self, seed: int) -> Material:
        return Material(
            parse_faces(self.font or ()),
            parse_faces(self.held_out_font or ()),
            words=self.words,
            text=self.text,
            text_lines=self.text_lines,
            copies=self.copies,
            seed=seed,
        )
