"""Proofs for many classes over the same rows."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.solutions import with_independent_basis
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.core.verdict import Method
from argmaxable.prove.shared_rows import Candidates, prove_together

# The method takes on 128 features; one more, so that one may be constant. Of classes a little more than the
# eight rows for each feature that it draws first.
FEATURES, CLASSES, DEEP = 129, 1100, 12
ONE_PROCESS = am.Engine(workers=1)


@functools.cache
def deep_head() -> am.Head:
    return head_with_deep_classes()


def head_with_deep_classes(
    dtype: str = "float32", *, seed: int = 0, scale: NDArray[np.float64] | float = 1.0
) -> am.Head:
    """The first DEEP classes are mixtures of many others."""
    generator = np.random.default_rng(seed)
    weight = generator.standard_normal((CLASSES, FEATURES))
    for class_id in range(DEEP):
        some = generator.choice(np.arange(DEEP, CLASSES), 600, replace=False)
        weight[class_id] = generator.dirichlet(np.ones(600)) @ weight[some]
    return am.Head((weight * scale).astype(dtype))


@functools.cache
def found_in_the_deep_head() -> Candidates:
    (found,) = found_in(deep_head(), np.arange(DEEP))
    return found


def found_in(head: am.Head, classes: NDArray[np.intp], domain: am.Domain | None = None) -> list[Candidates]:
    checker = Checker(head, domain or am.Everywhere())
    others = np.setdiff1d(np.arange(head.classes), classes)
    return list(prove_together(coordinates_of(checker.prepared, checker.domain), classes, others, seed=0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_mixtures_of_many_rows_are_proven_without_a_solve(dtype: str) -> None:
    result = am.verify(head_with_deep_classes(dtype), only=range(DEEP), engine=ONE_PROCESS)
    assert [verdict.method for verdict in result.unargmaxable] == [Method.SHARED_ROWS] * DEEP
    assert result.cost.solves == 0


@pytest.mark.parametrize("domain", [am.Everywhere(), am.Box(-1, 1), am.Box(0, np.inf), am.Ball(2.0)])
def test_the_weights_reproduce_the_class(domain: am.Domain) -> None:
    head = deep_head()
    (found,) = found_in(head, np.arange(DEEP), domain)
    checker = Checker(head, domain)
    assert found.classes.tolist() == list(range(DEEP))
    for class_id, certificate in zip(found.classes, found.certificates, strict=True):
        mixture = certificate.weights @ head.rows(certificate.classes)
        np.testing.assert_allclose(mixture, head.rows(np.array([class_id]))[0], rtol=0, atol=1e-13)
        assert class_id not in certificate.classes
        assert checker.bound(int(class_id), certificate).upper <= 0


def test_classes_on_the_hull_get_no_certificate() -> None:
    head = deep_head()
    far = np.arange(DEEP, DEEP + 8)
    checker = Checker(head, am.Everywhere())
    for found in found_in(head, far):
        assert not (checker.bounds_together(found.classes, found.certificates) <= 0).any()


def test_features_of_very_different_scale_are_no_hindrance() -> None:
    head = head_with_deep_classes(scale=10.0 ** np.linspace(-3, 3, FEATURES))
    result = am.verify(head, am.Everywhere(), only=range(DEEP), engine=ONE_PROCESS)
    assert len(result.unargmaxable) == DEEP


def test_rows_that_do_not_span_the_space_prove_nothing() -> None:
    weight = deep_head().weight.copy()
    weight[:, -1] = weight[:, 0]
    head = am.Head(weight)
    checker = Checker(head, am.Everywhere())
    for found in found_in(head, np.arange(DEEP)):
        assert np.isinf(checker.bounds_together(found.classes, found.certificates)).all()


def test_a_bias_or_few_classes_give_nothing() -> None:
    plain = deep_head()
    biased = am.Head(plain.weight, np.linspace(-1, 1, CLASSES, dtype=np.float32))
    assert found_in(biased, np.arange(DEEP)) == []
    assert found_in(plain, np.arange(2)) == []


def test_one_certificate_over_shared_rows_proves_nothing_about_another_class() -> None:
    head, found = deep_head(), found_in_the_deep_head()
    swapped = found.certificates[1:] + found.certificates[:1]
    uppers = Checker(head, am.Everywhere()).bounds_together(found.classes, swapped)
    assert np.isinf(uppers).all()


def test_shared_proofs_survive_a_bundle_and_are_noticed_when_changed(tmp_path: Path) -> None:
    head = deep_head()
    result = am.verify(head, only=range(DEEP), engine=ONE_PROCESS)
    am.write_bundle(result, tmp_path / "proofs")
    bundle = am.read_bundle(tmp_path / "proofs")
    assert am.recheck(bundle, head).proven == DEEP
    other = head.weight.copy()
    other[0] *= 30
    changed = am.Head(other)
    bundle.manifest["head"]["sha256"] = changed.sha256()
    failures = am.recheck(bundle, changed).failures
    assert 0 in {failure.key for failure in failures}


@pytest.mark.parametrize("constant", [False, True])
def test_rationals_confirm_shared_proofs_and_refute_those_of_another_class(
    constant: bool, tmp_path: Path
) -> None:
    weight = deep_head().weight.copy()
    if constant:
        weight[:, 5] = 0.25
    head, some = am.Head(weight), 4  # as few classes as the method takes on: rationals are slow
    result = am.verify(head, only=range(some), engine=ONE_PROCESS)
    assert [verdict.method for verdict in result.unargmaxable] == [Method.SHARED_ROWS] * some
    am.write_bundle(result, tmp_path / "proofs")
    bundle = am.read_bundle(tmp_path / "proofs")
    assert am.recheck(bundle, head, rational=True).proven == some
    checker = Checker(head, am.Everywhere())
    certificate = result.unargmaxable[0].certificate
    assert certificate is not None
    narrowed = with_independent_basis(head, am.Everywhere(), certificate)
    assert narrowed.basis == FEATURES + 1 - constant
    assert constant or certificate.basis > narrowed.basis
    assert checker.proves_in_rationals(0, certificate)
    assert not checker.proves_in_rationals(DEEP + 1, certificate)


def test_weights_that_are_no_weights_prove_nothing_beside_others_that_do() -> None:
    head, found = deep_head(), found_in_the_deep_head()
    negative = replace(found.certificates[0], weights=-found.certificates[0].weights)
    uppers = Checker(head, am.Everywhere()).bounds_together(
        found.classes, [negative, *found.certificates[1:]]
    )
    assert (uppers[0], uppers[1:].max()) == (np.inf, 0.0)


def test_the_same_head_gets_the_same_weights() -> None:
    first, (second,) = found_in_the_deep_head(), found_in(head_with_deep_classes(), np.arange(DEEP))
    for one, other in zip(first.certificates, second.certificates, strict=True):
        assert (one.weights == other.weights).all()
