"""Lets mutmut 3.8 run with pytest 9.2, where the attribute of a test that it reads has another name.

`make mutants` loads it with `pytest -p scripts.mutmut_plugin`.
"""

from __future__ import annotations

import pytest

if not hasattr(pytest.Item, "_nodeid"):
    pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]  # that is the point
