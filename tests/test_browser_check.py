"""The check that runs in browsers (docs/js) agrees with the conformance suite."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "conformance"
CHECK = ROOT / "docs" / "js" / "node.mjs"
NODE = shutil.which("node")
BOXES = ("box", "everywhere")

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def answers(pairs: list[tuple[Path, Path]]) -> list[str]:
    """What the check says about each bundle and its head."""
    assert NODE is not None
    # A second pair, so that answers are printed one a line.
    words = [str(path) for pair in [*pairs, pairs[0]] for path in pair]
    done = subprocess.run([NODE, str(CHECK), *words], capture_output=True, text=True, check=True)
    return done.stdout.split()[: len(pairs)]


def suite() -> dict[str, tuple[Path, Path, str]]:
    expected = json.loads((SUITE / "expected.json").read_text(encoding="utf-8"))
    return {
        name: (SUITE / "good" / name, SUITE / entry["head"], entry["answer"])
        for name, entry in expected.items()
    }


def kind_of(bundle: Path) -> str:
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    return str(manifest["domain"]["kind"])


def test_good_bundles_over_boxes_are_proven_and_others_are_not_claimed_to_be() -> None:
    cases = suite().values()
    expected = [answer if kind_of(bundle) in BOXES else "partly" for bundle, _, answer in cases]
    assert answers([(bundle, head) for bundle, head, _ in cases]) == expected
    assert expected.count("proven") >= 8


def test_every_forgery_of_a_box_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUITE))
    from forge import forgeries

    chosen = [
        (forgery, head)
        for name, (bundle, head, _) in suite().items()
        if kind_of(bundle) in BOXES
        for forgery in forgeries(name, bundle, tmp_path)
    ]
    found = answers(chosen)
    assert len(chosen) > 500
    wrong = [
        (pair[0].name, answer) for pair, answer in zip(chosen, found, strict=True) if answer != "refused"
    ]
    assert wrong == []
