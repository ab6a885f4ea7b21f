"""What a pickle would import, read off its instructions without running any of them."""

from __future__ import annotations

import io
import pickletools
import warnings
from contextlib import suppress
from itertools import chain


def imports_in(data: bytes, *, pickles: int = 1) -> list[str]:
    """Names that pickles of protocol 4 and later, one after the other, look up; as far as they can be read.

    Earlier protocols have another instruction for it, about which PyTorch itself reports.
    """
    strings: list[str] = []
    found: list[str] = []
    # From memory, where no string can be declared longer than all there is.
    stream = io.BytesIO(data)
    with warnings.catch_warnings(), suppress(ValueError):  # where it is no pickle, or no longer one
        warnings.simplefilter("ignore")  # about escapes in strings
        for opcode, argument, _ in chain.from_iterable(pickletools.genops(stream) for _ in range(pickles)):
            if opcode.name == "STACK_GLOBAL":  # takes module and name from the stack
                found.append(".".join(strings[-2:]))
            elif isinstance(argument, str):
                strings.append(argument)
    return found
