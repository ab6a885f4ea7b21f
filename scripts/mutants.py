"""Changes the trusted code in many small ways and says which changes no test notices (docs/mutants.md).

    python scripts/mutants.py [PART ...]      only mutants whose name contains one of the parts

Tests are collected once. Each mutant is a fork of that process, in which the function's code is exchanged, and
runs the tests that reach the changed lines, cheapest first, until one fails. All mutants get a few seconds first;
those that are left then get all their tests. The journal says what has been tried, so that a run resumes.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # before NumPy is loaded: threads do not survive a fork

import pytest
from _pytest.runner import runtestprotocol
from mutations import SKIPPED, Mutant, mutants

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "argmaxable"
FILES = [path for room in ("exact", "check") for path in sorted((PACKAGE / room).glob("*.py"))]
JOURNAL = ROOT / ".cache" / "mutants.jsonl"
EXPLAINED = ROOT / "docs" / "mutants.md"
TESTS = (
    "tests/exact tests/check tests/theory/test_sign_patterns.py "
    "tests/proofs/test_conformance.py tests/proofs/test_recheck.py tests/prove/test_shared_rows.py "
    "tests/prove/test_transfer.py tests/questions/best_rank/test_best_rank_hitting.py "
    "tests/questions/ceiling tests/questions/sets/test_sets.py"
).split()
TESTS = os.environ.get('MT', '').split() or TESTS
# CPU seconds: a test slower than this takes no part; what a mutant gets at first; and where an endless loop ends.
SLOWEST, FIRST, ENDLESS = 3.0, 3.0, 20
MEMORY = 16 << 30

Result = tuple[str, Any]
Lines = set[tuple[str, int]]


class Plugin:
    """Takes the place of pytest's loop over the tests."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # pytest wants to be the first to load it

        # Same examples each time; a failure needs no smaller one.
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", settings(derandomize=True, database=None, phases=phases))
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # before a fork, not in each
        Run(session.items, self.parts).run()
        return True


class Run:
    def __init__(self, items: list[pytest.Item], parts: list[str]) -> None:
        self.parts = parts
        self.entries: dict[str, Any] = {}
        if JOURNAL.exists():
            self.entries = {entry["key"]: entry for entry in map(json.loads, JOURNAL.read_text().splitlines())}
        self.items = {self._key(item): item for item in items}
        self.cost: dict[str, float] = {}
        self.reach: dict[tuple[str, int], set[str]] = {}
        self.kills: dict[str, Counter[str]] = {}

    def _key(self, item: pytest.Item) -> str:
        """A test, until its file changes."""
        return hashlib.sha256(item.nodeid.encode() + item.path.read_bytes()).hexdigest()[:10]

    def run(self) -> None:
        self._measure_tests()
        skipped: Counter[str] = Counter()
        todo = []
        for path in FILES:
            source, name = path.read_text(), f"{path.parent.name}/{path.name}"
            digest = hashlib.sha256(source.encode()).hexdigest()[:10]
            todo += [(f"{digest} {m.key}", path, m) for m in mutants(source, name, skipped)]
        chosen = [one for one in todo if not self.parts or any(part in one[0] for part in self.parts)]
        for seconds in (FIRST, float("inf")):
            for done, (key, path, mutant) in enumerate(chosen):
                self._try(key, path, mutant, seconds)
                if done % 20 == 0:
                    print(f"\r{done}/{len(chosen)} ", self._counts(chosen), end="", flush=True, file=sys.stderr)
        self._report(chosen, skipped)

    def _measure_tests(self) -> None:
        """Which lines each test runs, and how long it takes; loads what tests load, so that forks need not."""
        modules: set[str] = set()
        for key, item in self.items.items():
            entry = self.entries.get(key)
            if entry is None:
                status, found = in_fork(lambda item=item: measured(item), 10 * ENDLESS)
                if status != "ended":
                    sys.exit(f"{item.nodeid} fails without a mutant")
                entry = self._note(key, name=item.nodeid, cost=found[0], lines=sorted(found[1]), modules=found[2])
            if entry["cost"] <= SLOWEST:
                self.cost[key] = entry["cost"]
                modules.update(entry["modules"])
                for file, line in entry["lines"]:
                    self.reach.setdefault((file, line), set()).add(key)
        for module in sorted(modules - set(sys.modules)):
            try:
                importlib.import_module(module)
            except Exception:  # made by a test, or half loaded: nothing that is needed early
                continue
        for entry in self.entries.values():
            if "by" in entry:
                file = entry["key"].split("/")[1].split(":")[0]
                self.kills.setdefault(file, Counter())[entry["by"]] += 1
        gc.collect()
        gc.freeze()

    def _try(self, key: str, path: Path, mutant: Mutant, seconds: float) -> None:
        entry = self.entries.get(key, {"status": "", "passed": []})
        if entry["status"] in ("killed", "timed out"):
            return
        lines = mutant.site.lines if mutant.site.function else range(1, 1000)
        reaching = set().union(*(self.reach.get((path.name, line), set()) for line in lines))
        passed = set(entry["passed"])
        if not reaching - passed and entry["status"]:
            return
        kills = self.kills.setdefault(path.name, Counter())
        # The costs of a test to those that have killed much here already, for their time.
        order = sorted(reaching - passed, key=lambda test: (self.cost[test] + 0.02) / (1 + kills[test]))
        budget = seconds
        tests: list[str] = []
        for test in order:
            if budget > 0 and (self.cost[test] <= budget or seconds > FIRST):
                tests.append(test)
                budget -= self.cost[test]
        if not tests and entry["status"]:
            return
        items = [self.items[test] for test in tests]
        limit = ENDLESS + 5 * int(sum(self.cost[test] for test in tests))
        status, found = in_fork(lambda: attempted(path, mutant, items), limit)
        if status == "ended" and found is not None:
            kills[tests[found]] += 1
            self._note(key, status="killed", passed=[], by=tests[found])
        elif status == "ended":
            self._note(key, status="survived" if reaching else "not reached", passed=sorted(passed | set(tests)))
        else:
            self._note(key, status=status, passed=[])

    def _note(self, key: str, **entry: Any) -> Any:
        entry = {"key": key, **entry}
        self.entries[key] = entry
        JOURNAL.parent.mkdir(exist_ok=True)
        file = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (json.dumps(entry) + "\n").encode())
        os.close(file)
        return entry

    def _counts(self, chosen: list[tuple[str, Path, Mutant]]) -> dict[str, int]:
        return dict(Counter(self.entries[key]["status"] for key, _, _ in chosen if key in self.entries))

    def _report(self, chosen: list[tuple[str, Path, Mutant]], skipped: Counter[str]) -> None:
        explained, files = EXPLAINED.read_text(), dict[str, Counter[str]]()
        for key, path, _ in chosen:
            status, name = self.entries[key]["status"], key.split(" ", 1)[1]
            if status not in ("killed", "timed out"):
                status = "explained" if f"`{name}`" in explained else status
            if status in ("survived", "not reached"):
                print(f"{status}: {name}")
            files.setdefault(f"{path.parent.name}/{path.name}", Counter())[status] += 1
        for file, counts in files.items():
            print(f"{file}: {counts.total()} mutants, {dict(counts)}")
        total = sum(files.values(), Counter[str]())
        print("not tried:", "; ".join(f"{skipped[kind]} {why}" for kind, why in SKIPPED.items()))
        print(
            f"{total.total()} mutants: {total['killed']} killed, {total['timed out']} timed out, "
            f"{total['explained']} survived and are explained, {total['survived']} survived, "
            f"{total['not reached']} not reached"
        )


