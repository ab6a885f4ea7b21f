"""Running the program as the shell does, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from argmaxable.cli import main; main()"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1
        record = json.loads(self.out)
        assert isinstance(record, dict)
        return record


Command = Callable[..., Ran]


def in_a_process(*arguments: str | Path, **environment: str) -> Ran:
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return Ran(done.returncode, done.stdout.decode(encoding), without_progress(done.stderr.decode(encoding)))


def without_progress(err: str) -> str:
    """What stderr says besides how far the work is, which slow machines hear more often."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("… "))


def is_one_clear_line(ran: Ran) -> bool:
    return (
        ran.err.startswith("argmaxable: ")
        and ran.err.count("\n") == 1
        and "Traceback" not in ran.err
        and not ran.out
    )
