"""Statements for other people's solvers: z3, cvc5 and a VIPR checker prove them by themselves."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import cvc5
import ml_dtypes
import numpy as np
import pytest
import z3
from vipr_checker import proven_range

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.core.errors import BundleError, DomainError, InputError
from argmaxable.core.verdict import Certificate, Method
from argmaxable.proofs.statements.smt2 import smt2_lines
from argmaxable.proofs.statements.statement import statements_of
from argmaxable.proofs.statements.write import StatementFormat, Written, write_statements

SMT2, VIPR = StatementFormat.SMT2, StatementFormat.VIPR
INF = np.inf
DOMAINS = {
    "box ±1": am.Box(-1, 1),
    "box ±100": am.Box(-100, 100),
    "rectified": am.Box(0, INF),
    "a box off the origin": am.Box(0.1, [0.3, INF, 7.0, 1e300]),
    "half open": am.Box(-INF, 2),
    "one point": am.Box(0.1, 0.1),
    "everywhere": am.Everywhere(),
}


@cache
def head_of(*, bias: bool = True, dtype: Any = np.float32) -> am.Head:
    random = np.random.default_rng(7)
    weight = random.normal(size=(24, 4)).astype(dtype)
    weight[5], weight[9, 1:], weight[11] = 0, 0, weight[10]  # a zero row, a sparse one, twins
    biases = random.normal(scale=0.3, size=24).astype(dtype)
    biases[11] = biases[10]
    return am.Head(weight, biases if bias else None, name="small")


@cache
def verified(bias: bool, domain: str) -> am.Result:
    return am.verify(head_of(bias=bias), DOMAINS[domain], engine=am.Engine(workers=1))


def written(result: am.Result, folder: Path, form: StatementFormat) -> dict[int, str]:
    """The text about each class."""
    done = write_statements(result.head, result.domain, result.verdicts, folder, form)
    assert done == Written(tuple(verdict.class_id for verdict in result.unargmaxable), ())
    assert len(list(folder.glob(f"*.{form}"))) == len(done.classes)
    return {c: (folder / f"class-{c}.{form}").read_text(encoding="utf-8") for c in done.classes}


def by_z3(text: str) -> str:
    solver = z3.Solver()
    solver.from_string(text)
    return str(solver.check())


def by_cvc5(text: str) -> str:
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "statement")
    answers = []
    while not (command := parser.nextCommand()).isNull():
        answers.append(command.invoke(solver, parser.getSymbolManager()))
    return "".join(answers).strip()


# ---------------------------------------------------------------------- what others prove


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("domain", DOMAINS)
def test_z3_and_cvc5_prove_every_unargmaxable_class(tmp_path: Path, domain: str, bias: bool) -> None:
    result = verified(bias, domain)
    assert result.unargmaxable
    for text in written(result, tmp_path, SMT2).values():
        assert (by_z3(text), by_cvc5(text)) == ("unsat", "unsat")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("domain", DOMAINS)
def test_vipr_certificates_prove_that_no_margin_is_positive(tmp_path: Path, domain: str, bias: bool) -> None:
    for text in written(verified(bias, domain), tmp_path, VIPR).values():
        assert proven_range(text) == ("-inf", "0")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_weights_of_every_format_are_stated(tmp_path: Path, dtype: Any) -> None:
    result = am.verify(head_of(dtype=dtype), am.Box(-10, 10), engine=am.Engine(workers=1))
    assert result.unargmaxable
    for text in written(result, tmp_path, SMT2).values():
        assert by_z3(text) == "unsat"
    for text in written(result, tmp_path, VIPR).values():
        proven_range(text)


def test_numbers_of_every_size_are_written_in_full(tmp_path: Path) -> None:
    scales = np.array([2.0**-1074, 1e-40, 1.0, 1e300])
    corners = np.array([[1, 1, 1, 1], [-1, -1, -1, -1], [0, 0, 0, 0]])
    result = am.verify(am.Head(corners * scales), am.Everywhere(), engine=am.Engine(workers=1))
    (text,) = written(result, tmp_path, SMT2).values()
    assert (by_z3(text), by_cvc5(text)) == ("unsat", "unsat")
    assert sorted(weights_in(text)[0]) == [Fraction(value) for value in scales]
    (text,) = written(result, tmp_path, VIPR).values()
    proven_range(text)


# ---------------------------------------------------------------------- that they say what they should


def weights_in(text: str) -> dict[int, list[Fraction]]:
    """The weights that a file of SMT-LIB has for each class, zeros left out."""
    found = {}
    for line in re.findall(r"\(define-fun .*", text):
        class_id = int(re.match(r"\(define-fun s(\d+) ", line)[1])  # type: ignore[index]
        factors = re.findall(r"\(\* (\(- )?([\d.]+)\)? x\d+\)", line)
        found[class_id] = [Fraction(digits) * (-1 if minus else 1) for minus, digits in factors]
    return found


def test_the_stored_weights_are_stated_exactly(tmp_path: Path) -> None:
    result = verified(True, "box ±1")
    for class_id, text in written(result, tmp_path, SMT2).items():
        stated = weights_in(text)
        assert class_id in stated
        for number, weights in stated.items():
            assert weights == [Fraction(float(value)) for value in result.head.weight[number] if value]


def test_the_stored_weights_are_in_the_certificate_too(tmp_path: Path) -> None:
    result = verified(True, "box ±1")
    for text in written(result, tmp_path, VIPR).values():
        for number, bias, terms in re.findall(r"^logit(\d+) E (\S+) \d+ (.*)$", text, re.MULTILINE):
            row = result.head.weight[int(number)]
            assert Fraction(bias) == Fraction(float(result.head.biases()[int(number)]))
            assert [Fraction(value) for value in terms.split()[3::2]] == [
                -Fraction(float(w)) for w in row if w
            ]


def test_the_plain_statement_is_proven_as_well() -> None:
    """What stands in a file when no exact weights are known. Without its last rival it can be satisfied."""
    result = verified(True, "everywhere")
    needed = 0
    for statement in statements_of(Checker(result.head, result.domain), result.verdicts):
        text = "\n".join(smt2_lines(statement, None))
        assert (by_z3(text), by_cvc5(text)) == ("unsat", "unsat")
        last = f"(> s{statement.class_id} s{statement.rivals[-1]})"
        needed += by_z3(text.replace(last, "true")) == "sat"
    assert needed >= len(result.unargmaxable) / 2


def test_weights_need_not_be_trusted() -> None:
    """Wrong weights, or too few rivals for them, make a statement that can be satisfied."""
    result = verified(True, "everywhere")
    for statement in statements_of(Checker(result.head, result.domain), result.verdicts):
        if len(statement.rivals) == 1:
            continue
        weights = (*range(1, len(statement.rivals)), 10**6)
        text = "\n".join(smt2_lines(statement, weights))
        last = f"(> y{statement.class_id} y{statement.rivals[-1]})"
        assert by_z3(text) == by_cvc5(text) == by_z3(text.replace(last, "true")) == "sat"


def test_a_wider_box_is_satisfiable_where_the_class_wins_in_it(tmp_path: Path) -> None:
    head = am.Head([[1.0], [0.0]], [0.0, 2.0])  # class 0 wins where x > 2
    result = am.verify(head, am.Box(-1, 2), engine=am.Engine(workers=1))
    text = written(result, tmp_path, SMT2)[0]
    assert by_z3(text) == "unsat"
    assert by_z3(text.replace("(<= x0 2.0)", "(<= x0 2.5)")) == "sat"


@pytest.mark.parametrize("where", [r"^logit\d+ E \S+ \d+ (.*)$", r"^sum .* \{ lin \d+ (.*) \} -1$"])
def test_a_certificate_with_another_number_is_refused(tmp_path: Path, where: str) -> None:
    """In the problem or among the multipliers: the variables no longer cancel."""
    for text in written(verified(True, "box ±1"), tmp_path, VIPR).values():
        for found in re.finditer(where, text, re.MULTILINE):
            *_, number = found[1].split()
            end = found.end(1)
            forged = f"{text[: end - len(number)]}{Fraction(number) + Fraction(1, 7)}{text[end:]}"
            with pytest.raises(ValueError, match="does not dominate"):
                proven_range(forged)


def test_labels_stay_inside_their_comment(tmp_path: Path) -> None:
    labels = ["a\n(assert false)", "b\r(assert false)\u2028(exit)", "词\ud800"]
    head = am.Head([[1.0], [-1.0], [0.0]], None, labels, name="x\n(assert false)")
    result = am.verify(head, am.Everywhere(), engine=am.Engine(workers=1))
    for form, mark in ((SMT2, ";"), (VIPR, "%")):
        (text,) = written(result, tmp_path, form).values()
        assert "(assert false)" in text
        assert all(line.startswith(mark) for line in text.splitlines() if "assert false" in line)


# ---------------------------------------------------------------------- what is refused


def forged(verdict: am.Verdict, certificate: Certificate | None) -> am.Verdict:
    return am.Verdict(
        verdict.class_id, "", am.Status.UNARGMAXABLE, -INF, 0.0, Method.NONE, None, certificate=certificate
    )


@pytest.mark.parametrize("form", StatementFormat)
def test_nothing_is_stated_that_its_certificate_does_not_prove(tmp_path: Path, form: StatementFormat) -> None:
    result = verified(True, "box ±1")
    winner = result.argmaxable[0]
    rivals = (
        None,
        Certificate(np.array([winner.class_id]), np.ones(1)),
        Certificate(np.arange(30), np.ones(30)),
    )
    for certificate in rivals:
        with pytest.raises(BundleError, match=rf"class {winner.class_id} is said to be unargmaxable"):
            write_statements(result.head, result.domain, [forged(winner, certificate)], tmp_path, form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("domain", [am.Ball(1.0), am.RMSNorm(np.ones(4)), am.Hull(np.eye(4))])
def test_domains_that_are_not_boxes_are_refused(tmp_path: Path, domain: am.Domain) -> None:
    with pytest.raises(DomainError, match="box:100"):
        write_statements(head_of(), domain, (), tmp_path, SMT2)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = verified(True, "box ±1")
    with pytest.raises(InputError, match="can't write"):
        write_statements(result.head, result.domain, result.verdicts, tmp_path / "file", SMT2)
