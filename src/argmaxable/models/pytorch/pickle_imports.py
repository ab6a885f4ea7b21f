"""What a pickle would import, and how long it is, read off its instructions without running any of them."""

from __future__ import annotations

import io
import pickletools
import warnings
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any


def imports_in(data: bytes, *, pickles: int = 1) -> list[str]:
    """Names that pickles of protocol 4 and later, one after the other, look up; as far as they can be read.

    Earlier protocols have another instruction for it, about which PyTorch itself reports.
    """
    strings: list[str] = []
    found: list[str] = []
    for opcode, argument in instructions_in(data, pickles):
        if opcode == "STACK_GLOBAL":  # takes module and name from the stack
            found.append(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def end_in(data: bytes, *, pickles: int, instructions: int) -> bool:
    """Whether so many pickles, one after the other, end in the data, and after no more instructions."""
    names = (name for name, _ in islice(instructions_in(data, pickles), instructions))
    return sum(name == "STOP" for name in names) == pickles


def instructions_in(data: bytes, pickles: int = 1) -> Iterator[tuple[str, Any]]:
    """The instructions of pickles, one after the other, and their arguments; as far as they can be read."""
    # From memory, where no string can be declared longer than all there is.
    stream = io.BytesIO(data)
    with warnings.catch_warnings(), suppress(ValueError):  # where it is not a pickle, or no longer one
        warnings.simplefilter("ignore")  # about escapes in strings
        for opcode, argument, _ in chain.from_iterable(pickletools.genops(stream) for _ in range(pickles)):
            yield opcode.name, argument
