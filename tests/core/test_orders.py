"""Orders as sets of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from argmaxable.core.errors import InputError
from argmaxable.core.orders import Order, as_order, chain, top


def pairs(order: Order) -> list[tuple[int, int]]:
    return [(above, below) for above, below in order.pairs.tolist()]


def test_a_chain_compares_each_class_with_the_next() -> None:
    assert pairs(chain([4, 0, 2])) == [(4, 0), (0, 2)]


def test_a_chain_of_one_class_asks_for_nothing() -> None:
    assert pairs(chain([4])) == []


def test_the_top_of_a_ranking_puts_all_others_below_its_last_class() -> None:
    assert pairs(top([2, 0], of=5)) == [(2, 0), (0, 1), (0, 3), (0, 4)]


def test_a_full_ranking_may_be_any_sequence_of_all_classes() -> None:
    for ranking in ([2, 0, 1], (2, 0, 1), np.array([2, 0, 1])):
        assert pairs(as_order(ranking, 3)) == [(2, 0), (0, 1)]


def test_an_order_can_not_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Order([(0, 1)]).pairs[0, 0] = 2


def test_pairs_in_a_circle_are_found_as_such() -> None:
    order = Order([(5, 1), (0, 1), (1, 2), (2, 3), (3, 1), (2, 4)])
    cycle = order.cycle()
    assert cycle is not None
    circle = [(above, below) for above, below in cycle.tolist()]
    assert set(circle) <= set(pairs(order))
    assert [below for _, below in circle] == [above for above, _ in circle[1:] + circle[:1]]


def test_a_class_above_itself_is_a_circle() -> None:
    cycle = Order([(0, 1), (2, 2)]).cycle()
    assert cycle is not None
    assert cycle.tolist() == [[2, 2]]


def test_an_order_without_a_circle_has_none() -> None:
    assert Order([(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]).cycle() is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: top([], of=3), "at least one class"),
        (lambda: top([0, 1, 0], of=3), "class 0 appears twice in the ranking 0 > 1 > 0"),
        (lambda: top([0, 3], of=3), "class 3 does not exist: the head has classes 0 to 2"),
        (lambda: as_order([0, 1], 3), "names all 3 classes, found 2"),
        (lambda: as_order(chain([0, -1]), 3), "class -1 does not exist"),
        (lambda: as_order(["cat", "dog"], 2), "given by their numbers"),  # type: ignore[list-item]
        (lambda: Order([(0, 1, 2)]), "found \\[0, 1, 2\\]"),
        (lambda: Order([(0.5, 1)]), "given by their numbers"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_order_is_refused_with_a_reason(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=message):
        make()
