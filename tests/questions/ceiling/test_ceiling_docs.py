"""docs/ceilings.md: its examples run, and print what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "ceilings.md"


def test_the_examples_of_the_page_run_as_they_stand() -> None:
    text = "\n".join(line for line in PAGE.read_text(encoding="utf-8").split("\n") if line[:3] != "```")
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(examples)
    assert runner.summarize(verbose=False).failed == 0
    assert len(examples.examples) >= 6
