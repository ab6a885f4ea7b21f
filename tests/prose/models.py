"""Values of docs/results.md: what its sections on trained models and on sets say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from experiments import (
    activation_ranges,
    real_models,
    set_dimensions,
    stolen_probability,
)
from experiments.harness.cells import Scale
from experiments.heads.settling import OUTCOMES, UNARGMAXABLE
from prose.numbers import Claims
from prose.sources import cells, found, quoted, record, setting, significant, span

GRIVAS = "Grivas, Bogoychev & Lopez 2022"

# ---------------------------------------------------------------------- real models


def _models() -> list[Mapping[str, Any]]:
    return [{"name": cell.settings["name"], **cell.found} for cell in cells("real_models")]


def model(name: str) -> Mapping[str, Any]:
    """What the experiment on real models found of one of them."""
    (one,) = [each for each in _models() if each["name"] == name]
    return one


def affected() -> list[Mapping[str, Any]]:
    """Models with unargmaxable classes."""
    return [each for each in _models() if each["outcomes"][UNARGMAXABLE]]


def with_enough_classes() -> list[Mapping[str, Any]]:
    """The models whose rows can have an unargmaxable class in general position."""
    return [each for each in _models() if each["classes"] >= each["features"] + 2]


def untied() -> list[Mapping[str, Any]]:
    """Models with classes that are unargmaxable other than by a tie: text recognisers."""
    found = [each for each in affected() if each["outcomes"][UNARGMAXABLE] > each["tied"]]
    assert {each["family"] for each in found} == {"Text recognition"}
    return found


def counted() -> list[Mapping[str, Any]]:
    """Text recognisers with counts of their characters."""
    return [
        each
        for each in affected()
        if each.get("frequency") and "margin" in each["frequency"] and each["family"] == "Text recognition"
    ]


def in_tenth(model: Mapping[str, Any], tenth: int) -> float:
    """Percent of the classes in a tenth by frequency that are unargmaxable."""
    outcomes = model["frequency"]["tenths"][tenth]
    return 100 * outcomes[UNARGMAXABLE] / sum(outcomes)


def _share(model: Mapping[str, Any], category: str) -> float:
    total, unargmaxable = model["categories"][category]
    return 100 * unargmaxable / total


_SMOL = "SmolLM2-135M-Instruct, Q4_1"
_OLD = [f"PP-OCR{version}, Chinese" for version in ("v2", "v3", "v4")]


def models_made() -> list[float]:
    return [
        setting("real_models", "patience"), *quoted(2500, source=GRIVAS),
        max(cell.settings["margins"] for cell in cells("real_models")),
    ]  # fmt: skip


def models_exits() -> list[float]:
    totals = [sum(counts) for counts in zip(*(each["outcomes"] for each in _models()), strict=True)]
    assert totals.pop() == 0  # undecided
    return [len(_models()), sum(totals), *totals]


def models_vocabulary() -> list[float]:
    return [len(affected())]


def models_frequency() -> list[float]:
    drawn = [each for each in affected() if each.get("frequency")]
    return [len(drawn), *span([in_tenth(each, 9) for each in counted()]), len(counted())]


def models_agree() -> list[float]:
    assert not any(in_tenth(each, 0) for each in counted())
    newest = [model(name) for name in ("PP-OCRv5", "PP-OCRv6 tiny", "PP-OCRv6 small")]
    assert not any(each["categories"]["Han, common"][1] for each in newest)
    common = {significant(each["categories"]["Han, common"][0], 3) for each in newest}
    smol = model(_SMOL)
    assert smol["tied"] == smol["outcomes"][UNARGMAXABLE]
    assert min(_share(model(name), "symbols") for name in ("PP-OCRv5", "PP-OCRv6 small")) > 70
    return [
        len(counted()), *span([in_tenth(each, 9) for each in counted()]),
        *span([each["frequency"]["margin"]["correlation"] for each in counted()]),
        *reversed(span([each["frequency"]["steps"] for each in counted()])),
        *common, max(each["categories"]["Han, less common"][1] for each in newest), 70,
        smol["mean_steps"], *quoted(1.2, source=f"{GRIVAS}, section 5.1"), smol["frequency"]["steps"],
        smol["outcomes"][UNARGMAXABLE], smol["classes"],
    ]  # fmt: skip


def models_differ() -> list[float]:
    paper = real_models.PAPER
    wide = untied()
    old = [model(name) for name in _OLD]
    largest = max(100 * each["outcomes"][UNARGMAXABLE] / each["classes"] for each in affected())
    enough = with_enough_classes()
    assert all(each in enough for each in affected())
    recognisers = cells("real_models")
    names = [cell.settings["name"] for cell in recognisers if cell.found["family"] == "Text recognition"]
    return [
        len(affected()), len(_models()), sum(some for some, _ in paper.values()),
        sum(of for _, of in paper.values()), len(enough), len(_models()),
        sum(name.startswith("PP-OCR") for name in names), len(names),
        len(wide), len(affected()), *span([each["features"] for each in wide]), *quoted(256, source=GRIVAS),
        max(each["features"] for each in wide), largest,
        *(_share(each, "Han, less common") for each in old),
        *(_share(each, "Han, beyond the standard") for each in old),
    ]  # fmt: skip


def models_families() -> list[float]:
    families = Counter(each["family"] for each in _models())
    nko = [model(name) for name in activation_ranges.NKO]
    assert not any(each["outcomes"][UNARGMAXABLE] for each in nko)
    speech = model("Whisper base")
    assert speech["outcomes"][UNARGMAXABLE] == speech["tied"] == 2
    (tokens,), (features,) = ({each[key] for each in nko} for key in ("classes", "features"))
    return [
        families["Language models of proteins"], families["Transliteration"], speech["classes"], tokens,
        features, *(each["outcomes"][OUTCOMES.index("solved")] for each in nko),
        setting("real_models", "patience"),
    ]  # fmt: skip


# ---------------------------------------------------------------------- activation ranges


def _reach(pair: Sequence[float]) -> float:
    return max(abs(end) for end in pair)


def ranges_made() -> list[float]:
    bits = 32  # transformers unpacks into float32
    return [
        bits,
        setting("activation_ranges", "size", over="text"),
        setting("activation_ranges", "size", over="pairs"),
    ]


def ranges_agree() -> list[float]:
    paper = activation_ranges.PAPER
    reach = [_reach(pair) for pair in found("activation_ranges", "overall")]
    tokens = [_reach(pair) for pair in found("activation_ranges", "token_range")]
    assert max(tokens) < paper["tokens"]
    right = [100 * share for share in found("activation_ranges", "right", over="pairs")]
    assert {round(share) for share in right} == {96}
    return [
        max(reach), *quoted(paper["percent"], source=f"{GRIVAS}, Appendix F"), max(tokens),
        *(_reach(pair) for pair in found("activation_ranges", "overall", over="pairs")), 96,
    ]  # fmt: skip


# ---------------------------------------------------------------------- seeds and sizes


def _kind(role: str, features: int) -> list[Mapping[str, Any]]:
    return [
        model
        for cell in cells("seeds_and_sizes")
        for model in cell.found["models"]
        if (model["role"], model["features"]) == (role, features)
    ]


def _key(models: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [model[key] for model in models]


def _unargmaxable_of(models: Sequence[Mapping[str, Any]]) -> list[float]:
    return [model["outcomes"][UNARGMAXABLE] for model in models]


def seeds_made() -> list[float]:
    tokens = found("language_models", "tokens")[0]
    assert (
        record("experiments/results/language_models.json")["text"]
        == record("experiments/results/seeds_and_sizes.json")["text"]
    )
    return [
        setting("seeds_and_sizes", "vocabulary"), significant(tokens, 2),
        setting("seeds_and_sizes", "patience"),
    ]  # fmt: skip


def seeds_figure() -> list[float]:
    middle = [*_kind("student", 32), *_kind("on the text", 32)]
    narrow = [*_kind("student", 16), *_kind("on the text", 16)]
    teachers = _kind("teacher", 64)
    assert min(_key(narrow, "mean_steps")) > 100
    assert not any(_unargmaxable_of(teachers))
    return [
        100,
        *span(_key(middle, "mean_steps")),
        max(_unargmaxable_of(middle)),
        *span(_key(teachers, "mean_steps")),
    ]


def seeds_agree() -> list[float]:
    trained = _kind("on the text", 16)
    return [*_key(trained, "mean_steps"), *_unargmaxable_of(trained)]


def seeds_differ() -> list[float]:
    pairs = [
        pair
        for features in (16, 32)
        for pair in zip(_kind("student", features), _kind("on the text", features), strict=True)
    ]
    assert sum(a["outcomes"][UNARGMAXABLE] > b["outcomes"][UNARGMAXABLE] for a, b in pairs) == 3
    assert sum(a["outcomes"][UNARGMAXABLE] < b["outcomes"][UNARGMAXABLE] for a, b in pairs) == 1
    return [
        *quoted(366, 8, 3, source=f"{GRIVAS}, section 4.2"),
        sum(student["mean_steps"] > plain["mean_steps"] for student, plain in pairs),
        *quoted(256, source=GRIVAS),
    ]  # fmt: skip


# ---------------------------------------------------------------------- stolen probability


def _stolen(question: str, features: int, key: str = "unargmaxable") -> list[float]:
    return [each[key] for each in found("stolen_probability", question, features=features)]


def _tenth(question: str, features: int, tenth: int) -> float:
    return 100 * fmean(
        each["tenths"][tenth] for each in found("stolen_probability", question, features=features)
    )


def stolen_made() -> list[float]:
    return [setting("stolen_probability", "vocabulary")]


def stolen_agrees() -> list[float]:
    words = setting("stolen_probability", "vocabulary")
    assert not any(count for features in (32, 48, 64) for count in _stolen("weights", features))
    expected = [
        found("stolen_probability", "normal_expected", features=features)[0] for features in (8, 16, 24)
    ]
    uniform = [fmean(_stolen("uniform", features)) for features in (8, 16, 24)]
    assert uniform[2] == 0
    return [
        fmean(_stolen("weights", 8)), words, fmean(_stolen("weights", 16)), fmean(_stolen("weights", 24)),
        *uniform[:2], 16, 24, *expected, _tenth("weights", 16, 0), _tenth("weights", 16, 9),
        *(100 * share for share in span(_stolen("weights", 16, "share_of_text"))),
    ]  # fmt: skip


def stolen_asks() -> list[float]:
    assert min(_stolen("reachable", 16)) > 900
    linear = [
        len(each["reachable"]["words"]) for each in found("language_models", "unargmaxable", head="linear")
    ]
    long = {"part": "small", "head": "linear"}
    assert not any(
        each["reachable"]["words"] for each in found("long/language_models", "unargmaxable", **long)
    )
    return [
        900, setting("stolen_probability", "vocabulary"), *span(_stolen("reachable", 64)),
        *(100 * share for share in span(_stolen("reachable", 64, "share_of_text"))),
        setting("language_models", "schedule")["epochs"], *span(linear), fmean(_stolen("reachable", 32)),
        setting("long/language_models", "schedule", **long)["epochs"],
    ]  # fmt: skip


def stolen_cut() -> list[float]:
    larger = {cell["vocabulary"] for cell in stolen_probability.cells(Scale.PAPER)}
    return [setting("stolen_probability", "vocabulary"), *larger]


# ---------------------------------------------------------------------- dimensions for sets


def _infeasible(size: int, features: int, rows: str = "normal") -> int:
    (count,) = found("set_dimensions", "infeasible", size=size, features=features, rows=rows)
    return int(count)


def _enough(size: int, most: int = 0) -> int:
    """The least number of features at which at most so many of the sets are infeasible."""
    return next(f for f in set_dimensions.FEATURES if _infeasible(size, f) <= most)


def sets_figure() -> list[float]:
    assert not _infeasible(2, 4, "curve")
    assert not _infeasible(5, 10, "curve")
    return [
        _enough(2), 5, _enough(5), _infeasible(10, 64), setting("set_dimensions", "asked"), 10,
        max(set_dimensions.FEATURES), 4, 10, 5,
    ]  # fmt: skip


def sets_show() -> list[float]:
    items, asked = setting("set_dimensions", "items"), setting("set_dimensions", "asked")
    assert not any(found("set_dimensions", "undecided"))
    enough = next(f for f in range(1, 200) if set_dimensions.items_of_weller(f) >= items)
    return [
        items, asked, _enough(2, 0), 5, _enough(5, 0), 10, enough, items, asked,
    ]  # fmt: skip


MODELS: Claims = {
    "models": models_made,
    "models-exits": models_exits,
    "models-vocabulary": models_vocabulary,
    "models-frequency": models_frequency,
    "models-agree": models_agree,
    "models-differ": models_differ,
    "models-families": models_families,
    "ranges": ranges_made,
    "ranges-agree": ranges_agree,
    "seeds": seeds_made,
    "seeds-figure": seeds_figure,
    "seeds-agree": seeds_agree,
    "seeds-differ": seeds_differ,
    "stolen": stolen_made,
    "stolen-agrees": stolen_agrees,
    "stolen-asks": stolen_asks,
    "stolen-cut": stolen_cut,
    "sets-figure": sets_figure,
    "sets-show": sets_show,
}
