"""Changed heads in copies of PaddlePaddle models: only the bytes of the head's parameters differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paddle_writer import FEATURES, classifier, matrix

import argmaxable as am
from argmaxable.models import find_head, load_head, read_head
from argmaxable.models.write import write_head


def rewrite(source: Path, target: Path) -> am.Head:
    """Write a copy in which one row and one bias are others; the head that was meant."""
    finding = find_head(source)
    before = read_head(finding, source)
    weight, bias = np.array(before.weight), np.array(before.biases(), np.float32)
    weight[1] += 0.5
    bias[3] = 2.5
    after = am.Head(weight, bias, before.labels, name=before.name)
    write_head(str(source), finding, before, after, target)
    return after


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_copy_holds_the_changed_head_and_nothing_else_differs(tmp_path: Path) -> None:
    source = classifier().save(tmp_path)
    before = contents(tmp_path)
    meant = rewrite(source, tmp_path / "out.pdmodel")
    after = contents(tmp_path)
    assert before.keys() | {"out.pdmodel", "out.pdiparams"} == after.keys()
    assert all(after[name] == data for name, data in before.items())
    assert after["out.pdmodel"] == before["inference.pdmodel"]
    old, new = before["inference.pdiparams"], after["out.pdiparams"]
    assert 0 < sum(a != b for a, b in zip(old, new, strict=True)) <= (FEATURES + 1) * 4
    found = load_head(tmp_path / "out.pdmodel")
    assert np.array_equal(found.weight, meant.weight)
    assert np.array_equal(found.biases(), meant.biases())


def test_parameters_that_exist_are_never_overwritten(tmp_path: Path) -> None:
    source = classifier().save(tmp_path)
    (tmp_path / "out.pdiparams").write_bytes(b"somebody's")
    before = contents(tmp_path)
    with pytest.raises(am.InputError, match=r"out\.pdiparams exists already.*another name"):
        rewrite(source, tmp_path / "out.pdmodel")
    assert contents(tmp_path) == before


def test_a_copy_that_reads_otherwise_leaves_nothing_behind(tmp_path: Path) -> None:
    model = classifier()  # as many classes as features: which axis is which does not show in the shape
    model.parameters["w"] = matrix((FEATURES, FEATURES))
    model.parameters["b"] = matrix((FEATURES,))
    model.shapes |= {name: [-1, FEATURES] for name in ("xw", "z", "y")}
    source = model.save(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(am.InputError, match="does not read as the changed head"):
        rewrite(source, tmp_path / "out.pdmodel")
    assert contents(tmp_path) == before


def test_a_file_system_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError("not supported")

    monkeypatch.setattr("os.link", no_links)
    meant = rewrite(classifier().save(tmp_path), tmp_path / "out.pdmodel")
    assert np.array_equal(load_head(tmp_path / "out.pdmodel").weight, meant.weight)
    assert len(contents(tmp_path)) == 4
