"""What several commands do with a question's words and its answer: class numbers, exit codes, files."""

from __future__ import annotations

from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.core.result import Result


def exit_code(result: Result) -> int:
    """0 all argmaxable, 1 some unargmaxable, 3 some undecided or interrupted."""
    if result.undecided or not result.is_complete:
        return 3
    return 1 if result.unargmaxable else 0


def parse_classes(text: str) -> list[int]:
    """Class numbers from "3,17,20-40"."""
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or (part.strip().endswith("-")):
            raise InputError(
                f"--only {text}: '{part.strip()}' is neither a class number nor a range like 20-40."
            )
        if max(len(first), len(last)) > 9:
            raise InputError(f"--only: '{part.strip()[:20]}' is beyond the classes of any head.")
        if last and int(last) < int(first):
            raise InputError(f"--only {text}: the range {part.strip()} runs backwards.")
        if last and int(last) - int(first) > 10**8:
            raise InputError(f"--only {text}: the range {part.strip()} is larger than any head.")
        chosen.extend(range(int(first), int(last or first) + 1))
    return chosen


def write_file(text: str, target: Path) -> str:
    """Write the page and say so. Raises InputError."""
    encoded = text.encode()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(encoded)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror or error}.") from error
    return f"Report: {target} ({len(encoded) / 1000:,.0f} kB)"
