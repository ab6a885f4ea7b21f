"""Examples to learn from and examples to measure with, told apart before anything is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from argmaxable.core.arrays import Mask
from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.core.labels import visible

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class ExampleSet:
    """Inputs to fit to and inputs that the fit never sees. `pictures` are PNG files of held-out inputs, by
    their numbers, for people to look at; `notes` say how the examples were made."""

    training: Examples
    held_out: Examples
    pictures: Mapping[int, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def split(examples: Examples, hold_out: Sequence[str], *, seed: int) -> ExampleSet:
    """Hold out whole sources, or a share such as 0.2 of the inputs of each label.

    Raises InputError for a source that is not there, or where one side would be empty.
    """
    share = _share(hold_out)
    is_held = _from(examples, hold_out) if share is None else _drawn(examples, share, seed)
    if not is_held.any() or is_held.all():
        raise InputError(
            f"--hold-out {' '.join(hold_out)} leaves {int((~is_held).sum()):,} inputs to learn from and "
            f"{int(is_held.sum()):,} to measure with: both need some."
        )
    return ExampleSet(examples.only(~is_held), examples.only(is_held))


def _share(hold_out: Sequence[str]) -> float | None:
    """The share asked for, None where sources are named."""
    if len(hold_out) != 1:
        return None
    try:
        share = float(hold_out[0])
    except ValueError:
        return None
    if not 0 < share < 1:
        raise InputError(f"--hold-out {hold_out[0]}: expected a share between 0 and 1, or a source.")
    return share


def _from(examples: Examples, names: Sequence[str]) -> Mask:
    known = sorted(set(examples.sources))
    strange = [name for name in names if name not in known]
    if strange:
        listed = ", ".join(map(visible, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
        raise InputError(f"--hold-out {strange[0]}: no example has this source (there are {listed}).")
    return np.array([source in names for source in examples.sources], bool)


def _drawn(examples: Examples, share: float, seed: int) -> Mask:
    """A share of the inputs, drawn separately for each label (of a line, its first)."""
    first: dict[int, str] = {}
    for place, label in zip(examples.inputs_of(examples.spans).tolist(), examples.labels, strict=True):
        first.setdefault(place, label)
    groups: dict[str | None, list[int]] = {}
    for place in range(len(examples.sources)):
        groups.setdefault(first.get(place), []).append(place)
    rng = np.random.default_rng(seed)
    is_held = np.zeros(len(examples.sources), bool)
    for members in groups.values():
        count = int(share * len(members) + rng.random())  # the share on average, for small groups too
        is_held[rng.permutation(members)[:count]] = True
    return is_held
