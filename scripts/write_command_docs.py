"""Write docs/commands.md from the commands' own --help; a test rejects stale text."""

from __future__ import annotations

import sys
from pathlib import Path

from click.testing import CliRunner

from argmaxable.cli.app import COMMANDS, app

TARGET = Path(__file__).parent.parent / "docs" / "commands.md"


def command_docs() -> str:
    """The page, as Markdown."""
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"})
    parts = ["# Commands\n\nWritten by `scripts/write_command_docs.py` from the commands' own help.\n"]
    for command in COMMANDS:
        text = runner.invoke(app, [command, "--help"], prog_name="argmaxable").output
        parts.append(f"## argmaxable {command}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(command_docs(), encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.name}\n")
