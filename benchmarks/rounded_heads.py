"""Real heads in fewer bits: which classes lose their argmaxability, and which only rounding decides.

For each format a rounded copy of the head is verified and compared with the original, class by class; for
float formats the argmaxable classes are also looked at in logits computed in that format. Heads that are not
named keep the numbers they had.

    python benchmarks/rounded_heads.py [NAME or MODEL ...]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import _models
import _record

import argmaxable as am
from argmaxable.compute.identical_rows import find_identical_rows
from argmaxable.questions.arithmetic.formats import Float, Rounding, rounded
from argmaxable.questions.arithmetic.survival import Outcome, survival

NAMES = ["ppocrv4_rec_ch", "ppocrv3_rec_ch", "ppocrv6_rec_tiny"]
DOMAIN = am.Box(-100, 100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    kept = _record.RESULTS / "rounded_heads.json"
    heads = json.loads(kept.read_text())["heads"] if kept.exists() else {}
    for name in parser.parse_args().names:
        head = _models.head(name) if name in _models.ONNX_HEADS or name == "minilm" else am.load_head(name)
        heads[name if name in NAMES else head.name] = measure(head)
    _record.write("rounded_heads", {"domain": str(DOMAIN), "heads": heads})


def measure(head: am.Head) -> dict[str, Any]:
    result = am.verify(head, DOMAIN)
    return {
        "classes": head.classes,
        "features": head.features,
        "bias": head.bias is not None,
        "dtype": head.weight.dtype.name,
        **_counts(result),
        "stored_in": {rounding.value: stored_in(result, rounding) for rounding in Rounding},
        "computed_in": {number.value: computed_in(result, number) for number in Float},
    }


def stored_in(result: am.Result, rounding: Rounding) -> dict[str, Any]:
    """What becomes of the statuses when weights are stored in a format."""
    copy = rounded(result.head, rounding)
    after = am.verify(copy, result.domain)
    pairs = list(zip(result.verdicts, after.verdicts, strict=True))
    lost = [new for old, new in pairs if _is(old, am.Status.ARGMAXABLE) and _is(new, am.Status.UNARGMAXABLE)]
    gained = [
        new for old, new in pairs if _is(old, am.Status.UNARGMAXABLE) and _is(new, am.Status.ARGMAXABLE)
    ]
    before, now = find_identical_rows(result.head), find_identical_rows(copy)
    return {
        **_counts(after),
        "lost": len(lost),
        "gained": len(gained),
        "rows_equal_to_another": int(((now.beaten_by >= 0) | (now.tied_to >= 0)).sum()),
        "rows_equal_to_another_before": int(((before.beaten_by >= 0) | (before.tied_to >= 0)).sum()),
        "labels_lost": [verdict.label for verdict in lost],
    }


def computed_in(result: am.Result, number: Float) -> dict[str, Any]:
    """What becomes of the argmaxable classes when logits are computed in a format."""
    start = time.perf_counter()
    found = survival(result, number)
    return {
        **{outcome.value.replace(" ", "_"): len(found.having(outcome)) for outcome in Outcome},
        "witnesses_improved": found.improved,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _is(verdict: am.Verdict, status: am.Status) -> bool:
    return verdict.status is status


def _counts(result: am.Result) -> dict[str, int]:
    return {
        "argmaxable": len(result.argmaxable),
        "unargmaxable": len(result.unargmaxable),
        "tied": len(result.tied),
        "undecided": len(result.undecided),
    }


if __name__ == "__main__":
    main()
