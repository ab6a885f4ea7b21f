"""Teaches a recogniser many Han characters of its dictionary, and counts what it reads in other fonts.

    python benchmarks/teach_dictionary.py MODEL.onnx --name ppocrv4 --font FILE... --held-out-font FILE...
        [--unargmaxable] [--every 10] [--copies 12] [--keep FOLDER] [--output TAUGHT.onnx]

Taught are the characters that are read in fewer than half of their images, or with --unargmaxable those that
can never be predicted. What it costs is counted on ordinary lines and on all other characters. With --keep,
lines that were read stay in a folder, so that a stopped run resumes. Writes
results/teach_dictionary_NAME.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _record
import numpy as np

import argmaxable as am
from argmaxable.compute.readings import standings
from argmaxable.core.arrays import Mask
from argmaxable.core.examples import joined
from argmaxable.core.progress import Progress
from argmaxable.edit.teach.plan import Taught
from argmaxable.examples.faces import Face, covers, parse_faces
from argmaxable.examples.lines import Printer, Words, common_words
from argmaxable.examples.printing import Finish, PrintedLine
from argmaxable.examples.recognised import PrintedLines
from argmaxable.models.model_ref import ModelRef
from argmaxable.models.npz.examples import read_examples
from argmaxable.models.write import write_head
from argmaxable.workflow.find_model import find_model
from argmaxable.workflow.run_examples import BLANK, ExampleRunner

_TRAINING, _JUDGING = (Finish.PLAIN, Finish.SCANNED), (Finish.PLAIN, Finish.PHOTOGRAPHED)
_TOGETHER = 8, 0.1  # characters of the dictionary a line, chance of a word between two


def is_han(label: str) -> bool:
    return len(label) == 1 and "㐀" <= label <= "鿿"


def is_read(head: am.Head, examples: am.Examples) -> Mask:
    """Which occurrences are read somewhere in their spans."""
    winner = standings(head, examples.features, np.arange(head.classes), blank=None).winner
    names = [head.label(number) for number in range(head.classes)]
    spans = zip(examples.labels, examples.spans.tolist(), strict=True)
    return np.array(
        [label in {names[each] for each in winner[a:z].tolist()} for label, (a, z) in spans], bool
    )


def misread(head: am.Head, examples: am.Examples) -> list[str]:
    """The Han characters of which fewer than half of the occurrences are read."""
    counts: dict[str, list[bool]] = {}
    for label, right in zip(examples.labels, is_read(head, examples).tolist(), strict=True):
        if is_han(label):
            counts.setdefault(label, []).append(right)
    return sorted(label for label, each in counts.items() if 2 * sum(each) < len(each))


def tell(progress: Progress) -> None:
    if progress.done % 50 == 0 or progress.done == progress.total:
        print(f"{progress.phase}: {progress.done:,} of {progress.total:,}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Lines:
    """What lines are made of, and the model that reads them."""

    runner: ExampleRunner
    faces: tuple[Face, ...]
    held_out: tuple[Face, ...]
    every: int
    keep: Path | None

    @property
    def characters(self) -> list[str]:
        """The characters of the dictionary, or every Nth of them."""
        labels = self.runner.head.labels or ()
        return sorted(label for label in labels if len(label) == 1 and label.isprintable() and label != " ")[
            :: self.every
        ]

    def read(self, name: str, seed: int, make: Callable[[], Iterable[PrintedLine]]) -> am.Examples:
        """What the model makes of lines, or what it made of them before."""
        file = None if self.keep is None else self.keep / f"{name}.npz"
        if file is not None and file.exists():
            return read_examples(file)
        known = set(self.runner.head.labels or ())
        found = PrintedLines(tuple(make()), seed).examples(self.runner.recogniser, known, tell)
        if file is not None:
            np.savez(
                file, features=found.features, ends=found.ends, spans=found.spans,
                labels=np.array(found.labels, str), source=np.array(found.sources, str),
            )  # fmt: skip
        return found

    def dictionary(self, copies: int) -> am.Examples:
        """Every character in the fonts to learn from."""
        return self.read("dictionary", 0, lambda: self._printer(0, _TRAINING).among_words(
            self.characters, copies, *_TOGETHER))  # fmt: skip

    def lesson(self, wanted: Sequence[str], copies: int, ordinary: int) -> am.Examples:
        """The characters to teach among words, and ordinary lines without them."""

        def make() -> Iterator[PrintedLine]:
            printer = self._printer(1, _TRAINING, wanted)
            yield from printer.among_words(wanted, copies)
            yield from printer.of_words(ordinary)

        return self.read("lesson", 1, make)

    def judging(self, wanted: Sequence[str], ordinary: int) -> am.Examples:
        """Every character once in each held-out font, and ordinary lines without those to teach."""

        def make() -> Iterator[PrintedLine]:
            copies = len(self.held_out)
            yield from self._printer(2, _JUDGING).among_words(self.characters, copies, *_TOGETHER)
            yield from self._printer(3, _JUDGING, wanted).of_words(ordinary)

        return self.read("judging", 2, make)

    def _printer(self, seed: int, finishes: tuple[Finish, ...], without: Sequence[str] = ()) -> Printer:
        faces = self.faces if finishes is _TRAINING else self.held_out
        return Printer(faces, self._words(without), finishes, np.random.default_rng(seed))

    def _words(self, without: Sequence[str]) -> Words:
        labels = self.runner.head.labels or ()
        return common_words(frozenset(label for label in labels if len(label) == 1) - set(without))


def record(taught: Taught, judging: am.Examples) -> dict[str, Any]:
    """What was proven and what was measured."""
    measured = taught.held_out
    assert measured is not None
    han = np.array([is_han(label) for label in judging.labels], bool)
    share = [
        [int((is_read(head, judging) & han).sum()), int(han.sum())] for head in (taught.before, taught.after)
    ]
    return {
        "taught": len(taught.classes),
        "left_out": [[each.label, each.reason] for each in taught.left_out],
        "dictionary_read_before": share[0],
        "dictionary_read_after": share[1],
        "taught_read": [measured.read_before.count, measured.read_after.count, measured.read_after.total],
        "ordinary_lines_changed": [measured.changed.count, measured.changed.total, measured.changed.bound],
        "others_taken": [measured.taken.count, measured.taken.total, measured.taken.bound],
        "taken_by": [[each.label, each.taught, each.count] for each in measured.taken_by[:40]],
        "substituted": [[each.label, each.taught, each.count] for each in measured.substituted[:40]],
        "unargmaxable": [len(taught.result_before.unargmaxable), len(taught.result.unargmaxable)],
        "undecided": len(taught.result.undecided),
        "refitted": taught.refitted,
        "witnesses_that_are_examples": sum(each.witness is not None for each in taught.classes),
        "phases": {name: round(seconds, 1) for name, seconds in taught.phases.items()},
    }


def observed(before: am.Result, dictionary: am.Examples) -> dict[str, Any]:
    """How many classes have each grade by the lines to learn from, and how well grades foretell."""
    seen = am.observe(before, dictionary)
    return {
        **{grade.name.lower(): len(seen.having(grade)) for grade in am.Grade},
        "never_seen_with_examples": sum(each.examples > 0 for each in seen.having(am.Grade.NEVER_SEEN)),
        "never_again": [seen.never_again.count, seen.never_again.total],
        "again": [seen.again.count, seen.again.total],
        "wins_outside_the_domain": seen.outside,
    }


def chosen(given: argparse.Namespace, before: am.Result, lines: Lines) -> tuple[list[str], am.Examples]:
    """The characters to teach, and the lines in which the dictionary was looked at."""
    dictionary = lines.dictionary(given.looked_at)
    if not given.unargmaxable:
        return misread(before.head, dictionary), dictionary
    never = {verdict.label for verdict in before.unargmaxable}
    mine = [label for label in lines.characters if label in never and is_han(label)]
    return [label for label in mine if any(covers(face, label) for face in lines.faces)], dictionary


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--font", action="append", required=True)
    parser.add_argument("--held-out-font", action="append", required=True)
    parser.add_argument("--unargmaxable", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="take every Nth character only")
    parser.add_argument("--looked-at", type=int, default=6, help="images of each character to learn from")
    parser.add_argument("--copies", type=int, default=12, help="more images of each character to teach")
    parser.add_argument("--words", type=int, default=1500, help="ordinary lines to learn from")
    parser.add_argument("--ordinary", type=int, default=5000, help="ordinary lines to measure with")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    started = time.perf_counter()
    found = find_model(ModelRef(given.model))
    head = found.head()
    runner = ExampleRunner.of(found, head, preprocess=None)
    lines = Lines(runner, parse_faces(given.font), parse_faces(given.held_out_font), given.every, given.keep)
    before = am.verify(head, found.domain)
    wanted, dictionary = chosen(given, before, lines)
    training = joined(dictionary, lines.lesson(wanted, given.copies, given.words))
    judging = lines.judging(wanted, given.ordinary)
    labels = [head.label(number) for number in range(head.classes)]
    taught = am.teach(
        head, found.domain, training, [labels.index(label) for label in wanted], held_out=judging,
        rules=am.TeachingRules(blank=labels.index(BLANK)), before=before, progress=tell, time_limit=None,
    )  # fmt: skip
    if given.output is not None:
        write_head(str(given.model), found.finding, head, taught.after, given.output, overwrite=True)
    _record.write(f"teach_dictionary_{given.name}", {
        "settings": {name: getattr(given, name) for name in ("unargmaxable", "every", "looked_at", "copies")},
        "fonts": [face.name for face in lines.faces],
        "held_out_fonts": [face.name for face in lines.held_out],
        "classes": head.classes, "characters": len(lines.characters), "wanted": len(wanted),
        "lines": [len(each.sources) for each in (training, judging)],
        "observed": observed(before, dictionary),
        **record(taught, judging),
        "cpu_seconds": round(time.process_time()), "seconds": round(time.perf_counter() - started),
    })  # fmt: skip


if __name__ == "__main__":
    main()
