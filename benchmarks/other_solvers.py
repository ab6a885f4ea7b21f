"""Other people's solvers on our statements: CPU seconds that z3, cvc5 and VIPR's checker take for each class.

The unargmaxable classes of PP-OCRv4 over box:100, some of the 202 unless --classes asks for all, written as
SMT-LIB and as a VIPR certificate (docs/solvers.md). viprchk is run where it is on the PATH.

With --log each class is written to a file when it is proven, and the same command resumes there.

    python benchmarks/other_solvers.py [MODEL] [--classes 20] [--log FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import _models
import _record
import cvc5

import argmaxable as am
from argmaxable.proofs.statements.write import StatementFormat, write_statements

DOMAIN = am.Box(-100, 100)
PACKAGES = {"z3": "z3-solver", "cvc5": "cvc5"}
VERIFIED = "Successfully verified optimal value range (-inf, 0]."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="default: PP-OCRv4")
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--log", type=Path, help="what is proven already; it is made and added to")
    asked = parser.parse_args()
    log = Log(asked.log)
    head = am.load_head(asked.model) if asked.model else _models.head("ppocrv4_rec_ch")
    unargmaxable = am.verify(head, DOMAIN).unargmaxable
    chosen = unargmaxable[:: max(1, len(unargmaxable) // asked.classes)][: asked.classes]
    with tempfile.TemporaryDirectory() as folder:
        written = {form: Path(folder) / form.value for form in StatementFormat}
        for form, place in written.items():
            done = write_statements(head, DOMAIN, chosen, place, form)
            assert not done.left_out
        smt2, vipr = (
            sorted(written[form].iterdir()) for form in (StatementFormat.SMT2, StatementFormat.VIPR)
        )
        z3, cvc = (f"{name} {version(package)}" for name, package in PACKAGES.items())
        measured = {
            z3: seconds_of(by_z3, smt2, "unsat", log=log, name=z3),
            cvc: seconds_of(by_cvc5, smt2, "unsat", log=log, name=cvc),
        }
        if shutil.which("viprchk"):
            measured["viprchk"] = seconds_of(by_viprchk, vipr, VERIFIED, log=log, name="viprchk")
        megabytes = {
            form.value: sum(path.stat().st_size for path in place.iterdir()) / 1e6
            for form, place in written.items()
        }
    counts = {"domain": str(DOMAIN), "unargmaxable": len(unargmaxable), "stated": len(chosen)}
    _record.write("other_solvers", {**counts, "megabytes": megabytes, "cpu_seconds": measured})


class Log:
    """CPU seconds of what was proven, by solver and SHA-256 of the file; a changed file is tried again."""

    def __init__(self, path: Path | None) -> None:
        lines = path.read_text().splitlines() if path and path.exists() else []
        self._seconds = {(each[0], each[1]): each[2] for each in map(json.loads, lines)}
        self._path = path

    def seconds(self, name: str, content: str) -> float | None:
        return self._seconds.get((name, content))

    def add(self, name: str, content: str, seconds: float) -> None:
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([name, content, round(seconds, 3)]) + "\n")


def seconds_of(
    decide: Callable[[Path], str], files: list[Path], expected: str, *, log: Log, name: str
) -> dict[str, Any]:
    """CPU seconds over all files; every one of them must be proven."""
    seconds = []
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        known = log.seconds(name, content)
        if known is None:
            before = _cpu_seconds()
            answer = decide(path)
            known = _cpu_seconds() - before
            if answer != expected:
                raise SystemExit(f"{path.name} is not proven: {answer}")
            log.add(name, content, known)
        seconds.append(known)
    return {
        "proven": len(seconds),
        "total": round(sum(seconds), 1),
        "median": round(statistics.median(seconds), 2),
        "most": round(max(seconds), 2),
    }


def by_z3(path: Path) -> str:
    return _output(["z3", path])


def by_viprchk(path: Path) -> str:
    return next((line for line in _output(["viprchk", path]).splitlines() if line == VERIFIED), "no proof")


def by_cvc5(path: Path) -> str:
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    answers = []
    while not (command := parser.nextCommand()).isNull():
        answers.append(command.invoke(solver, parser.getSymbolManager()))
    return "".join(answers).strip()


def _output(command: list[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
