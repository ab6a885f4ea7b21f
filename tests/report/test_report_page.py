"""What a page is made of: its words, groups, columns and charts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from keeping import LABELS, keep, keep_some, lossy
from subjects import HOSTILE, can, never, read, small, subject, verdict, vocabulary

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.report.page.charts import histogram
from argmaxable.report.page.columns import columns
from argmaxable.report.page.content import content_of
from argmaxable.report.page.groups import LabelKind, kinds_of
from argmaxable.report.page.html import page
from argmaxable.report.page.pictures import margin_charts, steps_chart, weight_charts
from argmaxable.report.page.subject import Subject, require_same_head, subject_of_bundle, subject_of_result
from argmaxable.report.page.weights import weights_of
from argmaxable.report.page.wording import CHARACTERS, CLASSES, METHODS, TOKENS, noun_for

# ---------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("labels", "noun"),
    [
        (["<blank>", *"的一是不了人我在有他这为之大来以个中上们"], CHARACTERS),
        (["é", "e\u0301", "✌\ufe0f"], CHARACTERS),
        (["<s>", " the", "ing", " of"], TOKENS),
        (["[CLS]", "##ing", "word"], TOKENS),
        (["tench, Tinca tinca", "goldfish"], CLASSES),
        (["0", "1", "2"], CLASSES),
        ([], CLASSES),
    ],
)
def test_classes_are_called_what_they_are(labels: list[str], noun: object) -> None:
    assert noun_for(labels) is noun


def test_the_answer_names_the_unargmaxable() -> None:
    found = content_of(subject(can(0, "的"), never(1, "刈"), can(2, "一")))
    assert found.answer == "1 of 3 classes can never be predicted for features within ±100."


def test_the_answer_when_none_is_unargmaxable() -> None:
    found = content_of(subject(can(0, "x y"), can(1, "z w")))
    assert found.answer == "All 2 classes can be predicted for features within ±100."


def test_the_answer_says_what_is_undecided() -> None:
    found = content_of(subject(can(0, "x y"), verdict(1, "z w", am.Status.UNDECIDED, reason="time")))
    assert found.answer == "1 of 2 classes can be predicted for features within ±100; 1 is undecided."


def test_the_answer_of_a_run_that_was_stopped_counts_what_is_missing(database: Path) -> None:
    found = content_of(read(database, keep_some(database, lossy(), (0, 4))))
    assert found.answer == (
        "Not finished: 4 of 6 classes are undecided. The other 2 can never be predicted for features "
        "within ±100."
    )


def test_the_answer_about_some_classes_says_so(database: Path) -> None:
    found = content_of(read(database, keep(database, lossy(), only=(1, 4))))
    assert found.answer == "1 of 2 classes examined can never be predicted for features within ±100."


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (am.Box(-100.0, 100.0), "any value from −100 to 100"),
        (am.Box(-0.25, math.inf), "any value from −0.25 upwards"),
        (am.Box(-math.inf, 6.0), "any value up to 6"),
        (am.Box([0.0, 1.0], [1.0, 2.0]), "its own range"),
        (am.Everywhere(), "any feature vector, however large"),
        (am.Ball(2.0), "length at most 2"),
        (am.RMSNorm(1.0), "come from a RMSNorm layer"),
        (am.LayerNorm(1.0), "come from a LayerNorm layer"),
    ],
)
def test_a_domain_is_explained(domain: am.Domain, words: str) -> None:
    assert words in domain.in_words()


def test_every_method_is_explained() -> None:
    assert METHODS.keys() == set(am.Method)


# ---------------------------------------------------------------------- who is unargmaxable


def test_kinds_are_told_apart_by_label() -> None:
    labels = ["的", "ing", "<s>", "<padding 4>"]
    found = kinds_of([can(k, label) for k, label in enumerate(labels)])
    assert found == [LabelKind.CHARACTER, LabelKind.PIECE, LabelKind.SPECIAL, LabelKind.PADDING]


def test_classes_named_by_their_number_have_no_kind_to_tell() -> None:
    found = content_of(subject(can(0, "0"), never(1, "1")))
    assert found.kinds == ()
    assert found.scripts == ()


def test_groups_count_their_losses() -> None:
    found = content_of(subject(can(0, "а"), never(1, "б"), never(2, "x"), can(3, "<s>"), can(4, "7")))
    assert [(group.name, group.total, group.unargmaxable) for group in found.scripts] == [
        ("cyrillic", 2, 1),
        ("latin", 1, 1),
        ("no letters", 1, 0),
    ]


def test_few_of_very_many_are_not_nobody() -> None:
    found = content_of(subject(never(0, "ab"), *(can(k, f"w{k}") for k in range(1, 2000))))
    assert found.kinds[0].percent == "< 0.1 %"


# ---------------------------------------------------------------------- columns


def test_bounds_are_rounded_to_the_weak_side() -> None:
    found = columns([can(0, "a", 0.12399), never(1, "b", lower=-1.2345, upper=-0.98765)])
    assert found["lower"] == [0.123, -1.24]
    assert found["detailed"]["upper"] == [-0.987]


def test_bounds_that_say_nothing_are_missing() -> None:
    found = columns([verdict(0, "a", am.Status.UNDECIDED)])
    assert found["lower"] == [None]
    assert found["detailed"]["upper"] == [None]


def test_a_character_has_its_code_point_and_name() -> None:
    found = columns([never(0, "刈"), never(1, "\u200b"), never(2, "ab")])
    assert found["detailed"]["name"] == [
        "U+5208 CJK UNIFIED IDEOGRAPH-5208",
        "U+200B ZERO WIDTH SPACE",
        "",
    ]


def test_a_class_that_has_only_a_number_has_no_code_point() -> None:
    assert columns([can(0, "0"), never(1, "1")])["detailed"]["name"] == [""]


def test_a_proof_lists_its_heaviest_classes_by_share() -> None:
    mixture = am.Certificate(np.arange(20), np.arange(20.0))
    found = columns([never(20, "a", mixture)])["proofs"]
    assert found[0][0] == 19
    assert found[0][1][:3] == [19, 18, 17]
    assert found[0][2][0] == 100


def test_a_shared_proof_is_told_once() -> None:
    mixture = am.Certificate(np.arange(2), np.ones(2))
    found = columns([never(k, "a", mixture) for k in (2, 3)])
    assert len(found["proofs"]) == 1
    assert found["detailed"]["proof"] == [0, 0]


def test_invisible_characters_of_labels_are_written_out() -> None:
    assert columns([can(0, HOSTILE[5])])["labels"] == [r"\u{202e}\u{1b}[31m\u{d800}"]


def test_a_label_that_would_fill_the_page_is_cut_short() -> None:
    assert len(columns([can(0, "x" * 5000)])["labels"][0]) == 161


def test_more_scripts_than_letters_still_fit() -> None:
    from argmaxable.report.page.columns import _coded

    found = _coded([f"script {k}" for k in range(60)])
    assert len(found["names"]) == 52
    assert found["of"].endswith("yz9")


def test_published_classes_without_a_number_have_none() -> None:
    found = columns([verdict(2**62, "a", am.Status.ARGMAXABLE), verdict(3, "b", am.Status.ARGMAXABLE)])
    assert found["classes"] == [None, 3]


# ---------------------------------------------------------------------- charts


def test_a_histogram_has_every_value_in_a_bar() -> None:
    sizes = np.exp(np.random.default_rng(1).normal(0, 3, 1000))
    chart = histogram(sizes, title="", x_title="", noun="tokens", role="can")
    counts = [int(bar.title.split(" ")[0].replace(",", "")) for bar in chart.bars]
    assert sum(counts) == 1000


def test_margins_below_zero_run_towards_zero_from_left_to_right() -> None:
    chart = margin_charts([never(1, "a", upper=-10.0), never(2, "b", upper=-0.01)], CLASSES)[0]
    texts = [tick.text for tick in sorted(chart.x_ticks, key=lambda tick: tick.at)]
    assert texts == ["−10", "−1", "−0.1", "−0.01"]


@pytest.mark.parametrize("margin", [0.0, math.inf])
def test_a_margin_without_a_place_on_the_axis_is_left_out(margin: float) -> None:
    assert margin_charts([can(0, "a", margin)], CLASSES) == []


@pytest.mark.parametrize("margin", [1e-300, 5e-324, 1e-12, 1.0, 1e300])
def test_any_margin_makes_a_page(margin: float) -> None:
    assert "NaN" not in page(content_of(subject(can(0, "a", margin), never(1, "b", upper=-margin))))


def test_classes_that_took_no_step_make_no_chart() -> None:
    assert steps_chart([can(0, "a")], CLASSES) is None


def test_steps_are_drawn_by_status_and_unargmaxable_classes_marked() -> None:
    verdicts = [can(0, "a", steps=3), never(1, "b", steps=9), never(2, "c"), can(3, "d", steps=1)]
    chart = steps_chart(verdicts, CLASSES)
    assert chart is not None
    assert [(layer.role, layer.form) for layer in chart.layers] == [
        ("can", "dots"),
        ("never", "dots"),
        ("never", "rug"),
    ]
    assert chart.layers[2].path.count("M") == 2


def test_steps_of_a_class_or_two_are_not_drawn() -> None:
    assert steps_chart([can(0, "a", steps=3), never(1, "b", steps=1), can(2, "c")], CLASSES) is None


def test_weights_are_drawn_when_given(database: Path) -> None:
    found = small(database)
    charts = weight_charts(found.verdicts, weights_of(lossy()), CLASSES)
    assert [chart.title for chart in charts] == [
        "Norm of a class's weights, and its margin",
        "Spectrum of the weights",
    ]


def test_norms_and_spectrum_are_those_of_the_weights() -> None:
    weight = np.random.default_rng(2).normal(size=(9000, 5))
    found = weights_of(am.Head(weight))
    np.testing.assert_allclose(found.norms, np.linalg.norm(weight, axis=1))
    np.testing.assert_allclose(found.spectrum, np.linalg.svd(weight, compute_uv=False))


def test_singular_values_below_rounding_are_left_out() -> None:
    weight = np.random.default_rng(3).normal(size=(50, 2)) @ np.ones((2, 4))
    assert len(weights_of(am.Head(weight)).spectrum) == 1


# ---------------------------------------------------------------------- pages


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    record = json.loads(found[1])
    assert isinstance(record, dict)
    return record


def test_hostile_labels_leave_no_markup_behind(database: Path) -> None:
    text = page(content_of(small(database, labels=HOSTILE, name=HOSTILE[1])))
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "<!--" not in text
    assert data_of(text)["labels"][0] == HOSTILE[0]  # type: ignore[index]


def test_a_page_loads_nothing(database: Path) -> None:
    text = page(content_of(small(database)))
    assert "://" not in text
    assert "default-src &#39;none&#39;" in text
    assert "unsafe" not in text
    assert re.search(r"""<[^>]*\s(src|style|on\w+)=""", text) is None


def test_without_weights_a_page_says_how_to_get_their_charts(database: Path) -> None:
    found = content_of(small(database))
    assert "--model MODEL" in page(found)
    assert "--model MODEL" not in page(found, weights_of(lossy()))


def test_a_page_of_49152_classes_is_below_a_megabyte_and_a_half() -> None:
    assert len(page(content_of(vocabulary())).encode()) < 1_500_000


@pytest.mark.parametrize(
    "found",
    [
        subject(
            can(
                0,
                "only",
                math.inf,
            )
        ),
        subject(verdict(0, "a", am.Status.UNDECIDED, reason="out of time <b>"), is_complete=False, wanted=3),
        subject(is_complete=False, wanted=3),
        subject(verdict(2**62, "a", am.Status.UNARGMAXABLE), has_evidence=False, cost=None, recheck=()),
    ],
    ids=["one class", "undecided", "nothing yet", "published"],
)
def test_odd_runs_make_a_page(found: Subject) -> None:
    assert content_of(found).answer in page(content_of(found))


# ---------------------------------------------------------------------- bundles


def test_a_bundle_tells_what_its_run_tells(database: Path, tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), am.Box(-100, 100), engine=am.Engine(workers=1)), tmp_path)
    bundle, run = (content_of(found) for found in (subject_of_bundle(tmp_path), small(database)))
    assert bundle.answer == run.answer
    assert bundle.kinds == run.kinds
    # A bundle does not say how far off classes are: they come in class order.
    assert [verdict.label for verdict in bundle.unargmaxable] == sorted(
        (verdict.label for verdict in run.unargmaxable), key=LABELS.index
    )
    assert bundle.tied
    assert "argmaxable check" in page(bundle)


@pytest.mark.parametrize(("field", "value"), [("label", 3), ("method", "magic"), ("reason", ["x"])])
def test_a_bundle_with_odd_text_is_refused(tmp_path: Path, field: str, value: object) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path)
    path = tmp_path / "verdicts.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[2][field] = value
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(am.BundleError, match="line 3"):
        subject_of_bundle(tmp_path)


def test_a_bundle_that_does_not_say_how_large_the_head_is_is_refused(tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    manifest["head"]["classes"] = "six"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(am.BundleError, match="size of the head"):
        subject_of_bundle(tmp_path)


def test_a_bundle_that_speaks_of_a_class_beyond_the_head_is_refused(tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    manifest["head"]["classes"] = 5
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(am.BundleError, match="class 5"):
        subject_of_bundle(tmp_path)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [math.nan, 1.0], [-1.0, 1.5], [1e308, 1e308]])
def test_a_bundle_with_odd_weights_names_no_blocker(weights: list[float]) -> None:
    found = columns([never(2, "a", am.Certificate(np.arange(2), np.array(weights)))])
    assert found["proofs"][0][1] == []


def test_weights_of_another_head_are_refused(database: Path) -> None:
    with pytest.raises(InputError, match="holds another head"):
        require_same_head(small(database), am.Head(np.eye(6)), "model.onnx")


# ---------------------------------------------------------------------- results


def test_a_result_tells_what_its_run_tells(database: Path) -> None:
    result = am.verify(lossy(), am.Box(-100, 100), engine=am.Engine(workers=1))
    told, kept = (content_of(found) for found in (subject_of_result(result), small(database)))
    assert told.answer == kept.answer
    assert told.ways[0].counts == kept.ways[0].counts
    assert "$ argmaxable check proofs lossy.npz" in page(told, weights_of(result.head))
