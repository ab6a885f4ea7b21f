"""Teaches a recogniser every Han character that it mostly misreads, and counts how much of its dictionary it
reads in other fonts then.

    python scripts/measure_dictionary.py MODEL.onnx --font FILE... --held-out-font FILE... [--words FILE]
        [--text FILE] [--copies 12]

A character is misread if fewer than half of its images in the fonts to learn from are read. What it costs is
counted on ordinary lines and on all other characters. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from argmaxable.compute.readings import standings
from argmaxable.core.arrays import Mask
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.progress import Progress
from argmaxable.edit.teach.plan import teach
from argmaxable.examples.faces import parse_faces
from argmaxable.examples.material import Material
from argmaxable.models.model_ref import ModelRef
from argmaxable.models.write import write_head
from argmaxable.workflow.find_model import find_model
from argmaxable.workflow.run_examples import BLANK, ExampleRunner

_LOOKED_AT = 6  # images of each character, to find those that are misread


def is_han(label: str) -> bool:
    return len(label) == 1 and "㐀" <= label <= "鿿"


def is_read(head: Head, examples: Examples) -> Mask:
    """Which occurrences are read somewhere in their spans."""
    winner = standings(head, examples.features, np.arange(head.classes), blank=None).winner
    spans = zip(examples.labels, examples.spans.tolist(), strict=True)
    return np.array([label in {head.label(each) for each in winner[a:z]} for label, (a, z) in spans], bool)


def misread(head: Head, examples: Examples) -> list[str]:
    """The Han characters of which fewer than half of the occurrences are read."""
    counts: dict[str, list[int]] = {}
    for label, right in zip(examples.labels, is_read(head, examples), strict=True):
        if is_han(label):
            counts.setdefault(label, []).append(int(right))
    return sorted(label for label, each in counts.items() if 2 * sum(each) < len(each))


def share(head: Head, examples: Examples) -> list[int]:
    """How many occurrences of Han characters are read, of how many."""
    han = np.array([is_han(label) for label in examples.labels], bool)
    return [int((is_read(head, examples) & han).sum()), int(han.sum())]


def tell(progress: Progress) -> None:
    print(f"\r{progress.phase}: {progress.done:,} of {progress.total:,}", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--font", action="append", required=True)
    parser.add_argument("--held-out-font", action="append", required=True)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    started = time.perf_counter()
    found = find_model(ModelRef(given.model))
    head = found.head()
    runner = ExampleRunner.of(found, head, preprocess=None, progress=tell)
    material = Material(
        parse_faces(given.font), parse_faces(given.held_out_font), words=given.words, text=given.text,
        text_lines=5000, copies=given.copies,
    )  # fmt: skip
    wanted = misread(head, runner.printed_dictionary(replace(material, copies=_LOOKED_AT)))
    examples = runner.printed(material, wanted)
    labels = [head.label(number) for number in range(head.classes)]
    taught = teach(
        head, found.domain, examples.training, [labels.index(label) for label in wanted],
        held_out=examples.held_out, blank=labels.index(BLANK), progress=tell,
    )  # fmt: skip
    if given.output is not None:
        write_head(str(given.model), found.finding, head, taught.after, given.output)
    unseen = Material(material.held_out, words=given.words, copies=len(material.held_out), seed=2)
    dictionary = runner.printed_dictionary(unseen)
    measured = taught.held_out
    assert measured is not None
    record = {
        "misread": len(wanted),
        "taught": len(taught.classes),
        "left_out": [each.label for each in taught.left_out],
        "dictionary_read_before": share(head, dictionary),
        "dictionary_read_after": share(taught.after, dictionary),
        "ordinary_lines_changed": [measured.changed.count, measured.changed.total, measured.changed.bound],
        "others_taken": [measured.taken.count, measured.taken.total],
        "taken_by": [[each.label, each.taught, each.count] for each in measured.taken_by[:20]],
        "unargmaxable": [len(taught.result_before.unargmaxable), len(taught.result.unargmaxable)],
        "seconds": time.perf_counter() - started,
    }
    print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main()
