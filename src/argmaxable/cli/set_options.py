"""The options of `sets` that say which sets of labels are meant, and what it means that they come out."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.label_sets import SetKind, SetTest, logits_of

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.questions.sets.files import SetFile

_DEFAULT_COUNT = 1000
# More pairs than this are better sampled.
_MOST_PAIRS = 50_000_000


@dataclass(frozen=True)
class SetOptions(OptionGroup):
    """Which sets to ask about, and what it means that they come out."""

    random: Annotated[
        int | None, Option(metavar="K", help="Ask about random sets of K labels instead of a file.")
    ] = None
    count: Annotated[int, Option(metavar="N", help="How many sets --random or --active tries.")] = (
        _DEFAULT_COUNT
    )
    seed: Annotated[int, Option(help="Random seed for --random and --active.")] = 0
    all_pairs: Annotated[
        bool, Option("--all-pairs", help="Ask about every set of two labels instead of a file.")
    ] = False
    active: Annotated[
        int | None,
        Option(metavar="K", help="Ask whether every set of at most K labels can be predicted."),
    ] = None
    kind: Annotated[
        SetKind,
        Option(
            help="exactly: these labels above their thresholds, all others below; top: these labels above "
            "all others; at-least: these labels above their thresholds."
        ),
    ] = SetKind.EXACTLY
    threshold: Annotated[
        str | None,
        Option(
            metavar="NUMBER|FILE", help="Logit threshold (default 0), or an .npy file with one per label."
        ),
    ] = None
    probability: Annotated[
        str | None,
        Option(metavar="NUMBER|FILE", help="Threshold as a probability; 0.5 is a logit of 0."),
    ] = None

    def require_one_question(self, file: Path | None) -> None:
        """Raise InputError unless the sets are given in exactly one way."""
        ways = {
            "a FILE": file is not None,
            "--random": self.random is not None,
            "--all-pairs": self.all_pairs,
            "--active": self.active is not None,
        }
        given = [name for name, is_given in ways.items() if is_given]
        if len(given) != 1:
            found = " and ".join(given) if given else "none of them"
            raise InputError(f"name the sets in exactly one way, found {found}: {', '.join(ways)}.")
        if self.count < 1 or self.seed < 0:
            raise InputError("--count must be 1 or more, and --seed 0 or more.")

    def test(self) -> SetTest:
        """The question; raises InputError."""
        return SetTest(self.kind, self._thresholds())

    def _thresholds(self) -> Vector:
        if self.threshold is not None and self.probability is not None:
            raise InputError("pass --threshold or --probability, not both.")
        if self.probability is not None:
            return logits_of(_numbers("--probability", self.probability))
        return np.asarray(0.0 if self.threshold is None else _numbers("--threshold", self.threshold))

    def chosen(self, file: Path | None, head: Head) -> SetFile:
        """The sets asked about, unless it is about every set."""
        from argmaxable.questions.sets.files import SetFile, read_sets
        from argmaxable.questions.sets.sets import all_pairs

        if file is not None:
            return read_sets(file, head)
        if self.all_pairs:
            if head.classes * (head.classes - 1) // 2 > _MOST_PAIRS:
                raise InputError(f"{head.classes:,} labels have too many pairs. Use --random 2 --count N.")
            return SetFile.of((pair, 1) for pair in all_pairs(head.classes))
        assert self.random is not None
        if not 0 <= self.random <= head.classes:
            raise InputError(f"--random {self.random}: the model has {head.classes:,} labels.")
        found = SetFile.of(
            (members, 1) for members in _random_sets(head.classes, self.random, self.count, self.seed)
        )
        return SetFile(found.sets, (1,) * len(found.sets))


def _random_sets(labels: int, size: int, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    generator = np.random.default_rng(seed)
    return (
        tuple(sorted(generator.choice(labels, size, replace=False, shuffle=False).tolist()))
        for _ in range(count)
    )


def _numbers(option: str, text: str) -> Vector:
    try:
        return np.asarray(float(text))
    except ValueError:
        pass
    try:
        with Path(text).open("rb") as file:
            stored = np.load(file, allow_pickle=False)
        if not isinstance(stored, np.ndarray) or stored.dtype.kind not in "biuf":
            raise ValueError("it holds values that are not real numbers")
        return np.asarray(stored, np.float64)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{option} {text}: neither a number nor an .npy file of numbers ({error})."
        ) from error
