"""Prints what the base install and each extra take on disk, for docs/install.md.

    python scripts/install_sizes.py

Sizes are those of the files that packages of this environment list, dependencies included, compiled Python
not. An extra counts what it adds to the base install. A package that is missing here is named.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement


@cache
def size_of(name: str) -> int:
    """Bytes of the files that an installed package lists."""
    paths = [Path(str(path.locate())) for path in distribution(name).files or ()]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file())


def needed_by(package: Distribution, extra: str) -> list[Requirement]:
    """What it requires here, with an extra or (for "") without."""
    found = [Requirement(text) for text in package.requires or ()]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": extra})]


def closure(wanted: list[Requirement]) -> tuple[set[str], set[str]]:
    """The packages that these need, themselves included, and those of them that are not installed."""
    found: set[str] = set()
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [(one.name, extra) for one in wanted for extra in ("", *one.extras)]
    while waiting:
        name, extra = waiting.pop()
        key = name.lower().replace("_", "-")
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            missing.add(key)
            continue
        found.add(key)
        waiting += [(one.name, more) for one in needed_by(package, extra) for more in ("", *one.extras)]
    return found, missing


def _line(name: str, size: int, packages: int, missing: set[str]) -> str:
    end = f"; not installed here: {', '.join(sorted(missing))}" if missing else ""
    return f"{name}: {size / 1e6:.0f} MB, {packages} packages{end}"


def main() -> None:
    ours = distribution("argmaxable")
    base, missing = closure(needed_by(ours, ""))
    source = (Path(__file__).parent.parent / "src").rglob("*")
    own = sum(path.stat().st_size for path in source if path.is_file() and path.suffix != ".pyc")
    print(_line("base", own + sum(map(size_of, base)), len(base), missing))
    for extra in sorted(ours.metadata.get_all("Provides-Extra") or ()):
        found, missing = closure(needed_by(ours, extra))
        more = found - base - {"argmaxable"}
        print(_line(extra, sum(map(size_of, more)), len(more), missing))


if __name__ == "__main__":
    main()
