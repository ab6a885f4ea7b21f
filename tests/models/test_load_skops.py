"""Heads of scikit-learn's classifiers in .skops archives, which `skops_writer` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skops_writer import (
    LOGISTIC,
    Archive,
    described,
    items,
    logistic,
    network,
    node,
    pipeline,
    value,
    weights,
)

from argmaxable import AmbiguousError, Box, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = weights()


def saved(folder: Path, make: Any, *arguments: Any, **options: Any) -> Path:
    archive = Archive()
    return archive.save(folder / "model.skops", make(archive, *arguments, **options))


def test_a_linear_classifier(tmp_path: Path) -> None:
    path = saved(tmp_path, logistic)
    finding, head = find_head(path), load_head(path)
    assert (finding.format, finding.classes, finding.features) == ("skops", 5, 4)
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()
    assert head.label(3) == "d"
    assert finding.inputs is not None
    assert finding.inputs.domain == Everywhere()


def test_two_classes_have_the_rows_nothing_and_w(tmp_path: Path) -> None:
    path = saved(tmp_path, logistic, names=np.array([7, 9]), rows=1)
    head = load_head(path)
    weight, bias = weights(1)
    assert head.weight.tolist() == [[0.0] * 4, weight[0].tolist()]
    assert head.bias is not None
    assert head.bias.tolist() == [0.0, bias[0]]
    assert [head.label(0), head.label(1)] == ["7", "9"]
    assert "the rows are 0 and w" in find_head(path).notes[0]


def test_one_row_may_be_a_list(tmp_path: Path) -> None:
    """As RidgeClassifier stores that of two classes."""
    archive = Archive()
    root = logistic(archive, names=np.array([7, 9]), rows=1)
    root["content"]["content"]["coef_"] = archive.array(WEIGHT[2])
    assert load_head(archive.save(tmp_path / "model.skops", root)).weight.tolist()[1] == WEIGHT[2].tolist()


def test_the_last_step_of_a_pipeline_in_a_search(tmp_path: Path) -> None:
    archive = Archive()
    scaler = described("sklearn.preprocessing._data.StandardScaler")
    root = described(
        "sklearn.model_selection._search.GridSearchCV", estimator=value(None),
        best_estimator_=pipeline(scaler, logistic(archive)),
    )  # fmt: skip
    finding = find_head(archive.save(tmp_path / "model.skops", root))
    assert finding.inputs is not None
    assert "StandardScaler" in finding.inputs.description


@pytest.mark.parametrize(
    ("activation", "domain"),
    [("relu", Box(0.0, np.inf)), ("tanh", Box(-1.0, 1.0)), ("identity", Everywhere())],
)
def test_a_network_and_what_feeds_its_output_layer(tmp_path: Path, activation: str, domain: Any) -> None:
    path = saved(tmp_path, network, activation=activation)
    finding = find_head(path)
    assert load_head(path).weight.tobytes() == WEIGHT.tobytes()
    assert finding.activation == "softmax"
    assert finding.inputs is not None
    assert finding.inputs.domain == domain


def test_a_network_of_several_labels_takes_no_argmax(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="takes no argmax"):
        find_head(saved(tmp_path, network, output="logistic"))


@pytest.mark.parametrize("kind", ["sklearn.tree._classes.DecisionTreeClassifier", "mine.LogisticRegression"])
def test_other_classifiers_are_refused_with_advice(tmp_path: Path, kind: str) -> None:
    with pytest.raises(LoadError, match=r"is unknown.*from_sklearn"):
        find_head(saved(tmp_path, logistic, kind))


def test_rows_that_are_not_the_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="10 rows of coefficients for 5 classes"):
        find_head(saved(tmp_path, logistic, rows=10))


def test_an_array_that_was_described_before_is_found_by_its_number(tmp_path: Path) -> None:
    archive = Archive()
    root = logistic(archive)
    attributes = root["content"]["content"]
    attributes["first"] = attributes["coef_"]
    attributes["coef_"] = node("numpy.ndarray", "CachedNode", __id__=attributes["first"]["__id__"])
    assert load_head(archive.save(tmp_path / "model.skops", root)).weight.tobytes() == WEIGHT.tobytes()


def test_one_number_for_two_arrays_is_refused(tmp_path: Path) -> None:
    archive = Archive()
    root = logistic(archive)
    attributes = root["content"]["content"]
    attributes["coef_"]["__id__"] = attributes["intercept_"]["__id__"]
    with pytest.raises(AmbiguousError, match=r"is stored in .* and elsewhere"):
        find_head(archive.save(tmp_path / "model.skops", root))


def test_what_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    inner = value(1)
    for _ in range(100):
        inner = items(inner)
    with pytest.raises(LoadError, match="nested more than"):
        find_head(Archive().save(tmp_path / "model.skops", described(LOGISTIC, coef_=inner)))
