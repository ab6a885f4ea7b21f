"""The classes of a spaCy component: moves of a transition system, or the labels in the component's cfg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json, twice
from argmaxable.models.message_pack import DAMAGED, read_message

# By the number of an action. Missing annotation has the number 0 in BILUO but is never a move.
BILUO = ("", "B", "I", "L", "U", "O")
ARC_EAGER = ("S", "D", "L", "R", "B")
# The largest cfg in use, of a morphologizer, has 65 kB.
_LARGEST_CFG = 16 * 2**20


def read_moves(folder: Path, actions: Sequence[str]) -> tuple[str, ...]:
    """The moves of a transition system in the order of the model's rows; raises LoadError.

    As `TransitionSystem.initialize_actions` numbers them: by action, then by how often the label occurred,
    then by the label, both downwards; labels with negative counts were added later and come last.
    """
    path = _require(folder / "moves")
    message = read_message(path, "the moves of a transition system")
    text = message.get("moves") if isinstance(message, dict) else None
    if not isinstance(text, str):
        raise LoadError(f"{folder.name}/moves holds no moves. {DAMAGED}")
    counts = parse_json(text, f"{folder.name}/moves")
    moves: dict[tuple[int, str], None] = {}
    later: list[tuple[int, str]] = []
    added_to: dict[str, list[int]] = {}
    for action, labels in sorted(_checked(counts, len(actions)).items()):
        for count, label in sorted(((count, label) for label, count in labels.items()), reverse=True):
            if count < 0:
                later.append((count, label))
                added_to.setdefault(label, []).append(action)
            else:
                moves[action, label] = None
    for label in dict.fromkeys(label for _, label in sorted(later, reverse=True)):
        moves |= {(action, label): None for action in added_to[label]}
    if actions == BILUO:  # where nothing is missing, and whatever is outside an entity has no label
        moves = {(action, label): None for action, label in moves if action and not (action == 5 and label)}
    return tuple(_move_name(actions, action, label) for action, label in moves)


def _move_name(actions: Sequence[str], action: int, label: str) -> str:
    """What spaCy calls a move: of BILUO every action but O has a label, which may be empty."""
    has_label = label or (actions == BILUO and actions[action] != "O")
    return f"{actions[action]}-{label}" if has_label else actions[action]


def _checked(counts: Any, actions: int) -> dict[int, dict[str, int]]:
    """Counts of labels by action; raises LoadError where they are something else."""
    known = {str(number) for number in range(actions)}
    if (
        not isinstance(counts, dict)
        or not set(counts) <= known
        or not all(isinstance(labels, dict) for labels in counts.values())
        or not all(type(count) is int for labels in counts.values() for count in labels.values())
    ):
        raise LoadError(f"the moves are not counts of labels for {actions} actions. {DAMAGED}")
    return {int(action): labels for action, labels in counts.items()}


def read_cfg(folder: Path, key: str) -> tuple[str, ...]:
    """The labels under a key of a component's cfg, a list or the keys of a dictionary; raises LoadError."""
    path = _require(folder / "cfg")
    if path.stat().st_size > _LARGEST_CFG:
        raise LoadError(f"{folder.name}/cfg has {path.stat().st_size:,} bytes, expected {_LARGEST_CFG:,}.")
    cfg = parse_json(path.read_bytes(), f"{folder.name}/cfg")
    labels = cfg.get(key) if isinstance(cfg, dict) else None
    names = list(labels) if isinstance(labels, list | dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise LoadError(f"{folder.name}/cfg has no labels ({key}). {DAMAGED}")
    if (repeated := twice(names)) is not None:
        raise ambiguous(f"{folder.name}/cfg has the label {repeated[:80]!r} twice")
    return tuple(names)


def _require(path: Path) -> Path:
    if not path.is_file():
        raise LoadError(f"{path.parent.name}/{path.name} is missing. Fetch the whole pipeline.")
    return path
