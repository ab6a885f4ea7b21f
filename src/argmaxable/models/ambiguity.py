"""Files that two programs could read differently are refused: what is proven must be about the weights that
run. Here are the error for all formats, and JSON, whose objects may have a key twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from argmaxable.core.errors import AmbiguousError, LoadError

SAVE_AGAIN = "Save the model again with the library that made it."


def ambiguous(what: str, remedy: str = SAVE_AGAIN) -> AmbiguousError:
    """The error for a file in which `what`, a whole sentence without its full stop, leaves two readings."""
    return AmbiguousError(
        f"can be read in two ways: {what}. Programs differ in which they take, so the file was refused. "
        f"{remedy}"
    )


def twice(names: Iterable[str]) -> str | None:
    """The first name that occurs more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def parse_json(text: str | bytes, what: str) -> Any:
    """The value of a JSON text, `what` being what errors call it. Bytes are UTF-8.

    Raises AmbiguousError where an object has a key twice, LoadError where the text is not JSON.
    """
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            repeated.append(twice(key for key, _ in pairs) or "")
        return value

    try:
        # Python would take bytes for UTF-16 or UTF-32 too, other programs refuse them.
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(decoded, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:  # UTF-8's errors are ValueErrors too
        raise LoadError(
            f"{what} is not valid JSON: {error}. It may be cut short or damaged; fetch it again."
        ) from error
    if repeated:
        raise AmbiguousError(
            f"{what} {ambiguous(f'the key {repeated[0][:80]!r} occurs twice in one object')}"
        )
    return value
