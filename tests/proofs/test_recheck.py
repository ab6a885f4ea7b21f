"""Re-checking a bundle: what a run proved is proven again, and what was tampered with never is."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argmaxable import (
    Ball,
    Box,
    BundleError,
    Domain,
    Everywhere,
    Head,
    LayerNorm,
    Point,
    Recheck,
    Result,
    RMSNorm,
    Status,
    Verdict,
    parse_domain,
    read_bundle,
    recheck,
    verify,
    write_bundle,
)
from argmaxable.run.plan import ONE_PROCESS
from conformance.forge import reseal, seal_files

FEATURES = 4
GAIN = np.linspace(0.5, 2.0, FEATURES)
SHIFT = np.linspace(-0.1, 0.1, FEATURES)
DOMAINS: dict[str, Domain] = {
    "box": Box(-100.0, 100.0),
    "box of ranges": Box(-np.arange(1.0, 5.0), np.arange(1.0, 5.0)),
    "half-open box": Box(0.0, np.inf),
    "everywhere": Everywhere(),
    "ball": Ball(10.0),
    "RMSNorm": RMSNorm(GAIN),
    "LayerNorm": LayerNorm(GAIN, SHIFT),
}

Line = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def random_rows(seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """40 rows of which the first five lie deep inside the hull of the others, and their biases."""
    generator = np.random.default_rng(seed)
    weight = generator.normal(size=(40, FEATURES)).astype(np.float32)
    weight[:5] = weight[10:].mean(axis=0) + 0.01 * generator.normal(size=(5, FEATURES))
    bias = (0.1 * generator.normal(size=40)).astype(np.float32)
    bias[:5] -= 300
    return weight, bias


def plain_head(*, bias: bool, dtype: Any = np.float32) -> Head:
    weight, biases = random_rows(0)
    return Head(weight.astype(dtype), biases.astype(dtype) if bias else None)


def tied_head(*, bias: bool) -> Head:
    """Ties at the top (30, 31), a tie that others dominate (6, 7), a twin with less bias (33, 34)."""
    weight, biases = random_rows(0)
    weight[30] = weight[31] = 3 * weight[31]
    weight[6:8] = weight[10:].mean(axis=0)
    weight[33] = weight[34]
    biases[30:32], biases[6:8], biases[33], biases[34] = 5, -300, 1, 2
    return Head(weight, biases if bias else None)


def narrow_head() -> Head:
    """Classes that win only in intervals of 2^-26 around x = 1/4, which float32 points miss."""
    weight = np.zeros((9, FEATURES))
    weight[:7, 0] = 0.25 + np.arange(7) * 2.0**-26
    weight[7:, 1] = 1, -1
    return Head(weight, np.append(-(weight[:7, 0] ** 2) / 2, [-5.0, -5.0]))


def smaller(head: Head) -> Head:
    """24 classes of a head, among them those deep inside and those that tie: it meets many domains."""
    kept = np.r_[:8, 24:40]
    return Head(head.weight[kept], None if head.bias is None else head.bias[kept])


HEADS: dict[str, Callable[[], Head]] = {
    "with bias": lambda: smaller(plain_head(bias=True)),
    "without bias": lambda: smaller(plain_head(bias=False)),
    "in float16": lambda: smaller(plain_head(bias=True, dtype=np.float16)),
    "with ties and bias": lambda: smaller(tied_head(bias=True)),
    "with ties, without bias": lambda: smaller(tied_head(bias=False)),
    "narrow": narrow_head,
    "of one class": lambda: Head(np.ones((1, FEATURES))),
    "of one row": lambda: Head(np.ones((5, FEATURES))),
}


# ---------------------------------------------------------------------- genuine bundles


@functools.cache
def finished(head_name: str, domain_name: str) -> Result:
    """A run that several tests only read."""
    return verify(HEADS[head_name](), DOMAINS[domain_name], engine=ONE_PROCESS)


@functools.cache
def finished_whole() -> Result:
    """A run on all of `random_rows`."""
    return verify(plain_head(bias=True), DOMAINS["box"], engine=ONE_PROCESS)


@pytest.mark.parametrize("domain_name", DOMAINS)
@pytest.mark.parametrize("head_name", HEADS)
def test_every_verdict_of_a_finished_run_is_proven(head_name: str, domain_name: str, tmp_path: Path) -> None:
    head, result = HEADS[head_name](), finished(head_name, domain_name)
    write_bundle(result, tmp_path)
    found = recheck(read_bundle(tmp_path), head)
    assert found == Recheck(head.classes - len(result.undecided), len(result.undecided), 0, ())


@pytest.mark.parametrize("domain_name", DOMAINS)
@pytest.mark.parametrize("head_name", HEADS)
def test_every_unargmaxable_class_is_proven_by_rationals_alone(
    head_name: str, domain_name: str, tmp_path: Path
) -> None:
    head, result = HEADS[head_name](), finished(head_name, domain_name)
    write_bundle(result, tmp_path)
    heard: list[tuple[int, int]] = []
    found = recheck(
        read_bundle(tmp_path),
        head,
        rational=True,
        progress=lambda told: heard.append((told.done, told.total)),
    )
    assert found == Recheck(head.classes - len(result.undecided), len(result.undecided), 0, ())
    unargmaxable = len(result.unargmaxable)
    assert heard == [(done, unargmaxable) for done in range(unargmaxable + 1)]


@pytest.mark.parametrize("domain_name", ["box", "everywhere", "ball", "RMSNorm", "LayerNorm"])
def test_heads_of_general_rows_leave_nothing_undecided(domain_name: str) -> None:
    for name in ("with bias", "without bias", "with ties and bias"):
        assert not finished(name, domain_name).undecided


def test_chosen_classes_are_proven_and_the_others_missing(tmp_path: Path) -> None:
    head = plain_head(bias=True)
    write_bundle(verify(head, only=[3, 17, 39], engine=ONE_PROCESS), tmp_path)
    assert recheck(read_bundle(tmp_path), head) == Recheck(3, 0, 37, ())


def test_an_interrupted_run_fails_no_claim(tmp_path: Path) -> None:
    head = plain_head(bias=True)
    result = verify(head, engine=ONE_PROCESS, time_limit=1e-9)
    assert result.undecided
    write_bundle(result, tmp_path)
    decided = 40 - len(result.undecided)
    assert recheck(read_bundle(tmp_path), head) == Recheck(decided, len(result.undecided), 0, ())


def test_a_run_that_stops_in_the_middle_keeps_what_it_proved(tmp_path: Path) -> None:
    head = plain_head(bias=True)

    def interrupt(progress: Any) -> None:
        if progress.phase == "solving":
            raise KeyboardInterrupt

    result = verify(head, engine=ONE_PROCESS, progress=interrupt)
    assert not result.is_complete
    assert result.argmaxable
    assert result.undecided
    write_bundle(result, tmp_path)
    found = recheck(read_bundle(tmp_path), head)
    assert found.proven == 40 - len(result.undecided)
    assert not found.failures


def test_a_group_of_3000_ties_is_proven(tmp_path: Path) -> None:
    weight = np.random.default_rng(3).normal(size=(3060, 6)).astype(np.float32)
    weight[60:] = 4 * weight[0]
    head = Head(weight)
    write_bundle(verify(head, engine=ONE_PROCESS), tmp_path)
    assert recheck(read_bundle(tmp_path), head) == Recheck(3060, 0, 0, ())


def test_a_copy_of_the_head_by_value_is_the_same_head(tmp_path: Path) -> None:
    write_bundle(finished_whole(), tmp_path)
    weight, bias = random_rows(0)
    again = Head(np.asfortranarray(weight), bias, labels=range(40), name="another name")
    assert recheck(read_bundle(tmp_path), again).proven == 40


@pytest.mark.parametrize("change", ["a weight", "a bias", "no bias", "the order", "the dtype"])
def test_another_head_is_a_bundle_error(change: str, tmp_path: Path) -> None:
    weight, bias = random_rows(0)
    write_bundle(finished_whole(), tmp_path)
    nudged, raised = weight.copy(), bias.copy()
    nudged[3, 1] = np.nextafter(nudged[3, 1], np.float32(9))
    raised[3] = np.nextafter(raised[3], np.float32(9))
    other = {
        "a weight": Head(nudged, bias),
        "a bias": Head(weight, raised),
        "no bias": Head(weight),
        "the order": Head(weight[::-1], bias[::-1]),
        "the dtype": Head(weight.astype(np.float64), bias),
    }[change]
    with pytest.raises(BundleError, match="another head"):
        recheck(read_bundle(tmp_path), other)


# ---------------------------------------------------------------------- tampering


class Forgery:
    """A bundle to tamper with, and what is true about its head.

    The genuine verdicts bracket every class's margin, so a claim that passes although it
    contradicts a bracket is a false proof.
    """

    def __init__(self, head: Head, domain: Domain, folder: Path) -> None:
        self.head, self.domain, self.folder = head, domain, folder
        result = verify(head, domain, engine=ONE_PROCESS)
        assert not result.undecided
        self.truth: tuple[Verdict, ...] = result.verdicts
        write_bundle(result, folder)
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def restore(self) -> None:
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content)

    def lines(self) -> list[Line]:
        return [json.loads(line) for line in self.files["verdicts.jsonl"].decode().splitlines()]

    def write_lines(self, lines: list[Line]) -> None:
        (self.folder / "verdicts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        reseal(self.folder)  # so that only the lie itself can give it away

    def arrays(self) -> Arrays:
        with np.load(self.folder / "evidence.npz") as archive:
            return {name: archive[name] for name in archive.files}

    def write_arrays(self, arrays: Arrays) -> None:
        np.savez_compressed(self.folder / "evidence.npz", **arrays)
        seal_files(self.folder / "manifest.json")

    def move_to(self, domain: Domain | Line) -> None:
        """Say that the verdicts are about another domain."""
        record = domain.as_record() if isinstance(domain, Domain) else domain
        manifest = json.loads(self.files["manifest.json"]) | {"domain": record}
        (self.folder / "manifest.json").write_text(json.dumps(manifest))

    def check(self) -> Recheck:
        """Re-check; no class may count as proven by a claim that is false."""
        bundle = read_bundle(self.folder)
        found = recheck(bundle, self.head)
        failed = {failure.key for failure in found.failures}
        passed = [claim for claim in bundle.claims if claim.class_id not in failed]
        if bundle.domain == self.domain:
            self.require_true(passed, self.truth)
        for claim in passed:
            for other in claim.tie_group:
                assert 0 <= other < self.head.classes
                assert (self.head.weight[other] == self.head.weight[claim.class_id]).all()
        decided = {claim.class_id for claim in passed if claim.status is not Status.UNDECIDED}
        assert found.proven == len(decided)
        return found

    def require_true(self, claims: list[Verdict], truth: tuple[Verdict, ...]) -> None:
        for claim in claims:
            true = truth[claim.class_id]
            assert claim.status in (true.status, Status.UNDECIDED)
            assert claim.lower <= true.upper
            assert claim.upper >= true.lower

    def check_or_refuse(self) -> None:
        try:
            self.check()
        except BundleError:
            return
        finally:
            self.restore()


@pytest.fixture(scope="module")
def forgeries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Forgery]:
    """Between them: every kind of witness and certificate."""
    return {
        "biased": Forgery(tied_head(bias=True), DOMAINS["box"], tmp_path_factory.mktemp("biased")),
        "unbiased": Forgery(
            tied_head(bias=False), DOMAINS["everywhere"], tmp_path_factory.mktemp("unbiased")
        ),
        "narrow": Forgery(narrow_head(), DOMAINS["box"], tmp_path_factory.mktemp("narrow")),
    }


@pytest.fixture
def biased(forgeries: dict[str, Forgery]) -> Iterator[Forgery]:
    yield forgeries["biased"]
    forgeries["biased"].restore()


@pytest.fixture
def unbiased(forgeries: dict[str, Forgery]) -> Iterator[Forgery]:
    yield forgeries["unbiased"]
    forgeries["unbiased"].restore()


@pytest.fixture
def narrow(forgeries: dict[str, Forgery]) -> Iterator[Forgery]:
    yield forgeries["narrow"]
    forgeries["narrow"].restore()


def lines_with(lines: list[Line], status: str, field: str) -> list[Line]:
    found = [line for line in lines if line["status"] == status and field in line]
    assert found, f"no {status} line with {field}"
    return found


def fails(forgery: Forgery, class_id: int, why: str = "") -> bool:
    return any(failure.key == class_id and why in failure.why for failure in forgery.check().failures)


@pytest.mark.parametrize("name", ["biased", "unbiased", "narrow"])
def test_untouched_bundles_pass(name: str, forgeries: dict[str, Forgery]) -> None:
    found = forgeries[name].check()
    assert found.proven == forgeries[name].head.classes
    assert not found.failures


@pytest.mark.parametrize("name", ["biased", "unbiased", "narrow"])
@pytest.mark.parametrize("status", Status)
def test_another_status_fails(name: str, status: Status, forgeries: dict[str, Forgery]) -> None:
    forgery = forgeries[name]
    lines = forgery.lines()
    changed = [line["class"] for line in lines if line["status"] != status]
    for line in lines:
        line["status"] = status.value
    forgery.write_lines(lines)
    found = forgery.check()
    forgery.restore()
    assert {failure.key for failure in found.failures} == set(changed)


EVIDENCE = ("point32", "point64", "rival", "certificate")
# In place of the evidence of a class that can't win: its own direction, where it does not.
WINNER: Line = {
    "status": "argmaxable", "upper": None, "own": 0, "certificate": None, "point32": None, "point64": None
}  # fmt: skip
LIES: dict[str, tuple[str, str, Callable[[Line], Line], str]] = {
    # name: status and field of the line, what changes, why it fails
    "more margin by own direction": ("argmaxable", "own", lambda _: {"lower": 1e6}, "witness"),
    "more margin by a point": ("argmaxable", "point32", lambda _: {"lower": 1e6}, "witness"),
    "a hair more margin": (
        "argmaxable", "own", lambda line: {"lower": line["lower"] * 1.01 + 1e-3}, "witness"
    ),
    "less margin than a witness shows": ("argmaxable", "own", lambda _: {"upper": 1e-9}, "certificate"),
    "a negative margin for a winner": (
        "argmaxable", "own", lambda _: {"lower": None, "upper": -1.0, "status": "unargmaxable"}, "certificate"
    ),
    "a winner's witness dropped": (
        "argmaxable", "point32", lambda line: {"point32": None, "lower": line["lower"]}, "without a witness"
    ),
    "a loser's certificate dropped": (
        "unargmaxable", "certificate", lambda _: {"certificate": None}, "without a certificate"
    ),
    "a rival dropped": ("unargmaxable", "rival", lambda _: {"rival": None}, "without a certificate"),
    "a loser said to win": (
        "unargmaxable", "certificate",
        lambda _: WINNER | {"lower": 1.0},
        "witness"
    ),
    "a loser said to win by a hair": (
        "unargmaxable", "certificate",
        lambda _: WINNER | {"lower": 5e-324},
        "witness"
    ),
    "a tied class said to win": (
        "unargmaxable", "tie",
        lambda _: {"status": "argmaxable", "lower": 5e-324, "upper": None, "rival": None}, "witness"
    ),
    "a loser that loses by more": (
        "unargmaxable", "certificate", lambda _: {"lower": None, "upper": -1e6}, "certificate"
    ),
    "a class as its own rival": (
        "argmaxable", "rival", lambda line: {"rival": line["class"]}, "certificate"
    ),
    "a rival that does not exist": ("argmaxable", "rival", lambda _: {"rival": 40}, "certificate"),
    "a rival far out of range": ("argmaxable", "rival", lambda _: {"rival": 2**62 - 1}, "certificate"),
    "another tie group": ("unargmaxable", "certificate", lambda _: {"tie": 1}, "tie"),
    "a winner said to tie": ("argmaxable", "own", lambda _: {"tie": 0}, "tie"),
    "the smallest own direction": ("argmaxable", "own", lambda _: {"own": -4000}, "witness"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_a_line_fails_that_class(lie: str, biased: Forgery) -> None:
    """In one line alone, and in all lines of the kind at once."""
    status, field, change, why = LIES[lie]
    for first in (1, None):
        lines = biased.lines()
        lying = lines_with(lines, status, field)[:first]
        for line in lying:
            line.update(change(line))
            for key in [key for key in EVIDENCE if key in line and line[key] is None]:
                del line[key]
        biased.write_lines(lines)
        failed = {failure.key for failure in biased.check().failures if why in failure.why}
        assert failed >= {line["class"] for line in lying}


@pytest.mark.parametrize("field", ["point32", "point64", "certificate", "own"])
@pytest.mark.parametrize("name", ["biased", "unbiased", "narrow"])
def test_evidence_of_another_class_proves_nothing_false(
    name: str, field: str, forgeries: dict[str, Forgery]
) -> None:
    forgery = forgeries[name]
    lines = forgery.lines()
    using = [line for line in lines if field in line]
    values = [line[field] for line in using]
    for line, value in zip(using, values[1:] + values[:1], strict=True):
        line[field] = value
    forgery.write_lines(lines)
    forgery.check_or_refuse()


@pytest.mark.parametrize("field", ["point32", "point64"])
def test_the_point_of_another_class_fails(field: str, biased: Forgery, narrow: Forgery) -> None:
    forgery = biased if field == "point32" else narrow
    lines = forgery.lines()
    first, second = lines_with(lines, "argmaxable", field)[:2]
    first[field], second[field] = second[field], first[field]
    forgery.write_lines(lines)
    assert fails(forgery, first["class"], "witness")
    assert fails(forgery, second["class"], "witness")


def test_a_class_claimed_twice_fails_although_both_claims_hold(biased: Forgery) -> None:
    lines = biased.lines()
    biased.write_lines([*lines, lines[8]])
    assert fails(biased, lines[8]["class"], "twice")
    assert biased.check().proven == 39


def test_a_class_left_out_is_missing(biased: Forgery) -> None:
    biased.write_lines(biased.lines()[1:])
    assert biased.check() == Recheck(39, 0, 1, ())


def test_no_lines_at_all_prove_nothing(biased: Forgery) -> None:
    biased.write_lines([])
    assert biased.check() == Recheck(0, 0, 40, ())


@pytest.mark.parametrize("number", [40, 41, 2**62 - 1])
def test_a_class_out_of_range_fails_and_fills_no_gap(number: int, biased: Forgery) -> None:
    lines = biased.lines()
    lines[8]["class"] = number
    biased.write_lines(lines)
    found = biased.check()
    assert [failure.key for failure in found.failures] == [number]
    assert (found.proven, found.missing) == (39, 1)


def test_undecided_lines_may_hold_bounds_but_must_prove_them(biased: Forgery) -> None:
    lines = biased.lines()
    for line in lines_with(lines, "argmaxable", "own"):
        line.update(status="undecided", lower=-1e9)
    biased.write_lines(lines)
    assert not biased.check().failures
    for line in lines_with(lines, "undecided", "own"):
        line.update(lower=-1e-9, upper=1e-9)
    biased.write_lines(lines)
    assert len(biased.check().failures) == len(lines_with(lines, "undecided", "own"))


# ---------------------------------------------------------------------- tie groups


def regroup(forgery: Forgery, *groups: list[int]) -> None:
    arrays = forgery.arrays()
    arrays["tie_classes"] = np.concatenate([np.array(group, np.int64) for group in groups])
    arrays["tie_start"] = np.cumsum([0, *map(len, groups)])
    forgery.write_arrays(arrays)


@pytest.mark.parametrize("stranger", [0, 8, 39, 40, 10**6, -1])
def test_a_tie_group_with_a_stranger_fails(stranger: int, biased: Forgery) -> None:
    groups = [[verdict.class_id, *verdict.tied_with] for verdict in biased.truth if verdict.tie_group]
    numbers = {line["tie"]: line["class"] for line in reversed(biased.lines()) if "tie" in line}
    ordered = [next(g for g in groups if numbers[k] in g) for k in sorted(numbers)]
    regroup(biased, *([*sorted(group), stranger] for group in ordered))
    assert {failure.key for failure in biased.check().failures} >= set(numbers.values())


def test_a_member_of_a_tie_group_proves_no_margin_for_one_that_is_not_its_twin(biased: Forgery) -> None:
    # 31 ties with 30. Both are put into a group with a winner, whose witness they claim as theirs.
    lines = biased.lines()
    winner = lines_with(lines, "argmaxable", "point32")[0]
    liar = next(line for line in lines if line["class"] == 31)
    liar.clear()
    liar.update(winner | {"class": 31, "upper": None})
    del liar["rival"]
    for line in (winner, liar):
        line["tie"] = 0
    lines = [winner, *(line for line in lines if line is not winner and "tie" not in line), liar]
    regroup(biased, [30, 31, winner["class"]])
    biased.write_lines(lines)
    assert fails(biased, 31)


def test_an_empty_tie_group_is_no_tie(biased: Forgery) -> None:
    lines = biased.lines()
    tied = [line["class"] for line in lines if "tie" in line]
    assert tied == [6, 7, 30, 31]
    regroup(biased, [], [])
    biased.write_lines(lines)
    biased.check()


# ---------------------------------------------------------------------- arrays


def each(array: NDArray[Any], value: Any) -> NDArray[Any]:
    return np.full_like(array, value)


LIES_IN_ARRAYS: dict[str, tuple[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "negative weights": ("certificate_weights", np.negative),
    "weights of zero": ("certificate_weights", np.zeros_like),
    "weights of NaN": ("certificate_weights", lambda array: each(array, math.nan)),
    "infinite weights": ("certificate_weights", lambda array: each(array, math.inf)),
    "weights whose sum overflows": ("certificate_weights", lambda array: each(array, 1e308)),
    "weights that underflow": ("certificate_weights", lambda array: each(array, 5e-324)),
    "equal weights": ("certificate_weights", np.ones_like),
    "weights in reverse": ("certificate_weights", lambda array: array[::-1]),
    "weights in float16": ("certificate_weights", lambda array: array.astype(np.float16)),
    "one class for all weights": ("certificate_classes", np.zeros_like),
    "classes that do not exist": ("certificate_classes", lambda array: array + 40),
    "negative classes": ("certificate_classes", lambda array: array.astype(np.int64) - 40),
    "classes beyond int64": ("certificate_classes", lambda array: each(array.astype(np.uint64), 2**64 - 1)),
    "other classes": ("certificate_classes", lambda array: (array + 1) % 40),
    "points of NaN": ("points32", lambda array: each(array, math.nan)),
    "points of signalling NaN": (
        "points32",
        lambda array: each(array.view(np.uint32), 0x7FA00000).view("f4"),
    ),
    "infinite points": ("points32", lambda array: each(array, math.inf)),
    "points outside the domain": ("points32", lambda array: array + 300),
    "points in reverse": ("points32", lambda array: array[::-1]),
    "points at zero": ("points32", np.zeros_like),
}


@pytest.mark.parametrize("lie", LIES_IN_ARRAYS)
def test_a_lie_in_an_array_fails_the_classes_that_use_it(lie: str, biased: Forgery) -> None:
    name, change = LIES_IN_ARRAYS[lie]
    arrays = biased.arrays()
    biased.write_arrays(arrays | {name: change(arrays[name])})
    assert biased.check().failures


@pytest.mark.parametrize("lie", LIES_IN_ARRAYS)
def test_a_lie_in_an_array_proves_nothing_false_with_a_basis(lie: str, unbiased: Forgery) -> None:
    name, change = LIES_IN_ARRAYS[lie]
    arrays = unbiased.arrays()
    assert arrays["certificate_basis"].any()
    unbiased.write_arrays(arrays | {name: change(arrays[name])})
    unbiased.check()


def test_weights_that_moved_fail_where_a_basis_does_not_solve_for_them(unbiased: Forgery) -> None:
    arrays = unbiased.arrays()
    arrays["certificate_basis"][:] = 0
    unbiased.write_arrays(arrays)
    assert unbiased.check().failures


@pytest.mark.parametrize("basis", [1, 2, 5, 10**6, 2**32 - 1])
def test_a_wrong_basis_proves_nothing_false(basis: int, biased: Forgery, unbiased: Forgery) -> None:
    for forgery in (biased, unbiased):
        arrays = forgery.arrays()
        arrays["certificate_basis"][:] = basis
        forgery.write_arrays(arrays)
        forgery.check()


@pytest.mark.parametrize("basis", [-1, -(2**63)])
def test_a_negative_basis_fails(basis: int, unbiased: Forgery) -> None:
    arrays = unbiased.arrays()
    arrays["certificate_basis"] = each(arrays["certificate_basis"].astype(np.int64), basis)
    unbiased.write_arrays(arrays)
    assert unbiased.check().failures


@pytest.mark.parametrize("coordinate", [4, 2**32 - 1, -1])
def test_coordinates_out_of_range_fail(coordinate: int, unbiased: Forgery) -> None:
    arrays = unbiased.arrays()
    kept = len(arrays["coordinates"]) // FEATURES
    assert kept
    # One coordinate fewer in each list, so that a list no longer means every feature.
    arrays["coordinates"] = np.full(kept * (FEATURES - 1), coordinate, np.int64)
    arrays["coordinate_start"] = arrays["coordinate_start"] // FEATURES * (FEATURES - 1)
    unbiased.write_arrays(arrays)
    assert unbiased.check().failures


@pytest.mark.parametrize("left_out", range(FEATURES))
def test_a_coordinate_left_out_proves_nothing_false(left_out: int, unbiased: Forgery) -> None:
    arrays = unbiased.arrays()
    kept = arrays["coordinates"].reshape(-1, FEATURES)
    arrays["coordinates"] = np.delete(kept, left_out, axis=1).ravel()
    arrays["coordinate_start"] = arrays["coordinate_start"] // FEATURES * (FEATURES - 1)
    unbiased.write_arrays(arrays)
    assert unbiased.check().failures


@pytest.mark.parametrize("shift", [1.0, 1e6, 1e30])
def test_another_centre_fails_own_directions_and_proves_nothing_false(shift: float, biased: Forgery) -> None:
    arrays = biased.arrays()
    biased.write_arrays(arrays | {"centre": arrays["centre"] + np.float32(shift)})
    assert biased.check().failures


def test_a_huge_centre_proves_nothing_false(biased: Forgery) -> None:
    biased.write_arrays(biased.arrays() | {"centre": np.full(FEATURES, 1.7e308)})
    assert biased.check().failures


@pytest.mark.parametrize("centre", [[math.nan] * 4, [math.inf] * 4, [0.0] * 3, [0.0] * 5, []], ids=str)
def test_a_centre_that_does_not_fit_is_a_bundle_error(centre: list[float], biased: Forgery) -> None:
    biased.write_arrays(biased.arrays() | {"centre": np.array(centre)})
    with pytest.raises(BundleError):
        biased.check()


@pytest.mark.parametrize("features", [0, 3, 5])
def test_points_of_another_length_fail(features: int, biased: Forgery) -> None:
    arrays = biased.arrays()
    biased.write_arrays(
        arrays | {"points32": np.resize(arrays["points32"], (len(arrays["points32"]), features))}
    )
    found = biased.check()
    using = [line["class"] for line in biased.lines() if "point32" in line]
    assert {failure.key for failure in found.failures} == set(using)


# ---------------------------------------------------------------------- the domain


@pytest.mark.parametrize(
    "text", ["box:100000", "everywhere", "box:-100:inf", "ball:1e6", "box:1e-6", "box:99:100", "ball:1e-6"]
)
def test_evidence_moved_to_another_domain_proves_what_is_true_there_and_no_more(
    text: str, biased: Forgery
) -> None:
    domain = parse_domain(text)
    biased.move_to(domain)
    failed = {failure.key for failure in biased.check().failures}
    passed = [claim for claim in read_bundle(biased.folder).claims if claim.class_id not in failed]
    assert failed
    biased.require_true(passed, verify(biased.head, domain, engine=ONE_PROCESS).verdicts)


@pytest.mark.parametrize(
    "record",
    [
        Box(np.zeros(3), np.ones(3)).as_record(),
        {"kind": "box", "lo": [], "hi": "inf"},
        RMSNorm(np.ones(5)).as_record(),
        LayerNorm(1.0, np.ones(3)).as_record(),
    ],
    ids=str,
)
def test_a_domain_of_another_size_is_a_bundle_error(record: Line, biased: Forgery) -> None:
    biased.move_to(record)
    with pytest.raises(BundleError):
        biased.check()


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-200, 1e200, 1.7e308])
@pytest.mark.parametrize("kind", ["ball", "box", "point", "rmsnorm", "layernorm"])
def test_an_extreme_domain_is_refused_or_proves_less(kind: str, value: float, biased: Forgery) -> None:
    record = {
        "ball": {"radius": value.hex()},
        "box": {"lo": (-value).hex(), "hi": value.hex()},
        "point": {"lo": value.hex(), "hi": value.hex()},
        "rmsnorm": {"gain": value.hex(), "shift": "0x0p0"},
        "layernorm": {"gain": value.hex(), "shift": (-value).hex()},
    }[kind]
    biased.move_to({"kind": "box" if kind == "point" else kind} | record)
    try:
        failures = biased.check().failures
    except BundleError:
        return
    assert failures


@pytest.mark.parametrize("sha256", [None, "", 0, [], "0" * 64])
def test_another_fingerprint_is_a_bundle_error(sha256: object, biased: Forgery) -> None:
    manifest = json.loads(biased.files["manifest.json"])
    manifest["head"]["sha256"] = sha256
    (biased.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="another head"):
        biased.check()


# ---------------------------------------------------------------------- fuzz


FIELDS = ("class", "status", "lower", "upper", "own", "point32", "point64", "rival", "certificate", "tie")
PLAUSIBLE = st.one_of(
    st.none(),
    st.integers(-2, 45),
    st.floats(-400, 400),
    st.sampled_from([*[status.value for status in Status], 5e-324, 0.0, -0.0, 1e308, -1e308]),
)


@given(
    name=st.sampled_from(["biased", "unbiased", "narrow"]),
    changes=st.lists(
        st.tuples(st.integers(0, 39), st.sampled_from(FIELDS), PLAUSIBLE), min_size=1, max_size=6
    ),
)
@settings(max_examples=40, derandomize=True)
def test_plausible_lies_prove_nothing_false(
    name: str, changes: list[tuple[int, str, Any]], forgeries: dict[str, Forgery]
) -> None:
    forgery = forgeries[name]
    lines = forgery.lines()
    for number, field, value in changes:
        lines[number % len(lines)][field] = value
    forgery.write_lines(lines)
    forgery.check_or_refuse()


@given(
    name=st.sampled_from(["biased", "unbiased", "narrow"]),
    file=st.sampled_from(["manifest.json", "verdicts.jsonl", "evidence.npz"]),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3),
)
@settings(max_examples=40, derandomize=True)
def test_flipped_bytes_prove_nothing_false(
    name: str, file: str, flips: list[tuple[float, int]], forgeries: dict[str, Forgery]
) -> None:
    forgery = forgeries[name]
    content = bytearray(forgery.files[file])
    for where, byte in flips:
        content[int(where * len(content))] = byte
    (forgery.folder / file).write_bytes(content)
    forgery.check_or_refuse()


@given(
    name=st.sampled_from(["biased", "unbiased", "narrow"]),
    array=st.sampled_from(["centre", "points32", "points64", "certificate_weights", "certificate_classes"]),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3),
)
@settings(max_examples=40, derandomize=True)
def test_flipped_bytes_inside_arrays_prove_nothing_false(
    name: str, array: str, flips: list[tuple[float, int]], forgeries: dict[str, Forgery]
) -> None:
    forgery = forgeries[name]
    arrays = forgery.arrays()
    content = bytearray(arrays[array].tobytes())
    if not content:
        return
    for where, byte in flips:
        content[int(where * len(content))] = byte
    changed = np.frombuffer(bytes(content), arrays[array].dtype).reshape(arrays[array].shape)
    forgery.write_arrays(arrays | {array: changed})
    forgery.check_or_refuse()


INTEGERS = (
    "certificate_start", "certificate_classes", "certificate_basis", "coordinate_start", "coordinates",
    "tie_start", "tie_classes",
)  # fmt: skip


@given(
    name=st.sampled_from(["biased", "unbiased", "narrow"]),
    array=st.sampled_from(INTEGERS),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(-2, 50)), min_size=1, max_size=4
    ),
)
@settings(max_examples=40, derandomize=True)
def test_other_integers_prove_nothing_false(
    name: str, array: str, changes: list[tuple[float, int]], forgeries: dict[str, Forgery]
) -> None:
    forgery = forgeries[name]
    arrays = forgery.arrays()
    changed = arrays[array].astype(np.int64)
    for where, value in changes:
        changed[int(where * len(changed)) : int(where * len(changed)) + 1] = value
    forgery.write_arrays(arrays | {array: changed})
    forgery.check_or_refuse()


def test_the_forgeries_hold_every_kind_of_evidence(forgeries: dict[str, Forgery]) -> None:
    kinds = {key for forgery in forgeries.values() for line in forgery.lines() for key in line}
    assert kinds >= {"own", "point32", "point64", "rival", "certificate", "tie"}
    points = [claim.witness for claim in read_bundle(forgeries["narrow"].folder).claims]
    assert any(isinstance(point, Point) for point in points)
