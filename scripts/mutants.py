"""Changes the trusted code in many small ways and says which changes no test notices (docs/mutants.md).

    python -m scripts.mutants [PART ...]      only mutants whose names contain one of the parts
    python -m scripts.mutants --seconds 300   stop after so long and say what is known by then

Tests are collected once. A mutant is a fork of that process in which one function is exchanged. It runs the
tests that reach the changed lines, those first that kill most for their time, until one fails. All mutants
get a few seconds; what is left then and is not explained in docs/mutants.md gets all its tests. The journal
says what was tried: runs resume.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import importlib
import json
import math
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from scripts.mutations import SKIPPED, Mutant, mutants

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/argmaxable"
FILES = [*sorted((PACKAGE / "exact").glob("*.py")), *sorted((PACKAGE / "check").glob("*.py"))]
TESTS = ["tests/exact", "tests/check", "tests/theory/test_sign_patterns.py"]
JOURNAL, EXPLAINED = ROOT / ".cache/mutants.jsonl", ROOT / "docs/mutants.md"
# CPU seconds: of a test that takes part, of the tests of a mutant at first, and beyond them of a loop.
SLOWEST, FIRST, ENDLESS = 2.0, 1.5, 5
MEMORY = 16 << 30


class Plugin:
    """Takes the place of pytest's loop over the tests."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # pytest wants to be the first to load it

        # The same examples each time, and none smaller than the one that fails.
        once = settings(derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
        settings.register_profile("mutants", once)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # once, not in every fork
        parser = argparse.ArgumentParser()
        parser.add_argument("parts", nargs="*")
        parser.add_argument("--seconds", type=float, default=math.inf)
        asked = parser.parse_args()
        Run(session.items).run(asked.parts, time.monotonic() + asked.seconds)
        return True


class Run:
    """The tests with what they cost and reach, and the journal of what was tried."""

    def __init__(self, items: list[pytest.Item]) -> None:
        lines = JOURNAL.read_text().splitlines() if JOURNAL.exists() else []
        self.entries: dict[str, Any] = {entry["key"]: entry for entry in map(json.loads, lines)}
        self.items = {_digest(item.nodeid.encode() + item.path.read_bytes()): item for item in items}
        self.cost: dict[str, float] = {}
        self.reach: dict[tuple[str, int], set[str]] = {}
        self.rows = EXPLAINED.read_text().replace("\\|", "|").splitlines()
        self.kills = Counter((entry["file"], entry["by"]) for entry in self.entries.values() if "by" in entry)

    def run(self, parts: list[str], end: float) -> None:
        if not self._measure_tests(end):
            print("the tests are not measured yet")
            return
        skipped, chosen = Counter[str](), []
        for path in FILES:
            source, name = path.read_text(), f"{path.parent.name}/{path.name}"
            for mutant in mutants(source, name, skipped):
                if not parts or any(part in mutant.name for part in parts):
                    chosen.append((f"{_digest(source.encode())} {mutant.name}", path, mutant))
        for seconds in (FIRST, math.inf):
            for done, (key, path, mutant) in enumerate(chosen):
                is_settled = self._is_explained(mutant) and (key in self.entries or seconds > FIRST)
                if time.monotonic() < end and not is_settled:
                    self._try(key, path, mutant, seconds)
                    print(f"\r{done + 1}/{len(chosen)}", end="", flush=True, file=sys.stderr)
        self._report(chosen, skipped)

    def _is_explained(self, mutant: Mutant) -> bool:
        return any(f"`{mutant.place}`" in row and f"`{mutant.change}`" in row for row in self.rows)

    def _measure_tests(self, end: float) -> bool:
        """Which lines each test runs and how long it takes; loads what tests load, so that forks need not."""
        modules: set[str] = set()
        for key, item in self.items.items():
            if key not in self.entries:
                if time.monotonic() > end:
                    return False
                status, found = in_fork(partial(measured, item), 200)
                if status != "ended":
                    sys.exit(f"{item.nodeid} fails without a mutant")
                self._note(key, cost=found[0], lines=found[1], modules=found[2])
            entry = self.entries[key]
            if entry["cost"] <= SLOWEST:
                self.cost[key] = entry["cost"]
                modules.update(entry["modules"])
                for file, line in entry["lines"]:
                    self.reach.setdefault((file, line), set()).add(key)
        for module in sorted(modules - set(sys.modules)):
            try:
                importlib.import_module(module)
            except Exception:  # made by a test: nothing that is needed early
                continue
        gc.freeze()
        return True

    def _try(self, key: str, path: Path, mutant: Mutant, seconds: float) -> None:
        entry = self.entries.get(key, {"status": "new", "passed": []})
        lines = mutant.site.lines if mutant.site.function else range(1, 1000)
        reaching: set[str] = set().union(*(self.reach.get((path.name, line), set()) for line in lines))
        if not mutant.site.function:  # a test may ask for a constant and run no line
            paths = {self.items[test].path for test in reaching}
            reaching = {test for test in self.cost if self.items[test].path in paths}
        passed, tests = set(entry["passed"]), list[str]()
        for test in sorted(reaching - passed, key=lambda test: self._rank(path.name, test)):
            if self.cost[test] <= seconds:
                tests.append(test)
                seconds -= self.cost[test]
        if entry["status"] in ("killed", "timed out") or (not tests and entry["status"] != "new"):
            return
        items = [self.items[test] for test in tests]
        limit = ENDLESS + 5 * int(sum(self.cost[test] for test in tests))
        status, found = in_fork(lambda: attempted(path, mutant, items), limit)
        if status == "failed":
            sys.exit(f"{mutant.name} can't be tried")
        if status != "ended" or found is None:
            left = "survived" if reaching else "not reached"
            self._note(key, status=left if status == "ended" else status, passed=sorted(passed | set(tests)))
        else:
            by = tests[found] if found >= 0 else "loading"
            self.kills[path.name, by] += 1
            self._note(key, status="killed", passed=[], file=path.name, by=by)

    def _rank(self, file: str, test: str) -> float:
        """Cheap tests first, and those that have killed many mutants of the file."""
        return (self.cost[test] + 0.02) / (1 + self.kills[file, test])

    def _note(self, key: str, **entry: Any) -> None:
        self.entries[key] = {"key": key, **entry}
        JOURNAL.parent.mkdir(exist_ok=True)
        with JOURNAL.open("a") as file:
            file.write(json.dumps(self.entries[key]) + "\n")

    def _report(self, chosen: list[tuple[str, Path, Mutant]], skipped: Counter[str]) -> None:
        total = Counter[str]()
        for key, _, mutant in chosen:
            status = self.entries.get(key, {"status": "not tried"})["status"]
            if self._is_explained(mutant):
                status = {"survived": "explained", "not reached": "explained"}.get(status, status)
            if status in ("survived", "not reached"):
                line = mutant.site.lines.start
                print(f"\n{status}: {mutant.place}, line {line}: {mutant.change}", end="")
            total[status] += 1
        print("\nnot tried:", "; ".join(f"{skipped[kind]} {why}" for kind, why in SKIPPED.items()))
        print(
            f"{total.total()} mutants: {total['killed']} killed, {total['timed out']} timed out, "
            f"{total['explained']} survived and explained, {total['survived']} survived, "
            f"{total['not reached']} not reached, {total['not tried']} not tried"
        )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:10]


