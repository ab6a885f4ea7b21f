"""Choosing classes by their labels: by name, by script, or all but special tokens and padding.

Python's Unicode database has no script property, but a letter's name begins with its script ("CYRILLIC
SMALL LETTER A"). Compared with Unicode's Scripts.txt (the tests do) this differs only for characters
that Unicode leaves without a script and that are here what they stand for, e.g. µ and 𝐀.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.labels import visible

# The first words of names, in lower case, that are not themselves the script's name.
_SCRIPT_OF_WORD = {
    **{"cjk": "han", "ideographic": "han", "hentaigana": "hiragana", "ohm": "greek"},
    **{"turned": "latin", "roman": "latin", "canadian": "canadian-syllabics"},
}
# First words of letters and marks that any script may use: the long vowel mark of both kana, accents.
_SHARED = frozenset({"katakana-hiragana", "combining", "modifier", "variation", "vedic", "vertical"})
# Scripts of living languages that models write in.
# fmt: off
SCRIPTS = frozenset({
    "arabic", "armenian", "balinese", "bengali", "bopomofo", "canadian-syllabics", "cherokee",
    "cyrillic", "devanagari", "ethiopic", "georgian", "greek", "gujarati", "gurmukhi", "han",
    "hangul", "hebrew", "hiragana", "javanese", "kannada", "katakana", "khmer", "lao", "latin",
    "malayalam", "mongolian", "myanmar", "nko", "oriya", "sinhala", "sundanese", "syriac", "tamil",
    "telugu", "thaana", "thai", "tibetan", "tifinagh", "yi"
})
# fmt: on
# Rows without a token: beyond the last one of a vocabulary, or left out in its numbering.
_PADDING = re.compile(r"<(?:padding|unused) \d+>")
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
# Markup in angle brackets can be an ordinary token of a language model ("<div>", "<String>"), so names
# there are a list; an underscore, as in <extra_id_0> or <fim_prefix>, hardly occurs in such a token.
_SPECIAL = re.compile(
    r"""
      <[|｜] .+ [|｜]>                                           # <|endoftext|>, <｜begin▁of▁sentence｜>
    | <(?i:/?(?:s|unk|pad|blank|blk|mask|bos|eos|sos|cls|sep|go|eod|eop|eot|sop|null|eps|space))>
    | <[A-Za-z]+(?:_[A-Za-z0-9]+)+> | <(?:unused|special|reserved)[0-9]+>
    | \[ (?:[A-Z]{2,}[0-9]* | gMASK | sMASK | unused[0-9]+) \]   # [CLS], [unused1]
    | >>[A-Za-z_]+<< | __[a-z]{2,3}__                            # languages: Marian, M2M-100, NLLB
    | [a-z]{3}_(?:Arab|Armn|Beng|Cyrl|Deva|Ethi|Geor|Grek|Gujr|Guru|Hang|Hans|Hant|Hebr|Jpan|Khmr|Knda|Laoo
        |Latn|Mlym|Mymr|Olck|Orya|Sinh|Taml|Telu|Tfng|Thai|Tibt)
    | madeupword[0-9]{4}                                         # fairseq's padding
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Selection:
    """Which classes to ask about: those that every given wish allows, all without any.

    `only` lists class numbers and `tokens` labels; `script` takes words in a script such as "latin".
    """

    only: tuple[int, ...] | None = None
    tokens: tuple[str, ...] = ()
    script: str | None = None
    skip_special: bool = False
    skip_padding: bool = False

    def of(self, head: Head, special: Collection[int] = frozenset()) -> list[int] | None:
        """The chosen classes of a head, None for all; `special` are those that its files declare to be.

        Raises InputError when labels are needed and the head has none, or no class is left.
        """
        listed = None if self.only is None else list(self.only)
        if not (self.tokens or self.script or self.skip_special or self.skip_padding):
            return listed
        if head.labels is None:
            raise InputError(
                "choosing classes by label needs labels, and the model has none. Pass --labels FILE."
            )
        left = set(range(head.classes)) if listed is None else set(listed)
        if self.tokens:
            left &= set(classes_named(head.labels, self.tokens))
        if self.script:
            left &= set(classes_in_script(head.labels, self.script, special))
        if self.skip_special:
            left -= set(special_classes(head.labels, special))
        if self.skip_padding:
            left -= set(padding_classes(head.labels))
        if not left:
            raise InputError("no class is selected: relax --only, --tokens, --script or --skip-….")
        return sorted(left)


