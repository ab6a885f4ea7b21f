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
    """For each cell measured again: its settings, what that cost, the commits of both, and how many of its
    numbers are others, and others by more than the tolerance."""
    first = {_key(cell): cell["commit"] for cell in before}
    entries = []
    for cell in now:
        exact, about = (compare(before, [cell], tolerance=tolerance) for tolerance in (0.0, TOLERANCE))
        entries.append(
            {
                "settings": cell["settings"], "seconds": cell["seconds"], "commit": cell["commit"],
                "first_commit": first[_key(cell)], "numbers": exact.numbers,
                "different": len(exact.differences), "beyond_tolerance": len(about.differences),
            }
        )  # fmt: skip
    return entries


def say_again(entries: Sequence[Mapping[str, Any]]) -> str:
    """What came of measuring cells twice: one sentence for all that are the same, one for each other."""
    same = [entry for entry in entries if not entry["different"]]
    said = [_say_different(entry) for entry in entries if entry["different"]]
    if same:
        names = "; ".join(name_of(entry["settings"]) for entry in same)
        commits = ", ".join(dict.fromkeys(entry["commit"] for entry in same))
        numbers = sum(entry["numbers"] for entry in same)
        said.insert(
            0,
            f"Measured a second time (commit {commits}): {names}. Except for times, all {numbers:,} numbers "
            "are identical.",
        )
    return " ".join(said)


def _say_different(entry: Mapping[str, Any]) -> str:
    return (
        f"Measured a second time, with commit {entry['commit']} after {entry['first_commit']}: "
        f"{name_of(entry['settings'])}. Of {entry['numbers']:,} numbers, {entry['different']:,} are not "
        f"identical, and {entry['beyond_tolerance']:,} differ by more than {TOLERANCE:.0%}."
    )


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
