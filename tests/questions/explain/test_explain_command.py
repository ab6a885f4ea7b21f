"""argmaxable explain: what it prints, and what it says to those who ask for the wrong thing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from running import Command, is_one_clear_line

LABELS = ["north", "south", "east", "west", "middle", "7", "middle"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weight = [[0, 1], [0, -1], [1, 0], [-1, 0], [0.1, 0.1], [0.9, 0.9], [0.1, 0.1]]
    np.savez(tmp_path / "head.npz", W=np.array(weight, np.float32), b=np.zeros(7, np.float32))
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n", encoding="utf-8")
    return tmp_path / "head.npz"


@pytest.fixture
def explain(command: Command, model: Path) -> Command:
    return lambda *arguments: command("explain", model, *arguments, "--labels", model.parent / "labels.txt")


def test_an_unargmaxable_class_is_explained_in_words(explain: Command) -> None:
    ran = explain("4")
    assert ran.code == 1
    assert "middle (class 4) can never be predicted: no input of" in ran.out
    for heading in ("why", "best rank", "nearest", "identical"):
        assert f"\n  {heading:<10} " in ran.out


def test_an_argmaxable_class_is_explained_in_words(explain: Command) -> None:
    ran = explain("north", "--domain", "box:1")
    assert ran.code == 0
    assert "north (class 0) can be predicted over the domain box ±1." in ran.out
    for heading in ("margin", "widest", "nearest"):
        assert f"\n  {heading:<10} " in ran.out


def test_what_is_known_first_is_printed_first(explain: Command) -> None:
    out = explain("4", "north").out
    places = [out.index(f"\n  {heading:<10} ") for heading in ("why", "deficit", "best rank", "nearest")]
    assert places == sorted(places)
    assert out.index("middle (class 4)") < places[0] < places[-1] < out.index("\n\nnorth (class 0)")
    assert not out.endswith("\n\n")


def test_json_has_one_object_for_each_class(explain: Command) -> None:
    ran = explain("0", "4", "--json")
    assert ran.code == 1
    assert [one["status"] for one in ran.record["classes"]] == ["argmaxable", "unargmaxable"]
    rank = ran.record["classes"][1]["best_rank"]
    assert (rank["lower"], rank["upper"]) == (4, 4)  # south, west and its twin, at (−1, −1)


def test_a_label_of_several_classes_explains_them_all(explain: Command) -> None:
    assert [one["class"] for one in explain("middle", "--json").record["classes"]] == [4, 6]


def test_a_label_that_is_a_number_is_asked_for_by_its_kind(explain: Command) -> None:
    ran = explain("7")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "label:7" in ran.err
    assert explain("label:7", "--json").record["classes"][0]["class"] == 5


def test_an_unknown_label_is_answered_with_near_ones(explain: Command) -> None:
    ran = explain("nort")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "Near to it: north" in ran.err


def test_a_label_for_a_head_without_labels_is_refused(command: Command, model: Path) -> None:
    ran = command("explain", model, "north")
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_the_input_is_written_and_puts_the_class_where_the_text_says(
    explain: Command, tmp_path: Path
) -> None:
    ran = explain("0", "4", "--json", "-o", tmp_path / "inputs.npy")
    inputs = np.load(tmp_path / "inputs.npy")
    assert inputs.shape == (2, 2)
    assert inputs[1].tolist() == ran.record["classes"][1]["input"]


@pytest.mark.parametrize("name", ["inputs.txt", "file/inputs.npy"])
def test_an_output_that_can_not_be_written_is_refused(explain: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    ran = explain("0", "-o", tmp_path / name)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_time_limit_ends_it_with_what_is_known(explain: Command) -> None:
    ran = explain("4", "north", "--time-limit", "1e-9")
    assert ran.code == 3
    assert "Not finished: stopped at class 1 of 2." in ran.out
    assert explain("4", "north", "--time-limit", "1e-9", "--json").record["complete"] is False


def test_within_the_time_limit_all_is_told(explain: Command) -> None:
    ran = explain("4", "--time-limit", "600", "--json")
    assert ran.code == 1
    assert ran.record["complete"] is True
    assert ran.record["classes"][0]["best_rank"]["upper"] == 4
