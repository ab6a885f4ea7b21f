"""`argmaxable serve` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from running import PROGRAM


@dataclass(frozen=True)
class Served:
    address: str
    process: subprocess.Popen[str]

    def stop(self) -> tuple[int, str]:
        """Press Ctrl-C; returns the exit code and what was said on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate()
        return self.process.returncode, said


@contextmanager
def serving(database: Path, *arguments: str | Path) -> Iterator[Served]:
    command = [*PROGRAM, "serve", "--db", str(database), "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line
        yield Served(line.split()[-1].rstrip("/"), process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