def in_fork(work: Callable[[], Any], seconds: int) -> Result:
    """What the work gives in a process of its own: ("ended", value), or why there is none."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1), os.dup2(null, 2)
            value = work()
            os.write(writing, pickle.dumps(value))
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, code = os.waitpid(child, 0)
    if code == 0:
        return "ended", pickle.loads(answer)
    return ("timed out" if os.WIFSIGNALED(code) and os.WTERMSIG(code) == signal.SIGXCPU else "killed"), None


def measured(item: pytest.Item) -> tuple[float, Lines, list[str]]:
    """CPU seconds of a test, the lines of the trusted code that it runs, and the modules it loads."""
    before, known, files = time.process_time(), set(sys.modules), {str(path): path.name for path in FILES}
    if not succeeds(item, None):
        raise AssertionError(item.nodeid)
    cost, lines = time.process_time() - before, set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        name = files.get(frame.f_code.co_filename)
        if name is None:
            return None
        lines.add((name, frame.f_lineno))
        return trace

    modules = sorted(set(sys.modules) - known)
    threading.settrace(trace)
    sys.settrace(trace)
    succeeds(item, None)
    sys.settrace(None)
    return cost, lines, modules


def succeeds(item: pytest.Item, after: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


def attempted(path: Path, mutant: Mutant, items: list[pytest.Item]) -> int | None:
    """The first of the tests that fails on the mutant."""
    install(path, mutant)
    for k, item in enumerate(items):
        if not succeeds(item, items[k + 1] if k + 1 < len(items) else None):
            return k
    return None


def install(path: Path, mutant: Mutant) -> None:
    """Change the module as it is loaded."""
    module = importlib.import_module(f"argmaxable.{path.parent.name}.{path.stem}")
    tree = mutant.tree()
    if mutant.site.function:
        code = code_of(compile(tree, str(path), "exec"), mutant.site.function)
        found: Any = module
        for name in mutant.site.function.split("."):
            found = found.__dict__[name]
        for inner in ("fget", "func", "__func__"):
            found = getattr(found, inner, found)
        found.__code__ = code
    else:
        constants = [one for one in tree.body if isinstance(one, ast.Assign | ast.AnnAssign)]
        first = next(k for k, one in enumerate(constants) if one.lineno == mutant.site.lines.start)
        for statement in constants[first:]:
            redefine(module, statement, str(path))


def redefine(module: ModuleType, statement: ast.stmt, path: str) -> None:
    before = dict(vars(module))
    exec(compile(ast.Module([statement], []), path, "exec"), vars(module))
    for name, new in list(vars(module).items()):
        if name in before and new is not before[name]:
            for other in list(sys.modules.values()):
                if getattr(other, "__name__", "").startswith("argmaxable") and vars(other).get(name) is before[name]:
                    setattr(other, name, new)


def code_of(code: CodeType, name: str) -> CodeType:
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    for one in inner:
        if one.co_qualname == name:
            return one
        if name.startswith(one.co_qualname + "."):
            return code_of(one, name)
    raise LookupError(name)


if __name__ == "__main__":
    arguments = [*TESTS, "-q", "-n0", "--capture=no", "--tb=no", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception", f"--basetemp={tempfile.mkdtemp()}"]
    os.chdir(ROOT)
    sys.exit(pytest.main(arguments, plugins=[Plugin(sys.argv[1:])]))
