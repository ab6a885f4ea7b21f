"""Output layers that can be read but are no heads: what exactly is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.doctor.diagnosis import Diagnosis, FindingKind

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding


def faults_of(finding: Finding) -> tuple[Diagnosis, ...]:
    """Why the arrays are no head; nothing where that has other reasons than these."""
    weight, bias = finding.read()
    not_finite = _not_finite(finding, np.asarray(weight), bias)
    return (*_bias_length(finding, bias), *_label_count(finding), *not_finite)


def _bias_length(finding: Finding, bias: NDArray[Any] | None) -> Iterator[Diagnosis]:
    if bias is None or bias.size == finding.classes:
        return
    yield Diagnosis(
        FindingKind.BIAS_LENGTH,
        True,
        f"the bias has {bias.size:,} entries for {finding.classes:,} rows ({finding.bias}).",
        "The head was resized without its bias, or the bias is another layer's. Frameworks refuse such a "
        "model, or silently make a new bias.",
        "Resize both: append entries (the mean of the old ones, say) or cut it, and save the model "
        "again. If it is another layer's, pass --bias-tensor.",
    )


def _label_count(finding: Finding) -> Iterator[Diagnosis]:
    labels = finding.labels
    if labels is None or finding.padding == 0 or (finding.padding > 0 and labels.may_be_padded):
        return
    yield Diagnosis(
        FindingKind.LABEL_COUNT,
        True,
        f"{len(labels.names):,} labels (from {labels.source}) for {finding.classes:,} rows.",
        "The labels belong to another model, or the head was not resized with its vocabulary: "
        "predictions get wrong labels, or none.",
        "Call resize_token_embeddings(len(tokenizer)) after adding tokens, or pass --labels.",
    )


def _not_finite(finding: Finding, weight: NDArray[Any], bias: NDArray[Any] | None) -> Iterator[Diagnosis]:
    with np.errstate(invalid="ignore"):
        broken = ~np.isfinite(weight).all(axis=1)
        if bias is not None and bias.size == len(broken):
            broken |= ~np.isfinite(bias.reshape(-1))
    if not broken.any():
        return
    classes = tuple(int(class_id) for class_id in np.flatnonzero(broken))
    names = finding.labels.names if finding.labels is not None else ()
    yield Diagnosis(
        FindingKind.NOT_FINITE,
        True,
        f"{len(classes):,} rows hold numbers that are infinite or not a number.",
        "A NaN spreads to every probability, and argmax then returns whatever the framework does with it. "
        "Training diverged, or a conversion overflowed (fp16 ends at 65,504).",
        "Go back to an earlier checkpoint, or convert to bf16 or float32. A class that should never be "
        "predicted is better masked when decoding than by a bias of -inf.",
        classes,
        tuple(names[class_id] if class_id < len(names) else str(class_id) for class_id in classes),
    )
