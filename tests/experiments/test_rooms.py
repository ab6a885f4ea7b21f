"""Which rooms of experiments/ may import which: an experiment from all, the harness from none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import experiments

HOME = Path(experiments.__file__).parent
ALLOWED = {
    "harness": set(),
    "heads": set(),
    "models": {"harness"},
    "language": {"harness", "models"},
    "synthetic": {"harness"},
    "page": {"harness", "models", "language", "synthetic", "synthetic_bottleneck"},
}


def imported(path: Path) -> Iterator[str]:
    """The room or experiment of each import of a module below experiments/."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "experiments":
            _, *rooms = node.module.split(".")
            yield from rooms[:1] or [name.name for name in node.names]


def test_every_folder_with_modules_is_a_room() -> None:
    assert {path.parent.name for path in HOME.glob("*/__init__.py")} == set(ALLOWED)


def test_rooms_import_what_is_below_them() -> None:
    wrong = [
        f"{path.relative_to(HOME)} imports {name}"
        for room, below in ALLOWED.items()
        for path in sorted((HOME / room).glob("*.py"))
        for name in imported(path)
        if name not in {room, *below}
    ]
    assert wrong == []
