"""Numbers in JSON that nobody vouches for, and how claimed bounds are rounded before they are written."""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from argmaxable.core.domain import float_of_hex

# JSON has whole numbers of any size; class numbers and shares are far below this.
LARGEST = 2**62


def parsed_json(text: str) -> Any:
    """The value of a JSON text; raises ValueError, also where an object has a key twice: which of the two
    values counts would be the reader's choice."""
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


# A bundle has a line for each class: making a decoder for each would take as long as decoding.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def whole_number(value: Any, low: int, high: int) -> int:
    """A whole number from low to high − 1 that JSON gave; raises ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < high:
        raise ValueError(f"{value!r} is not a whole number from {low} to {high - 1}")
    return value


def only_one_of(line: dict[str, Any], *keys: str) -> None:
    """Raise ValueError where a line has two of these keys: which evidence counts would be the reader's
    choice."""
    found = [key for key in keys if key in line]
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)} exclude each other")


def finite_number(value: Any, missing: float) -> float:
    """A finite number that JSON gave, `missing` for null; raises ValueError for anything else."""
    if value is None:
        return missing
    if not isinstance(value, float | int) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def positive_hex(value: Any) -> float:
    """A finite float above 0 from its hexadecimal form; raises ValueError or TypeError for anything else."""
    number = float_of_hex(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{value!r} is not a finite number above 0")
    return number


def whole_hex(value: Any) -> int:
    """A whole number of any size from its hexadecimal form, the one and only; raises ValueError."""
    number = int(text(value), 16)
    if hex(number) != value:
        raise ValueError(f"{value!r:.40} is not a whole number in hexadecimal form")
    return number


def text(value: Any) -> str:
    """Text that JSON gave; raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def rounded_down(value: float, digits: int) -> float | None:
    """The number in so few digits, never above it; None when it is infinite."""
    return _rounded(value, Context(prec=digits, rounding=ROUND_FLOOR))


def rounded_up(value: float, digits: int) -> float | None:
    """The number in so few digits, never below it; None when it is infinite."""
    return _rounded(value, Context(prec=digits, rounding=ROUND_CEILING))


def _rounded(value: float, context: Context) -> float | None:
    return float(context.create_decimal_from_float(value)) if math.isfinite(value) else None
