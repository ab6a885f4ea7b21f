"""Texts cut into class numbers by a Hugging Face tokenizer.json, which needs the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from argmaxable.core.errors import InputError


def read_tokenizer(path: Path, classes: int) -> Callable[[str], list[int | None]]:
    """A function from a text to the numbers of its tokens, without special ones; None for a number beyond the
    head's classes. Raises InputError."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError("--tokenizer needs a library: pip install 'argmaxable[text]'.") from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exceptions
        raise InputError(f"--tokenizer {path}: not a tokenizer.json of Hugging Face ({error}).") from error

    def cut(text: str) -> list[int | None]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return [number if number < classes else None for number in ids]

    return cut
