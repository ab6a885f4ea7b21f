"""Ranges of a head's inputs: what is measured, and the domain file that comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from argmaxable.core.balls import Ball, LayerNorm, RMSNorm
from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.domains import parse_domain, read_domain, write_domain
from argmaxable.core.errors import DomainError, InputError
from argmaxable.theory.ranges import measure_ranges


@pytest.fixture
def features() -> np.ndarray:
    return (np.random.default_rng(0).standard_normal((5000, 12)) * np.arange(1, 13)).astype(np.float32)


def test_ranges_do_not_depend_on_how_the_tokens_are_cut(features: np.ndarray) -> None:
    whole = measure_ranges([features])
    for pieces in (7, 5000):
        found = measure_ranges(np.array_split(features, pieces))
        assert found.lo.tolist() == whole.lo.tolist()
        assert found.hi.tolist() == whole.hi.tolist()
        assert (found.tokens, found.overall, found.count) == (whole.tokens, whole.overall, 5000)


def test_ranges_are_the_extremes_of_features_tokens_and_all(features: np.ndarray) -> None:
    found = measure_ranges([features])
    assert found.lo.tolist() == features.min(axis=0).tolist()
    assert found.hi.tolist() == features.max(axis=0).tolist()
    assert (found.overall.lo, found.overall.hi) == (features.min(), features.max())
    assert (features.min(axis=1) >= found.tokens.lo).mean() == pytest.approx(0.99, abs=1e-3)
    assert (features.max(axis=1) <= found.tokens.hi).mean() == pytest.approx(0.99, abs=1e-3)


def test_all_of_the_tokens_is_the_overall_range(features: np.ndarray) -> None:
    found = measure_ranges([features], percent=100)
    assert found.tokens == found.overall


def test_a_text_without_tokens_and_values_that_overflow_are_refused(features: np.ndarray) -> None:
    with pytest.raises(InputError, match="no tokens"):
        measure_ranges([features[:0]])
    features[3, 3] = np.inf
    with pytest.raises(InputError, match="NaN or infinite"):
        measure_ranges([features])


# ---------------------------------------------------------------------- domain files


@pytest.mark.parametrize(
    "domain",
    [
        Everywhere(),
        Box(-0.1, np.inf),
        Box([-1.0, -0.3], [0.1, 2.0]),
        Ball(0.7),
        RMSNorm([1.0, 0.1], 0.3),
        LayerNorm([1.0, 0.1], [0.3, 0.0]),
    ],
    ids=str,
)
def test_a_domain_comes_back_from_its_file_exactly(domain: Domain, tmp_path: Path) -> None:
    path = tmp_path / "a:b.json"
    write_domain(path, domain, {"measured": {"tokens": 3}})
    assert read_domain(path) == domain
    assert parse_domain(f"file:{path}") == domain
    assert json.loads(path.read_text())["about"] == {"measured": {"tokens": 3}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a domain file"),
        ('{"format": "argmaxable domain 2"}', "is not a domain file"),
        ('{"format": "argmaxable domain 1"}', "unreadable domain record"),
        ('{"format": "argmaxable domain 1", "domain": {"kind": "box", "lo": "nan", "hi": "0x1p0"}}', "NaN"),
        ('{"format": "argmaxable domain 1", "domain": {"kind": "star"}}', "unknown kind"),
    ],
)
def test_what_is_no_domain_file_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "domain.json"
    path.write_text(content)
    with pytest.raises(DomainError, match=message):
        parse_domain(f"file:{path}")


def test_a_domain_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="can't be read"):
        parse_domain(f"file:{tmp_path / 'nothing.json'}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DomainError, match="is not JSON"):
        parse_domain(f"file:{tmp_path / 'bytes'}")


def test_a_file_needs_a_name() -> None:
    with pytest.raises(DomainError, match="can't be read"):
        parse_domain("file:")
