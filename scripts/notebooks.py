"""Executes the tutorials of docs/tutorials from a clean kernel: `make notebooks`.

    python -m scripts.notebooks [NAME...]      executed notebooks go to .cache/notebooks

A tutorial is a Python file in the percent format that editors and Jupytext know. `# %%` begins a cell of
code, `# %% [markdown]` a cell of text. In a cell of code, `# !command` is a command for the shell and
`# %word` one for IPython. Each tutorial runs in an empty folder. A cell that raises, or a command that
fails, ends the run.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "tutorials"
EXECUTED = ROOT / ".cache" / "notebooks"
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
# What runs in place of `!command`: IPython would give it a terminal, with all its control characters. Exit
# codes are those of `verify` (all argmaxable, some unargmaxable, some undecided); any other is a mistake.
_RUN = """\
import subprocess as _subprocess
_done = _subprocess.run(["bash", "-c", {command!r}], capture_output=True, text=True)
print(_done.stdout, end="")
assert _done.returncode in (0, 1, 3), _done.stderr
"""
_SECONDS = 300


def tutorials() -> list[str]:
    """The names of all tutorials."""
    return sorted(path.stem for path in SOURCES.glob("*.py"))


def read(source: Path) -> NotebookNode:
    """The notebook that a Python file in percent format stands for."""
    _, *parts = _CELL.split(source.read_text(encoding="utf-8"))
    cells = []
    for number, (kind, body) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        text = body.strip("\n")
        if kind.strip() == "[markdown]":
            cell = new_markdown_cell(re.sub(r"^# ?", "", text, flags=re.MULTILINE))
        else:
            cell = new_code_cell(re.sub(r"^# (?=[!%])", "", text, flags=re.MULTILINE))
        cell["id"] = f"cell-{number}"
        cells.append(cell)
    notebook: NotebookNode = new_notebook(cells=cells)
    return notebook


def _in_a_pipe(line: re.Match[str]) -> str:
    return _RUN.format(command=line[1])


def execute(name: str) -> float:
    """Runs a tutorial and writes its notebook; the seconds it took."""
    notebook, start = read(SOURCES / f"{name}.py"), time.monotonic()
    sources = [cell.source for cell in notebook.cells]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"^!(.*)$", _in_a_pipe, cell.source, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=_SECONDS, resources=place, extra_arguments=["--log-level=40"]
        ).execute()
    for cell, source in zip(notebook.cells, sources, strict=True):
        cell.source = source
        cell.metadata.pop("execution", None)  # times, which differ from run to run
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, EXECUTED / f"{name}.ipynb")
    return time.monotonic() - start


# ---------------------------------------------------------------------- pages


def as_markdown(path: Path) -> tuple[str, dict[str, bytes]]:
    """An executed notebook as a page, and the pictures that it shows by name."""
    notebook, parts = nbformat.read(path, as_version=4), []
    pictures: dict[str, bytes] = {}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        is_command = all(line.startswith("!") for line in cell.source.splitlines())
        source = re.sub(r"^!", "$ ", cell.source, flags=re.MULTILINE)
        parts.append(f"```{'console' if is_command else 'python'}\n{source}\n```")
        for place, output in enumerate(cell.outputs):
            text, picture = _shown(output, f"{path.stem}-{number}-{place}.png")
            parts.append(text)
            pictures |= picture
    title, rest = parts[0].split("\n", 1) if "\n" in parts[0] else (parts[0], "")
    about = f"*A notebook, executed when this site was built: [download it]({path.name}).*"
    return "\n\n".join([title, about, rest, *parts[1:]]) + "\n", pictures


def _shown(output: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """An output as Markdown: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![What this cell draws]({name})", {name: base64.b64decode(data["image/png"])}
    if "text/html" in data:  # a blank line would end the block of HTML
        lines = [line for line in data["text/html"].splitlines() if line.strip()]
        return "\n".join(['<div class="output">', *lines, "</div>"]), {}
    text = output.text if output.output_type == "stream" else data.get("text/plain", "")
    if text.startswith("<Figure"):
        raise ValueError(f"{name}: the figure is not drawn, only named; put `# %matplotlib inline` before it")
    return f'<div class="output">\n\n```text\n{text.rstrip()}\n```\n\n</div>', {}


def main() -> None:
    # Commands of the tutorials are those of this environment, and print as to a file.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
    for name in sys.argv[1:] or tutorials():
        print(f"{name}: {execute(name):.1f} s", flush=True)


if __name__ == "__main__":
    main()
