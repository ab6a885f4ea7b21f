"""Changed heads in copies of OpenVINO models: only the bytes of the head's constants differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from openvino_writer import FEATURES, classifier
from rewriting import contents, rewrite

import argmaxable as am
from argmaxable.models import load_head


def test_the_copy_holds_the_changed_head_and_nothing_else_differs(tmp_path: Path) -> None:
    source = classifier().save(tmp_path)
    before = contents(tmp_path)
    meant = rewrite(source, tmp_path / "out.xml")
    after = contents(tmp_path)
    assert before.keys() | {"out.xml", "out.bin"} == after.keys()
    assert after["out.xml"] == before["model.xml"]
    old, new = before["model.bin"], after["out.bin"]
    assert 0 < sum(a != b for a, b in zip(old, new, strict=True)) <= (FEATURES + 1) * 4
    assert np.array_equal(load_head(tmp_path / "out.xml").weight, meant.weight)


def test_constants_that_share_their_bytes_are_not_changed(tmp_path: Path) -> None:
    model = classifier()
    other = model.layers[2].replace('name="w"', 'name="copy"').replace('names="w"', 'names="copy"')
    model.layers.append(other.replace('id="2"', f'id="{len(model.layers)}"', 1))
    source = model.save(tmp_path)
    with pytest.raises(am.InputError, match="shares its bytes with 'copy'"):
        rewrite(source, tmp_path / "out.xml")
    assert sorted(contents(tmp_path)) == ["model.bin", "model.xml"]
