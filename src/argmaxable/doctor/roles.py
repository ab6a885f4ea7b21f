"""Which classes a model can't do without: those that end a text, and the blank of a CTC recogniser."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.select import padding_classes, special_classes

if TYPE_CHECKING:
    from argmaxable.core.head import Head

_CONFIG, _GENERATION_CONFIG = "config.json", "generation_config.json"
# Above any configuration in use.
_LARGEST_FILE = 16 * 2**20
_ENDS = re.compile(
    r"""</s> | <(?i:eos|blank|eot|eod)> | \[EOS\] | <end_of_(?:turn|utterance)>
    | <[|｜] (?: end[▁_]?of[▁_]?(?:text|sentence|turn|utterance|seq) | eot_id | eom_id | im_end | end | eos
        | eot | return ) [|｜]>""",
    re.VERBOSE,
)


def ending_classes(model: str, head: Head) -> frozenset[int]:
    """The classes that end a text: as the files beside a local model declare, else by their labels."""
    declared = _declared(Path(model), head.classes)
    if declared:
        return declared
    labels = head.labels or ()
    return frozenset(number for number, label in enumerate(labels) if _ENDS.fullmatch(label.strip(" ")))


def ordinary_classes(head: Head, special: Collection[int]) -> frozenset[int]:
    """The classes that stand for text; all of them where there are no labels."""
    everything = frozenset(range(head.classes))
    if head.labels is None:
        return everything
    return everything - set(special_classes(head.labels, special)) - set(padding_classes(head.labels))


def _declared(path: Path, classes: int) -> frozenset[int]:
    if not path.exists():  # on the hub or in a package
        return frozenset()
    folder = path if path.is_dir() else path.parent
    config = _object(folder / _CONFIG)
    text = config.get("text_config")
    parts = [config, text] if isinstance(text, dict) else [config]
    # A classifier's configuration has the numbers of tokens too, which are not its classes.
    if classes not in [part.get("vocab_size") for part in parts]:
        return frozenset()
    for part in (_object(folder / _GENERATION_CONFIG), *parts):
        ends = part.get("eos_token_id")
        listed = ends if isinstance(ends, list) else [ends]
        found = frozenset(end for end in listed if isinstance(end, int) and 0 <= end < classes)
        if found:
            return found
    return frozenset()


def _object(path: Path) -> dict[str, Any]:
    """A JSON object in a file; nothing where there is none."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return {}
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
