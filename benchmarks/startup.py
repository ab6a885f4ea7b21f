"""Start-up: whole processes from Python's own start to its end, in medians over interleaved rounds.

Modules are compiled once, into a folder for this run, as they are where the package is installed. With
`--against` the same is measured with the package of another checkout, in the same rounds.

    python benchmarks/startup.py [--rounds N] [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import _record
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
HEAD = ROOT.parent / "shared" / "heads" / "ppocrv4_rec_ch.npz"
CLASSES, FEATURES = 6625, 120
COMMAND = "from argmaxable.cli import main; main()"


@dataclass(frozen=True)
class Checkout:
    """A source tree, and where Python keeps what it has compiled of it."""

    root: Path
    compiled: Path

    def seconds(self, *arguments: str) -> float:
        """Wall seconds of `python -c ...` with this checkout's package."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONPATH": str(self.root / "src"), "PYTHONPYCACHEPREFIX": str(self.compiled)}
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, check=False,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        if done.returncode not in (0, 1):  # 1: some class is unargmaxable
            raise RuntimeError(f"{self.root}, {arguments}: {done.stderr.decode()}")
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {"this": Checkout(ROOT, Path(folder, "this"))}
        if options.against is not None:
            checkouts["against"] = Checkout(options.against.resolve(), Path(folder, "against"))
        head = head_in(Path(folder))
        seconds = measure(checkouts, programs(head), options.rounds)
    print_table(seconds)
    _record.write(
        "startup",
        {
            "head": "PP-OCRv4" if head == HEAD else f"random, {CLASSES} × {FEATURES}",
            "rounds": options.rounds,
            "checkouts": {name: _record.commit_of(checkout.root) for name, checkout in checkouts.items()},
            "seconds": rounded(seconds),
            "times_numpy": rounded(ratios(seconds)),
        },
    )


def head_in(folder: Path) -> Path:
    """PP-OCRv4's head where it is at hand, or one of its size in the folder."""
    if HEAD.exists():
        return HEAD
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((CLASSES, FEATURES)).astype(np.float32)
    np.savez(folder / "head.npz", W=weight, b=generator.standard_normal(CLASSES).astype(np.float32))
    return folder / "head.npz"


def programs(head: Path) -> dict[str, tuple[str, ...]]:
    return {
        "import numpy": ("import numpy",),
        "import argmaxable": ("import argmaxable",),
        "argmaxable --version": (COMMAND, "--version"),
        "argmaxable --help": (COMMAND, "--help"),
        "argmaxable verify HEAD --no-db --json": (COMMAND, "verify", str(head), "--no-db", "--json"),
    }


def measure(
    checkouts: dict[str, Checkout], programs: dict[str, tuple[str, ...]], rounds: int
) -> dict[str, dict[str, float]]:
    """Median seconds of each program with each checkout; a first round, not counted, compiles the modules."""
    taken: dict[str, dict[str, list[float]]] = {
        name: {program: [] for program in programs} for name in checkouts
    }
    for number in range(rounds + 1):
        for program, arguments in programs.items():
            for name, checkout in checkouts.items():
                seconds = checkout.seconds(*arguments)
                if number:
                    taken[name][program].append(seconds)
    return {
        name: {program: statistics.median(times) for program, times in each.items()}
        for name, each in taken.items()
    }


def ratios(seconds: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Each median over the one of `import numpy` with the same checkout."""
    return {
        name: {program: value / each["import numpy"] for program, value in each.items()}
        for name, each in seconds.items()
    }


def rounded(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {key: round(value, 3) for key, value in each.items()} for name, each in table.items()}


def print_table(seconds: dict[str, dict[str, float]]) -> None:
    times = ratios(seconds)
    print(f"{'':38}" + "".join(f"{name:>10} s{'× numpy':>10}" for name in seconds))
    for program in seconds["this"]:
        cells = (f"{seconds[name][program]:>12.3f}{times[name][program]:>10.2f}" for name in seconds)
        print(f"{program:38}" + "".join(cells))


if __name__ == "__main__":
    main()
