"""Transforms as plain JSON values, so that a saved model can say what its head is made of."""

from __future__ import annotations

from typing import Any

from argmaxable.core.errors import InputError
from argmaxable.layers.plif import PLIF
from argmaxable.layers.pointwise import Transform
from argmaxable.layers.softcap import SoftCap
from argmaxable.layers.transforms import Identity, MonotonicNetwork, SigSoftmax

KINDS: dict[str, type[Transform]] = {
    kind.__name__: kind for kind in (Identity, SigSoftmax, MonotonicNetwork, PLIF, SoftCap)
}


def has_record(transform: Transform) -> bool:
    """Whether plain values describe it. They don't if the transform is your own class."""
    inner = [part for part in transform.settings().values() if isinstance(part, Transform)]
    return type(transform) in KINDS.values() and all(has_record(part) for part in inner)


def record_of(transform: Transform) -> dict[str, Any]:
    """The name of its class and the arguments that build it."""
    if not has_record(transform):
        raise InputError(
            f"{type(transform).__name__} has no record of plain values; these have: {', '.join(KINDS)}."
        )
    settings = transform.settings().items()
    parts = {name: record_of(part) if isinstance(part, Transform) else part for name, part in settings}
    return {"kind": type(transform).__name__, **parts}


def from_record(record: dict[str, Any]) -> Transform:
    """Inverse of `record_of`, with fresh parameters."""
    kind = record.get("kind")
    if kind not in KINDS:
        raise InputError(f"no transform is called '{kind}': choose one of {', '.join(KINDS)}.")
    settings = {name: part for name, part in record.items() if name != "kind"}
    return KINDS[kind](
        **{name: from_record(part) if isinstance(part, dict) else part for name, part in settings.items()}
    )
