"""Pruned heads: the same argmax at every input, by proof and by trying."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from keeping import BOX, CORNERS, lossy
from numpy.typing import NDArray
from running import Command

import argmaxable as am
from argmaxable import Pruned
from argmaxable.models import load_head


def pruned(head: am.Head, domain: am.Domain = BOX) -> Pruned:
    return am.prune(am.verify(head, domain, engine=am.Engine(workers=1)))


def dominated(seed: int = 0, *, classes: int = 60) -> am.Head:
    generator = np.random.default_rng(seed)
    rows = np.round(generator.standard_normal((classes, 3)) * 64) / 64  # scores without rounding
    return am.Head(rows, np.round(generator.standard_normal(classes) * 64) / 64)


def first_winners(head: am.Head, points: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.asarray((points @ head.rows(slice(None)).T + head.biases()).argmax(axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_the_argmax_is_the_same_everywhere(seed: int) -> None:
    head = dominated(seed)
    done = pruned(head)
    assert done.head.classes < head.classes
    points = np.round(np.random.default_rng(seed).uniform(-100, 100, (20000, 3)) * 4) / 4
    points[:10000] /= 64
    assert np.array_equal(first_winners(head, points), done.remaining[first_winners(done.head, points)])


def test_only_strictly_dominated_classes_go() -> None:
    head = dominated()
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    done = am.prune(result)
    gone = {verdict.class_id for verdict in result.verdicts if verdict.upper < 0}
    assert set(done.remaining.tolist()) == set(range(head.classes)) - gone


def test_every_class_that_goes_has_a_proof_that_checks() -> None:
    head = dominated()
    done = pruned(head)
    checker = am.Checker(head, BOX, centre=done.proof.centre)
    assert done.new_ids.min() == -1
    for verdict in done.proof.verdicts:
        if done.new_ids[verdict.class_id] >= 0:
            continue
        assert verdict.upper < 0
        assert verdict.certificate is not None
        assert checker.proves(verdict.class_id, verdict.certificate, verdict.upper)


def test_of_a_tie_group_the_first_stays() -> None:
    done = pruned(lossy())
    # Corner 0 and class 5 are equal; the middle, class 4, is at best tied and stays.
    assert done.remaining.tolist() == [0, 1, 2, 3, 4]


def test_a_tie_group_that_is_dominated_goes_as_a_whole() -> None:
    rows = np.vstack([CORNERS[:4], np.zeros((2, 2))])
    done = pruned(am.Head(rows, [0.0, 0, 0, 0, -1, -1]))
    assert done.remaining.tolist() == [0, 1, 2, 3]


def test_the_larger_bias_of_twins_stays() -> None:
    rows = np.vstack([CORNERS[:4], CORNERS[:1]])
    done = pruned(am.Head(rows, [0.0, 0, 0, 0, 0.5]))
    assert done.remaining.tolist() == [1, 2, 3, 4]


def test_the_map_leads_back() -> None:
    done = pruned(dominated())
    assert (done.new_ids[done.remaining] == np.arange(len(done.remaining))).all()
    assert (done.new_ids >= 0).sum() == done.head.classes


def test_rows_biases_and_labels_move_together() -> None:
    done = pruned(lossy())
    assert done.head.labels == ("a", "é", "c", "d", "middle")
    assert np.array_equal(done.head.weight, CORNERS[:5])


def test_a_head_without_dominated_classes_is_left_alone() -> None:
    with pytest.raises(am.InputError, match="nothing to prune"):
        pruned(am.Head(np.eye(3)))


# ---------------------------------------------------------------------- the command


def saved(folder: Path, head: am.Head | None = None) -> Path:
    head = dominated() if head is None else head
    path = folder / "model.npz"
    np.savez(path, W=head.weight, b=head.biases())
    return path


def test_the_command_writes_head_map_and_proof(command: Command, tmp_path: Path) -> None:
    model, out = saved(tmp_path), tmp_path / "small.npz"
    done = command("prune", model, "-o", out, "--workers", "1")
    assert done.code == 0
    kept = np.array(json.loads((tmp_path / "small.npz.ids.json").read_text())["old_of_new"])
    head = load_head(out)
    assert np.array_equal(head.weight, dominated().weight[kept])
    assert np.array_equal(np.load(out)["remaining"], kept)
    checked = command("check", tmp_path / "small.npz.proofs", model)
    assert checked.code == 0


def test_safetensors_hold_the_same_head(command: Command, tmp_path: Path) -> None:
    model, out = saved(tmp_path), tmp_path / "small.safetensors"
    assert command("prune", model, "-o", out, "--workers", "1").code == 0
    expected = pruned(dominated()).head
    found = load_head(out, tensor="W", bias_tensor="b")
    assert np.array_equal(found.weight, expected.weight)
    assert np.array_equal(found.biases(), expected.biases())


def test_a_bfloat16_head_stays_one(command: Command, tmp_path: Path) -> None:
    model, out = tmp_path / "model.npz", tmp_path / "small.npz"
    np.savez(model, W=dominated().weight.astype(ml_dtypes.bfloat16), b=dominated().biases())
    assert command("prune", model, "-o", out, "--workers", "1").code == 0
    assert load_head(out).weight.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("name", ["small.onnx", "small.pt", "small"])
def test_whole_models_are_refused(command: Command, tmp_path: Path, name: str) -> None:
    done = command("prune", saved(tmp_path), "-o", tmp_path / name)
    assert done.code == 2
    assert "written as .npz or .safetensors" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_what_exists_is_kept(command: Command, tmp_path: Path) -> None:
    model, out = saved(tmp_path), tmp_path / "small.npz"
    out.write_bytes(b"precious")
    assert command("prune", model, "-o", out).code == 2
    assert command("prune", model, "-o", model, "--overwrite").code == 2
    assert out.read_bytes() == b"precious"


def test_nothing_to_prune_writes_nothing(command: Command, tmp_path: Path) -> None:
    model = saved(tmp_path, am.Head(np.eye(3)))
    done = command("prune", model, "-o", tmp_path / "small.npz", "--workers", "1")
    assert done.code == 2
    assert "nothing to prune" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_classes_that_there_is_no_time_for_stay(command: Command, tmp_path: Path) -> None:
    model, out = tmp_path / "head.npz", tmp_path / "small.npz"
    rows = np.random.default_rng(0).standard_normal((3000, 12))
    rows[-1] = rows[0]  # with a lower bias: never the argmax, which takes no search
    np.savez(model, W=rows, b=np.where(np.arange(3000) < 2999, 0.0, -1.0))
    done = command("prune", model, "-o", out, "--workers", "1", "--time-limit", "1e-6")
    assert done.code == 3
    assert done.out.startswith("Not finished: ")
    before, after = load_head(model), load_head(out)
    assert before.classes - after.classes == 1
