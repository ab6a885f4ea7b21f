"""Builds wheel and source archive, installs each into an empty environment, and tries it there.

    python scripts/smoke_wheel.py [--output DIR]

Needs `pip install build twine`. Every group of commands is tried on a small head that the script writes,
without the repository. Ends with 0 if all of it works. --output stores what was built.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A head of 60 classes, some of them inside the hull; made by the installed package's own NumPy.
_HEAD = """\
import numpy as np
generator = np.random.default_rng(0)
weight = generator.normal(size=(60, 6)); weight[40:] *= 0.2
bias = np.where(np.arange(60) < 40, 0.0, -1.0)
np.savez("head.npz", W=weight.astype("f4"), b=bias.astype("f4"), labels=[f"c{k}" for k in range(60)])
open("sets.jsonl", "w").write('["c0", "c1"]\\n["c2"]\\n')
open("campaign.toml", "w").write('[[family]]\\nname = "f"\\n[[family.model]]\\nfile = "head.npz"\\n')
"""
# These need extras or other files; their help is shown.
_HELP = ("serve", "observe", "teach", "figure", "import")
# Each command with the exit codes that mean success.
_COMMANDS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("--version", (0,)),
    ("verify head.npz --domain box:10 --output proofs --report page.html", (1,)),
    ("check proofs head.npz", (0,)),
    ("campaign campaign.toml --index index.md", (0,)),
    ("inspect head.npz", (0,)),
    ("explain head.npz c50 --domain box:10", (1,)),
    ("doctor head.npz", (0, 1)),
    ("sets head.npz sets.jsonl", (0, 1)),
    ('ranking head.npz "c0 > c1"', (0, 1)),
    ("repair head.npz -o repaired.npz --domain box:10", (0,)),
    ("prune head.npz -o pruned.npz --domain box:10", (0,)),
    ("runs", (0,)),
    ("show 1", (0,)),
    ("compare 1 2", (0, 1)),
    ("table", (0,)),
    ("report 1 -o report.html", (0,)),
    ("card 1 -o card.md", (0,)),
    ("export 1 --format csv -o verdicts.csv", (0,)),
    ("store check", (0,)),
    ("random --classes 50 --dim 3", (0, 1)),
    ("prevent --classes 100 --dim 6", (0,)),
    ("regions --classes 10 --dims 5", (0,)),
    *(
        (f"{name} --help", (0,))
        for name in ("serve", "observe", "teach", "rank", "activations", "figure", "import")
    ),
)


def run(*words: str | Path, cwd: Path | None = None) -> None:
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


def build(folder: Path) -> list[Path]:
    """The wheel and the source archive, whose descriptions PyPI would accept."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    built = sorted(folder.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    return built


def try_out(distribution: Path, folder: Path) -> list[str]:
    """Install it into an empty environment and run every command there; what failed."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", distribution)
    work = folder / "work"
    work.mkdir()
    subprocess.run([programs / "python", "-c", _HEAD], cwd=work, check=True)
    # Neither the repository nor the user's own database can help.
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = kept | {"ARGMAXABLE_DB": str(work / "runs.db")}
    failed = []
    for line, codes in _COMMANDS:
        command = [str(programs / "argmaxable"), *shlex.split(line)]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        print(f"{'ok  ' if done.returncode in codes else 'FAIL'} argmaxable {line}", flush=True)
        if done.returncode not in codes:
            failed.append(
                f"{distribution.name}: argmaxable {line}: exit code {done.returncode}\n{done.stderr}"
            )
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, help="folder for what is built")
    given = parser.parse_args()
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = build((given.output or folder / "dist").resolve())
        for place, distribution in enumerate(built):
            (folder / str(place)).mkdir()
            failed += try_out(distribution, folder / str(place))
    print(*failed, sep="\n", end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
