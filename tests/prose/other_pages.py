"""Values of docs/method.md and docs/stories: sizes of heads from the benchmarks, constants from the code."""

from __future__ import annotations

from argmaxable.prove import boundary, prover, shared_rows
from argmaxable.run import phases
from argmaxable.search import reflection
from experiments.heads.settling import UNARGMAXABLE
from prose.models import model
from prose.numbers import Claims
from prose.sources import benchmark, span

_SMOL = "SmolLM2-135M-Instruct, Q4_1"


def method_order() -> list[float]:
    solved = [head for head in benchmark("real_heads")["heads"].values() if head["solves"]]
    steps = [head["mean_steps"] for head in solved]
    return [
        reflection._ROUNDS, shared_rows._MANY_FEATURES, *span(steps), phases._BATCH, boundary._MANY_FEATURES,
        prover._RIVALS_TRIED,
    ]  # fmt: skip


def ocr_head() -> list[float]:
    head = benchmark("real_heads")["heads"]["ppocrv4_rec_ch"]
    return [head["features"], head["features"], head["classes"]]


def smollm_head() -> list[float]:
    head = benchmark("language_models")["models"]["smollm2"]
    return [4, head["classes"], head["features"]]


def smollm_tied() -> list[float]:
    found = model(_SMOL)
    special = found["categories"]["special"][1]
    return [found["outcomes"][UNARGMAXABLE] - special, special]


METHOD: Claims = {"method-order": method_order}
OCR: Claims = {"ocr-head": ocr_head}
QUANTISATION: Claims = {"smollm-head": smollm_head, "smollm-tied": smollm_tied}
