"""Values of docs/paper.md."""

from __future__ import annotations

from collections import Counter
from typing import Any

from experiments import real_models
from experiments.heads.settling import UNARGMAXABLE
from prose.models import _models, _share, affected, counted, in_tenth, model, untied, with_enough_classes
from prose.numbers import Claims
from prose.sources import benchmark, record, span

SURVEYED = (
    "Text recognition",
    "Pronunciation and diacritics",
    "Sound",
    "Files and images",
    "Chemical reactions",
    "Transliteration",
    "Speech recognition and translation",
    "Language models of proteins",
    "Language models",
)


def _lesson() -> Any:
    return record("docs/stories/ocr.json")["lesson"]


def _read() -> tuple[int, int]:
    read = _lesson()["read"]
    assert read["before"] == 0
    return read["after"], read["occurrences"]


def _percent_unargmaxable(name: str) -> tuple[int, int, float]:
    found = model(name)
    unargmaxable = found["outcomes"][UNARGMAXABLE]
    return unargmaxable, found["classes"], 100 * unargmaxable / found["classes"]


def abstract() -> list[float]:
    paper, (after, images) = real_models.PAPER.values(), _read()
    assert len(affected()) - len(untied()) == 2
    largest = max(100 * each["outcomes"][UNARGMAXABLE] / each["classes"] for each in affected())
    return [
        sum(some for some, _ in paper), sum(of for _, of in paper), len(_models()), len(affected()),
        len(untied()),
        largest, _lesson()["taught"], 100 * after / images,
    ]  # fmt: skip


def domain() -> list[float]:
    return [model("PP-OCRv4, Chinese")["outcomes"][UNARGMAXABLE], _lesson()["proven"]["unargmaxable_before"]]


def survey() -> list[float]:
    families = Counter(each["family"] for each in _models())
    assert families["Language models"] == families["Speech recognition and translation"] == 1
    assert sum(families.values()) == sum(families[name] for name in SURVEYED)
    assert model("Whisper base")["outcomes"][UNARGMAXABLE] == model("Whisper base")["tied"] == 2
    assert not any(each["outcomes"][UNARGMAXABLE + 1] for each in _models())
    smol, wide = model("SmolLM2-135M-Instruct, Q4_1"), untied()
    features = span([each["features"] for each in wide])
    return [
        *(families[name] for name in ("Text recognition", "Pronunciation and diacritics", "Sound")),
        families["Files and images"], families["Chemical reactions"], families["Transliteration"],
        families["Language models of proteins"], len(with_enough_classes()), len(_models()), len(affected()),
        4, smol["tied"], smol["classes"], len(wide), *features, features[1],
    ]  # fmt: skip


def sizes() -> list[float]:
    names = ("PP-OCRv5", "PP-OCRv6 small", "PP-OCRv3, Chinese")
    third, fourth, fifth = (model(f"PP-OCRv{name}") for name in ("3, Chinese", "4, Chinese", "5"))
    assert third["classes"] == fourth["classes"]
    assert 2.5 < fifth["classes"] / fourth["classes"] < 3
    return [
        *(value for name in names for value in _percent_unargmaxable(name)),
        third["features"], fourth["features"], _percent_unargmaxable("PP-OCRv4, Chinese")[2],
        fifth["features"], _percent_unargmaxable("PP-OCRv5")[2],
    ]  # fmt: skip


def victims() -> list[float]:
    newest = [model(name) for name in ("PP-OCRv5", "PP-OCRv6 small")]
    assert not any(in_tenth(each, 0) for each in counted())
    assert not any(each["categories"]["Han, common"][1] for each in newest)
    assert min(_share(each, "symbols") for each in newest) > 70
    assert all(30 < _share(each, "Han, beyond the standard") < 37 for each in newest)
    (common,) = {each["categories"]["Han, common"][0] for each in newest}
    return [
        len(counted()), *span([in_tenth(each, 9) for each in counted()]),
        *span([each["frequency"]["margin"]["correlation"] for each in counted()]), common, 70,
    ]  # fmt: skip


def complaints() -> list[float]:
    told = record("docs/stories/ocr.json")
    asked = {character for line in told["lines"] for character in line["characters"]}
    verdicts = {version: told["verdicts"][version] for version in ("PP-OCRv3", "PP-OCRv4")}
    never = [sum(each[character] == "unargmaxable" for character in asked) for each in verdicts.values()]
    missing = [c for c in asked if all(each[c] == "not in the dictionary" for each in verdicts.values())]
    assert len(missing) == 1
    others = [character for character in verdicts["PP-OCRv4"] if character not in asked]
    assert all(each[character] == "argmaxable" for each in verdicts.values() for character in others)
    return [len(asked), *never, len(others)]


def taught_v4() -> list[float]:
    lesson, (after, images) = _lesson(), _read()
    changed, taken = lesson["ordinary_changed"], lesson["others_taken"]
    return [
        lesson["taught"], after, images, changed["total"], changed["count"], taken["total"], taken["count"],
        lesson["proven"]["unargmaxable_before"], lesson["proven"]["unargmaxable"],
    ]  # fmt: skip


def taught_dictionary() -> list[float]:
    found = benchmark("teach_dictionary_ppocrv4")
    shares = [
        100 * found[name][0] / found[name][1] for name in ("dictionary_read_before", "dictionary_read_after")
    ]
    assert found["unargmaxable"][0] < found["taught"] / 2
    return [
        found["taught"],
        *shares,
        *found["ordinary_lines_changed"][:2],
        *found["others_taken"][:2],
        found["taught"],
    ]


def taught_v5() -> list[float]:
    found = benchmark("teach_dictionary_ppocrv5")
    before, after, images = found["taught_read"]
    changed, lines, _ = found["ordinary_lines_changed"]
    assert (before, changed) == (0, 2)
    return [found["taught"], after, images, lines, *found["others_taken"][:2], *found["unargmaxable"]]


PAPER: Claims = {
    "paper-abstract": abstract,
    "paper-domain": domain,
    "paper-survey": survey,
    "paper-sizes": sizes,
    "paper-victims": victims,
    "paper-complaints": complaints,
    "paper-taught-v4": taught_v4,
    "paper-taught-dictionary": taught_dictionary,
    "paper-taught-v5": taught_v5,
}
