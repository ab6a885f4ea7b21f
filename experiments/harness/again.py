"""Whether a run gives the numbers of an earlier one: every number of every cell that both have."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Other processors round sums in another order, and training carries that on.
TOLERANCE = 0.01
_SHOWN = 5
# In the names of what no run gives again: times, and programmes solved after searches that stop by the clock.
_TIMED = ("seconds", "solves")


@dataclass(frozen=True)
class Difference:
    """A number that is another one now."""

    settings: Mapping[str, Any]
    name: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.name} is {self.now}, was {self.before} ({json.dumps(dict(self.settings))})"


@dataclass(frozen=True)
class Comparison:
    """How many numbers were compared, and which of them differ."""

    cells: int
    numbers: int
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        if not self.cells:
            return "no cell that is committed was measured again."
        said = f"{self.numbers:,} numbers of {self.cells:,} cells compared with the committed ones, "
        if not self.differences:
            return f"{said}all within {TOLERANCE:.0%}."
        shown = "".join(f"\n  {each}" for each in self.differences[:_SHOWN])
        more = len(self.differences) - _SHOWN
        return (
            f"{said}{len(self.differences):,} differ by more than {TOLERANCE:.0%}:{shown}"
            f"{f'{chr(10)}  and {more:,} more' if more > 0 else ''}"
        )


def compare(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], *, tolerance: float = TOLERANCE
) -> Comparison:
    """Cells as JSON holds them ("settings" and "found"), matched by their settings."""
    earlier = {_key(cell): cell for cell in before}
    both = [(earlier[_key(cell)], cell) for cell in now if _key(cell) in earlier]
    count, different = 0, []
    for old, new in both:
        # What only the newer code measures is no disagreement.
        measured = {key: value for key, value in new["found"].items() if key in old["found"]}
        values, new_values = dict(_numbers(old["found"])), dict(_numbers(measured))
        names = sorted(values.keys() | new_values.keys())
        count += len(names)
        different += [
            Difference(new["settings"], name, values.get(name), new_values.get(name))
            for name in names
            if not _is_same(values.get(name), new_values.get(name), tolerance)
        ]
    return Comparison(len(both), count, tuple(different))


def _key(cell: Mapping[str, Any]) -> str:
    return json.dumps(cell["settings"], sort_keys=True)


def _numbers(found: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All values that are no containers, under the way to them."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            if not any(word in key for word in _TIMED):
                yield from _numbers(value, f"{name}.{key}" if name else key)
    elif isinstance(found, list):
        for place, value in enumerate(found):
            yield from _numbers(value, f"{name}[{place}]")
    else:
        yield name, found


def _is_same(before: Any, now: Any, tolerance: float) -> bool:
    if isinstance(before, int | float) and isinstance(now, int | float):
        return before == now or math.isclose(before, now, rel_tol=tolerance)
    return bool(before == now)


def measured_twice(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[Any]:
    """For each cell measured again: its settings, what that cost, and how many of its numbers are others,
    and others by more than the tolerance."""
    entries = []
    for cell in now:
        exact, about = (compare(before, [cell], tolerance=tolerance) for tolerance in (0.0, TOLERANCE))
        entries.append(
            {
                "settings": cell["settings"], "seconds": cell["seconds"], "commit": cell["commit"],
                "numbers": exact.numbers, "different": len(exact.differences),
                "beyond_tolerance": len(about.differences),
            }
        )  # fmt: skip
    return entries


def say_again(entries: Sequence[Mapping[str, Any]]) -> str:
    """What came of measuring cells twice, a sentence for all of them."""
    if not entries:
        return ""
    names = "; ".join(name_of(entry["settings"]) for entry in entries)
    numbers, different, beyond = (
        sum(entry[key] for entry in entries) for key in ("numbers", "different", "beyond_tolerance")
    )
    commits = ", ".join(dict.fromkeys(entry["commit"] for entry in entries))
    if not different:
        outcome = f"all {numbers:,} numbers are identical"
    else:
        outcome = (
            f"of {numbers:,} numbers, {different:,} are not identical, and {beyond:,} "
            f"differ by more than {TOLERANCE:.0%}"
        )
    return f"Measured a second time (commit {commits}): {names}. Except for times, {outcome}."


def name_of(settings: Mapping[str, Any]) -> str:
    """What tells a cell from the others of its run."""
    plain = [str(settings[key]) for key in ("part", "model", "name", "head") if key in settings]
    mixtures = settings.get("shape", {}).get("mixtures")
    if mixtures and str(settings.get("head")).startswith("mos"):
        plain.append(f"K = {mixtures}")
    numbers = [f"{key} {settings[key]}" for key in ("features", "seed") if key in settings]
    if settings.get("is_search"):
        numbers.append(f"rate {settings.get('rate') or settings['schedule']['rate']:g}")
    return ", ".join([*plain, *numbers]) or json.dumps(dict(settings))
