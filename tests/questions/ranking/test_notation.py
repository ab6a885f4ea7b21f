"""Orders as people write them."""

from __future__ import annotations

import pytest

import argmaxable as am
from argmaxable.questions.ranking.notation import Chain, join, parse_chain

LABELS = ["cat", "dog", " the", ">=", 'say "hi"', "7", "twin", "twin", "rest", "a > b", " ", "\n"]
HEAD = am.Head([[float(number)] for number in range(len(LABELS))], labels=LABELS)
BARE = am.Head([[0.0], [1.0], [2.0]])


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("cat > dog", (0, 1)),
        ("cat>dog>the", (0, 1, 2)),
        ("  dog  >  ' the'  ", (1, 2)),
        ('" the" > cat', (2, 0)),
        ('">=" > cat', (3, 0)),
        ('cat > "a > b" > dog', (0, 9, 1)),
        ('"say ""hi""" > cat', (4, 0)),
        ('say "hi" > cat', (4, 0)),
        ("#5 > 3", (5, 3)),
        ('"7" > cat', (5, 0)),
        ("#7 > #6", (7, 6)),
        ('"rest" > cat', (8, 0)),
        ('cat > "rest"', (0, 8)),
        ("rest > cat", (8, 0)),  # not the last: only the label can be meant
        ('" " > cat', (10, 0)),
        (r"\u{a} > cat", (11, 0)),  # as it is printed
        ("cat > dog > cat", (0, 1, 0)),
    ],
)
def test_a_chain_names_classes_by_label_or_number(text: str, classes: tuple[int, ...]) -> None:
    assert parse_chain(text, HEAD) == Chain(classes, has_rest=False)


def test_without_labels_classes_are_numbers() -> None:
    assert parse_chain("2 > #0 > 1", BARE) == Chain((2, 0, 1), has_rest=False)


def test_rest_stands_for_all_other_classes() -> None:
    assert parse_chain("2 > rest", BARE) == Chain((2,), has_rest=True)
    assert parse_chain("2 > rest", BARE).order(3).pairs.tolist() == [[2, 0], [2, 1]]
    assert parse_chain("cat > dog > #rest", HEAD) == Chain((0, 1), has_rest=True)


def test_a_chain_is_shown_in_labels_that_can_be_seen() -> None:
    assert parse_chain("the > #11 > #rest", HEAD).text(HEAD) == r"' the' > \u{a} > every other class"


def test_several_chains_make_one_order() -> None:
    chains = [parse_chain(text, HEAD) for text in ("cat > dog", "the > dog")]
    assert join(chains, HEAD.classes).pairs.tolist() == [[0, 1], [2, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat", "compares nothing"),
        ("", "a class is missing"),
        ("cat >", "a class is missing"),
        ("> cat", "a class is missing"),
        ("cat > > dog", "a class is missing"),
        ('cat > "dog', "a quote is not closed"),
        ('"cat" mouse > dog', "a quote is not closed, or does not stand alone"),
        ("cat > mouse", "no class has the label 'mouse' \\(12 labels\\)"),
        ("7 > cat", 'Write #7 for the number or "7" for the label'),
        ("twin > cat", "2 classes have the label 'twin'. Write one of #6, #7"),
        ("cat > rest", 'Write "rest" in quotes for it, or #rest for all other classes'),
        ("#12 > cat", "class 12 does not exist: the head has classes 0 to 11"),
        ("99999999999999999999 > cat", "class 99999999999999999999 does not exist"),
    ],
)
def test_what_is_not_clear_is_refused_with_a_way_out(text: str, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        parse_chain(text, HEAD)


def test_labels_of_a_head_without_any_are_refused() -> None:
    with pytest.raises(am.InputError, match="the head has no labels"):
        parse_chain("cat > dog", BARE)
