"""The program starts quickly: help and version load no command, a command loads only what it uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import Command

from argmaxable.cli.app import COMMANDS, GROUPS
from argmaxable.cli.app import command as loaded_command
from argmaxable.core.version import VERSION

PROGRAM = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from argmaxable.cli import main
main()
"""


def loaded_by(*arguments: str) -> set[str]:
    """The modules that the program has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_version_needs_no_library() -> None:
    assert not loaded_by("--version") & {"numpy", "click", "rich", "argmaxable.cli.app"}


@pytest.mark.parametrize("arguments", [("--version",), ("--version", "verify")])
def test_the_version_is_printed(command: Command, arguments: tuple[str, ...]) -> None:
    assert command(*arguments).out == f"argmaxable {VERSION}\n"


def test_help_loads_no_command() -> None:
    loaded = loaded_by("--help")
    assert not loaded & {"numpy", "scipy", "rich"}
    ours = {name.removeprefix("argmaxable.cli.") for name in loaded if name.startswith("argmaxable.cli.")}
    assert ours == {"app", "parameters"}


def test_a_run_loads_only_what_it_uses(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=np.eye(3))
    loaded = loaded_by("verify", str(tmp_path / "head.npz"), "--no-db", "--json")
    assert not loaded & {"scipy.linalg", "highspy", "onnx", "sqlalchemy", "jinja2", "rich", "torch", "ray"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_help_is_the_commands_own(name: str) -> None:
    paragraph = loaded_command(name).help.split("\n\n")[0]
    assert " ".join(paragraph.split()) == COMMANDS[name]


def test_help_lists_every_command(command: Command) -> None:
    listed = command("--help").out.partition("Verify:\n")[2].splitlines()
    names = [line.split()[0] for line in listed if line.startswith("  ")]
    assert names == list(COMMANDS)
    assert [line for line in listed if line.endswith(":")] == [f"{name}:" for name in list(GROUPS)[1:]]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_help_ends_before_the_window_does(name: str) -> None:
    widest = max(map(len, COMMANDS))
    assert 2 + widest + 2 + len(COMMANDS[name]) <= 80


def test_a_mistyped_command_is_corrected(command: Command) -> None:
    done = command("verfy")
    assert done.code == 2
    assert "Did you mean verify?" in done.err


def test_a_mistyped_option_is_corrected(command: Command) -> None:
    done = command("verify", "model.npz", "--domian", "box:3")
    assert done.code == 2
    assert "No such option --domian. Did you mean --domain?" in done.err