def is_padding(label: str) -> bool:
    """Whether the label stands for a row without a token."""
    return _PADDING.fullmatch(label) is not None


def is_special(label: str) -> bool:
    """Whether the label is a mark of the model rather than text: <s>, [CLS], <|endoftext|>, <unk>, …

    Judged by its form, for want of a declaration. Byte tokens (<0x0A>) are text in the making and not
    special; padding is neither.
    """
    token = label.strip(" ")  # SentencePiece models may write "▁<extra_id_0>"
    return not is_padding(token) and not _BYTE.fullmatch(token) and _SPECIAL.fullmatch(token) is not None


def special_classes(labels: Sequence[str], declared: Collection[int] = frozenset()) -> list[int]:
    """The classes that the model's files declare special, and others whose labels look it, in order."""
    return [number for number, label in enumerate(labels) if number in declared or is_special(label)]


def padding_classes(labels: Sequence[str]) -> list[int]:
    """The classes without a token, in order."""
    return [number for number, label in enumerate(labels) if is_padding(label)]


def classes_in_script(
    labels: Sequence[str], script: str, declared: Collection[int] = frozenset()
) -> list[int]:
    """The classes whose labels are words in a script: at least one letter, and every letter of that script.

    Digits, punctuation and marks shared by scripts don't count; special tokens, `declared` or by their looks,
    and padding are no words.
    Raises InputError for a script that is not in SCRIPTS.
    """
    wanted = script.lower()
    if wanted not in SCRIPTS:
        raise InputError(f"script {script!r} is not known; expected one of {', '.join(sorted(SCRIPTS))}.")
    return [
        number
        for number, label in enumerate(labels)
        if number not in declared and scripts_of(label) == {wanted}
    ]


def scripts_of(label: str) -> set[str]:
    """The scripts of the letters in a label; none for special tokens, padding and byte tokens."""
    if is_padding(label) or is_special(label):
        return set()
    return {script for char in _BYTE.sub("", label) if (script := _script(char))}


def classes_by_name(labels: Sequence[str]) -> dict[str, list[int]]:
    """The classes of each label, also as it is printed (escaped, quoted)."""
    found: dict[str, list[int]] = {}
    for number, label in enumerate(labels):
        for name in {label, visible(label)}:
            found.setdefault(name, []).append(number)
    return found


def classes_named(labels: Sequence[str], tokens: Iterable[str]) -> list[int]:
    """The classes with these labels, in order; raises InputError for a token that is none.

    A token may be written as the label itself or as it is printed (escaped, quoted). One that is no
    label stands for the labels that equal it up to outer spaces: "the" for " the".
    """
    exact = classes_by_name(labels)
    loose: dict[str, list[int]] = {}
    for number, label in enumerate(labels):
        loose.setdefault(label.strip(" "), []).append(number)
    found: set[int] = set()
    for token in tokens:
        numbers = exact.get(token) or loose.get(token.strip(" "))
        if not numbers:
            raise InputError(
                f"no class has the label {token!r} ({len(labels):,} labels). Check its spelling."
            )
        found.update(numbers)
    return sorted(found)


@lru_cache(maxsize=2**16)
def _script(char: str) -> str | None:
    """The script of a letter or mark; None for other characters and for those that scripts share."""
    # Compatibility forms count as what they stand for: full width, superscripts, mathematical letters.
    for part in unicodedata.normalize("NFKD", char):
        word = unicodedata.name(part, "unnamed").partition(" ")[0].lower()
        if unicodedata.category(part)[0] in "LM" and word not in _SHARED:
            return _SCRIPT_OF_WORD.get(word, word)
    return None
