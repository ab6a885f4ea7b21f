"""Strategies that are cheap to draw from, and examples drawn once for all tests that read them."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy, characters

# What UTF-8 can encode, as in texts by default; but that asks the codec about each of a million characters,
# which takes seconds.
ENCODABLE = characters(exclude_categories=["Cs"])

Example = TypeVar("Example")


def drawn(strategy: SearchStrategy[Example], count: int) -> list[Example]:
    """So many examples, the same each time: often drawing costs more than a test. They are not made smaller
    when a test fails on one of them."""
    found: list[Example] = []

    @settings(derandomize=True, database=None, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def collect(example: Example) -> None:
        found.append(example)

    collect()
    return found
