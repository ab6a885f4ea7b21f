"""Examples of a strategy, drawn once for all tests that read them: often drawing costs more than a test."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

Example = TypeVar("Example")


def drawn(strategy: SearchStrategy[Example], count: int) -> list[Example]:
    """So many examples, the same each time. They are not made smaller when a test fails on one of them."""
    found: list[Example] = []

    @settings(derandomize=True, database=None, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def collect(example: Example) -> None:
        found.append(example)

    collect()
    return found
