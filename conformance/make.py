"""Writes heads/, good/ and expected.json anew, with argmaxable. The forgeries are made from them by forge.py.

python conformance/make.py
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

import argmaxable as am

HERE = Path(__file__).parent
HEADS, GOOD = HERE / "heads", HERE / "good"
PROVEN, OPEN = "proven", "open"


def rows(classes: int = 14, features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Random rows: three inside the hull of the others, two identical, one another's with less bias."""
    generator = np.random.default_rng(17)
    weight = generator.normal(size=(classes, features)).astype(np.float32)
    weight[:3] = 0.1 * weight[:3] + weight[6:].mean(axis=0)
    bias = (0.1 * generator.normal(size=classes)).astype(np.float32)
    bias[:3] -= 1
    weight[4], bias[4] = weight[3], bias[3]
    weight[12], bias[12] = weight[13], bias[13] - np.float32(0.5)
    return weight, bias


def heads() -> dict[str, dict[str, np.ndarray]]:
    weight, bias = rows()
    labels = np.array([f"word {number}" for number in range(len(weight) - 2)] + ["été", 'a "b" \\ \n 😀'])
    return {
        "labelled": {"W": weight, "b": bias, "labels": labels},
        "plain": {"W": weight},
        "half": {"W": weight.astype(np.float16), "b": bias.astype(np.float16)},
        "double": {"W": weight.astype(np.float64) / 3, "b": bias.astype(np.float64) / 3},
        "one": {"W": weight[:1], "b": bias[:1]},
        "twins": {"W": np.array([[1.0], [1.0], [0.0]])},
        # The last class wins where |3x − 1| < y, and y is below 2^-60: no float64 is so near to 1/3.
        "thin": {"W": np.array([[3.0, -1.0], [-3.0, -1.0], [0.0, 0.0]]), "b": np.array([-1.0, 1.0, 0.0])},
    }


def results(load: dict[str, am.Head]) -> Iterator[tuple[str, str, am.Result]]:
    """Name of the bundle, name of its head, and what is claimed."""
    gain, shift = np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.0, -0.1])
    inputs = np.random.default_rng(3).normal(size=(9, 3))
    cases: dict[str, tuple[str, am.Domain]] = {
        "box": ("labelled", am.Box(-100.0, 100.0)),
        "box-of-ranges": ("labelled", am.Box([-1.0, 0.0, -2.5], [1.0, 4.0, 0.5])),
        "relu": ("plain", am.Box(0.0, np.inf)),
        "everywhere": ("plain", am.Everywhere()),
        "everywhere-biased": ("labelled", am.Everywhere()),
        "ball": ("double", am.Ball(2.5)),
        "rmsnorm": ("half", am.RMSNorm(gain)),
        "layernorm": ("labelled", am.LayerNorm(gain, shift)),
        "layernorm-gain-0": ("plain", am.LayerNorm(gain * [1, 0, 1])),
        "hull": ("labelled", am.Hull(inputs)),
        "hull-of-one": ("half", am.Hull(inputs[:1].astype(np.float32))),
        "one-class": ("one", am.Box(-1.0, 1.0)),
        "one-point": ("twins", am.Box(0.0, 0.0)),
    }
    for name, (head, domain) in cases.items():
        yield name, head, am.with_rational_weights(am.verify(load[head], domain, engine=am.Engine(workers=1)))
    some = am.verify(load["labelled"], am.Box(-1.0, 1.0), only=[1, 4, 9], engine=am.Engine(workers=1))
    yield "some-classes", "labelled", some
    stopped = am.verify(load["labelled"], am.Box(-1.0, 1.0), time_limit=1e-9, engine=am.Engine(workers=1))
    yield "interrupted", "labelled", stopped
    yield "fine-point", "thin", with_fine_point(load["thin"])


def with_fine_point(head: am.Head) -> am.Result:
    """A class that wins only where float64 has no point: settled by hand, at a multiple of 2^-80 near 1/3."""
    result = am.verify(head, am.Box(0.0, [1.0, 2.0**-60]), engine=am.Engine(workers=1))
    assert result.verdicts[2].status is am.Status.UNDECIDED
    point = am.FinePoint((round(Fraction(2**80, 3)), 2**20), -80)
    settled = replace(
        result.verdicts[2], status=am.Status.ARGMAXABLE, lower=2.0**-61, upper=np.inf, witness=point,
        certificate=None, reason="", method=am.Method.SIMPLEX,
    )  # fmt: skip
    return replace(result, verdicts=(*result.verdicts[:2], settled))


def as_format_1(folder: Path) -> None:
    """Take away what format 1 does not have."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["files"], manifest["head"]["labels_sha256"]
    manifest["format"] = "argmaxable-proofs-1"
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    for folder in (HEADS, GOOD):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for name, arrays in heads().items():
        np.savez_compressed(HEADS / f"{name}.npz", allow_pickle=False, **arrays)
    load = {path.stem: am.load_head(str(path)) for path in HEADS.iterdir()}
    expected = {}
    for name, head, result in results(load):
        am.write_bundle(result, GOOD / name)
        is_open = bool(result.undecided) or result.verified < result.head.classes
        expected[name] = {"head": f"heads/{head}.npz", "answer": OPEN if is_open else PROVEN}
        if name in ("box", "relu", "interrupted"):
            shutil.copytree(GOOD / name, GOOD / f"{name}-format-1")
            as_format_1(GOOD / f"{name}-format-1")
            expected[f"{name}-format-1"] = expected[name]
    text = json.dumps(dict(sorted(expected.items())), indent=2)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