def in_fork(work: Callable[[], Any], seconds: int) -> tuple[str, Any]:
    """What the work gives in a process of its own: ("ended", value), or why there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os.write(writing, pickle.dumps(work()))
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        return "ended", pickle.loads(answer)
    if code > 0:
        return "failed", None
    return "timed out" if code == -signal.SIGXCPU else "killed", None


def measured(item: pytest.Item) -> tuple[float, list[tuple[str, int]], list[str]]:
    """CPU seconds of a test, the lines of the trusted code that it runs, and the modules it loads."""
    before, known, files = time.process_time(), set(sys.modules), {str(path): path.name for path in FILES}
    if not succeeds(item, None):
        raise AssertionError(item.nodeid)
    cost, modules = time.process_time() - before, sorted(set(sys.modules) - known)
    lines = set[tuple[str, int]]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        name = files.get(frame.f_code.co_filename)
        if name is not None:
            lines.add((name, frame.f_lineno))
        return None if name is None else trace

    sys.settrace(trace)
    succeeds(item, None)
    sys.settrace(None)
    return cost, sorted(lines), modules


def succeeds(item: pytest.Item, after: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


def attempted(path: Path, mutant: Mutant, items: list[pytest.Item]) -> int | None:
    """The first of the tests that fails on the mutant; −1 where the module does not even load."""
    if not install(path, mutant):
        return -1
    for k, item in enumerate(items):
        try:
            if not succeeds(item, items[k + 1] if k + 1 < len(items) else None):
                return k
        except BaseException:  # pytest itself has run out of memory, say
            return k
    return None


def install(path: Path, mutant: Mutant) -> bool:
    """Change the module as it is loaded: the code of a function, or constants and what follows from them.
    False where that can't be computed."""
    module = importlib.import_module(f"argmaxable.{path.parent.name}.{path.stem}")
    tree = mutant.tree()
    if mutant.site.function:
        found: Any = module
        for name in mutant.site.function.split("."):
            found = vars(found)[name]
        for inner in ("fget", "func", "__func__", "__wrapped__"):  # of properties and decorated ones
            found = getattr(found, inner, found)
        found.__code__ = code_of(compile(tree, str(path), "exec"), mutant.site.function)
        return True
    before, first = dict(vars(module)), mutant.site.lines.start
    constants = [one for one in tree.body if isinstance(one, ast.Assign) and one.lineno >= first]
    try:
        exec(compile(ast.Module([*constants], []), str(path), "exec"), vars(module))
    except (ArithmeticError, TypeError, ValueError):
        return False
    for name in set(before) - {"__builtins__"}:
        for other in list(sys.modules.values()):  # whoever imported the constant
            if getattr(other, "__dict__", {}).get(name) is before[name]:
                setattr(other, name, vars(module)[name])
    changed = {id(before[name]): vars(module)[name] for name in before}
    for function in vars(module).values():
        if defaults := getattr(function, "__defaults__", None):
            function.__defaults__ = tuple(changed.get(id(value), value) for value in defaults)
    return True


def code_of(code: CodeType, name: str) -> CodeType:
    for one in code.co_consts:
        if isinstance(one, CodeType) and one.co_qualname == name:
            return one
        if isinstance(one, CodeType) and name.startswith(f"{one.co_qualname}."):
            return code_of(one, name)
    raise LookupError(name)


if __name__ == "__main__":
    os.chdir(ROOT)
    # What these plugins report would count as a failure of whichever test is running.
    options = [
        "-q",
        "-s",
        "--tb=no",
        "-pno:cacheprovider",
        "-pno:unraisableexception",
        "-pno:threadexception",
    ]
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(pytest.main([*TESTS, *options, f"--basetemp={folder}/tests"], plugins=[Plugin()]))
