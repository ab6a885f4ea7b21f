"""What is behind the question mark of an address."""

from __future__ import annotations

from urllib.parse import unquote_plus

import pytest

import argmaxable as am
from argmaxable.serve.addresses import address_of, choice_from
from argmaxable.store import SortKey, VerdictQuery


def test_an_address_and_its_choice_are_inverse() -> None:
    choice = VerdictQuery("a&b=%", am.Status.UNDECIDED, am.Method.TWIN, SortKey.STEPS, is_down=True, page=3)
    pairs = dict(part.split("=") for part in address_of(choice).split("&"))
    assert choice_from({name: unquote_plus(value) for name, value in pairs.items()}, status=None) == choice


@pytest.mark.parametrize("page", ["-1", "0", "x", "9" * 30, "²", ""])
def test_a_page_that_is_no_number_is_the_first(page: str) -> None:
    assert choice_from({"page": page}, status=None).page == 0
