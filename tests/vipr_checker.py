"""A checker for VIPR certificates without integer variables: the format's rules for `lin`, in rationals.

Written from the specification of VIPR 1.0, so that the tests need no compiler; viprchk is the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

SIGNS = {"L": -1, "E": 0, "G": 1}


@dataclass(frozen=True)
class Constraint:
    left: dict[int, Fraction]
    sense: str
    right: Fraction


def proven_range(text: str) -> tuple[str, str]:
    """The range of the objective that the certificate proves; ValueError when it proves nothing."""
    tokens = iter([token for line in text.splitlines() if not line.startswith("%") for token in line.split()])
    expect(tokens, "VER", "1.0", "VAR")
    variables = int(next(tokens))
    names = [next(tokens) for _ in range(variables)]
    if len(set(names)) != variables:
        raise ValueError("a variable's name occurs twice")
    expect(tokens, "INT", "0", "OBJ", "max")
    objective = terms(tokens)
    expect(tokens, "CON")
    count, bounds = int(next(tokens)), int(next(tokens))
    constraints = [constraint(tokens, objective) for _ in range(count)]
    if any(len(each.left) != 1 for each in constraints[:bounds]):
        raise ValueError("a bound on more than one variable")
    expect(tokens, "RTP", "range")
    lower, upper = next(tokens), next(tokens)
    expect(tokens, "SOL", "0", "DER")
    for _ in range(int(next(tokens))):
        derived = constraint(tokens, objective)
        expect(tokens, "{", "lin")
        found = combination(constraints, terms(tokens))
        expect(tokens, "}", "-1")
        if not dominates(found, derived):
            raise ValueError(f"{found} does not dominate {derived}")
        constraints.append(derived)
    if next(tokens, None) is not None or lower != "-inf":
        raise ValueError("the certificate does not end where it should")
    if not dominates(constraints[-1], Constraint(objective, "L", Fraction(upper))):
        raise ValueError("the last constraint is not the one to prove")
    return lower, upper


def expect(tokens: Iterator[str], *wanted: str) -> None:
    for word in wanted:
        if next(tokens) != word:
            raise ValueError(f"{word} is missing")


def terms(tokens: Iterator[str]) -> dict[int, Fraction]:
    count = int(next(tokens))
    found = {int(next(tokens)): Fraction(next(tokens)) for _ in range(count)}
    if len(found) != count:
        raise ValueError("a number occurs twice")
    return found


def constraint(tokens: Iterator[str], objective: dict[int, Fraction]) -> Constraint:
    next(tokens)  # its name
    sense, right = next(tokens), Fraction(next(tokens))
    first = next(tokens)
    if first == "OBJ":
        return Constraint(objective, sense, right)
    return Constraint(terms(iter([first, *(next(tokens) for _ in range(2 * int(first)))])), sense, right)


def combination(constraints: list[Constraint], factors: dict[int, Fraction]) -> Constraint:
    left: dict[int, Fraction] = {}
    right = Fraction(0)
    signs = {SIGNS[constraints[number].sense] * sign(factor) for number, factor in factors.items()}
    if signs >= {-1, 1}:
        raise ValueError("inequalities of both directions are added up")
    for number, factor in factors.items():
        for variable, coefficient in constraints[number].left.items():
            left[variable] = left.get(variable, Fraction(0)) + factor * coefficient
        right += factor * constraints[number].right
    sense = "L" if -1 in signs else "G" if 1 in signs else "E"
    return Constraint({key: value for key, value in left.items() if value}, sense, right)


def sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def dominates(strong: Constraint, weak: Constraint) -> bool:
    """Only as far as it is needed here: for upper bounds."""
    return (
        weak.sense == "L"
        and strong.sense in ("L", "E")
        and strong.left == weak.left
        and strong.right <= weak.right
    )
