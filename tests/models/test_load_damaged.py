"""Damaged files are read, or refused with an error of ours; `fuzz_damaged.py` makes thousands."""

from __future__ import annotations

import fuzz_damaged
import pytest
from damaged_models import MODELS


@pytest.mark.parametrize("format_name", sorted(MODELS))
def test_damaged_files_are_read_or_refused(format_name: str) -> None:
    found = fuzz_damaged.outcomes(format_name, 0, 60)
    assert [each for each in found if each not in ("read", "refused")] == []
    assert {"read", "refused"} <= set(found)
