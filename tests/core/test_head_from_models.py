"""Heads of models in memory: PyTorch's layers bit for bit, scikit-learn's classifiers by their answers."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from torch import nn

from argmaxable.core.errors import HeadError
from argmaxable.core.head import Head

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(90, 4))
SIDES = FEATURES @ RNG.normal(size=(4, 3)) + RNG.normal(size=(90, 3))
THREE = np.array(["ant", "bee", "cow"])[SIDES.argmax(1)]
TWO = np.array(["no", "yes"])[(SIDES[:, 0] > 0).astype(int)]
FRESH = RNG.normal(size=(500, 4))

LINEAR: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "logistic without intercept": LogisticRegression(fit_intercept=False),
    "svm": LinearSVC(),
    "crammer-singer": LinearSVC(multi_class="crammer_singer"),
    "sgd": SGDClassifier(random_state=0),
    "ridge": RidgeClassifier(),
    "ridge without intercept": RidgeClassifier(fit_intercept=False),
    "perceptron": Perceptron(),
    "discriminant": LinearDiscriminantAnalysis(),
    "one-vs-rest": OneVsRestClassifier(LinearSVC()),
    "one-vs-rest of linear kernels": OneVsRestClassifier(SVC(kernel="linear")),
}


def answers(head: Head, features: Any) -> list[str]:
    logits = features @ head.weight.T + head.biases()
    return [head.label(each) for each in logits.argmax(1)]


# ---------------------------------------------------------------------- PyTorch


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_a_head_bit_for_bit(dtype: torch.dtype, bias: bool) -> None:
    layer = nn.Linear(3, 5, bias=bias, dtype=dtype)
    head = Head.from_linear(layer, labels="abcde")
    assert head.weight.tobytes() == layer.weight.detach().numpy().tobytes()
    assert head.weight.dtype == layer.weight.detach().numpy().dtype
    assert (head.bias is not None) == bias
    assert head.labels == tuple("abcde")
    assert head.name == "Linear"


def test_bfloat16_layers_keep_their_bits() -> None:
    layer = nn.Linear(3, 5, dtype=torch.bfloat16)
    head = Head.from_linear(layer, name="tiny")
    assert head.weight.dtype == ml_dtypes.bfloat16
    assert head.weight.tobytes() == layer.weight.detach().view(torch.int16).numpy().tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == layer.bias.detach().view(torch.int16).numpy().tobytes()
    assert head.name == "tiny"


def test_embeddings_are_a_head_without_bias() -> None:
    layer = nn.Embedding(6, 3)
    head = Head.from_linear(layer)
    assert head.weight.tolist() == layer.weight.tolist()
    assert head.bias is None


def test_anything_with_a_weight_will_do() -> None:
    head = Head.from_linear(SimpleNamespace(weight=[[1.0, 2.0], [3.0, 4.0]], bias=np.array([0.5, 1.5])))
    assert head.weight.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert head.biases().tolist() == [0.5, 1.5]


def test_the_argmax_is_the_layers_own() -> None:
    layer, features = nn.Linear(4, 7, dtype=torch.float64), torch.from_numpy(FRESH)
    assert answers(Head.from_linear(layer), FRESH) == [str(int(each)) for each in layer(features).argmax(1)]


@pytest.mark.parametrize(
    ("layer", "complaint"),
    [
        (nn.ReLU(), "ReLU has no weight"),
        (nn.Sequential(nn.Linear(2, 2)), "Sequential has no weight"),
        (nn.Conv2d(3, 5, 3), "must be a matrix"),
        (nn.LayerNorm(3), "must be a matrix"),
    ],
)
def test_other_layers_are_refused(layer: nn.Module, complaint: str) -> None:
    with pytest.raises(HeadError, match=complaint):
        Head.from_linear(layer)


def test_neither_library_is_imported_for_it() -> None:
    program = (
        "import sys, types, numpy; from argmaxable import Head\n"
        "Head.from_linear(types.SimpleNamespace(weight=numpy.eye(2)))\n"
        "Head.from_sklearn(types.SimpleNamespace(coef_=numpy.eye(2), intercept_=0.0, classes_=[0, 1]))\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


# ---------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("labels", [THREE, TWO], ids=["three classes", "two classes"])
def test_the_head_answers_what_the_classifier_predicts(name: str, labels: Any) -> None:
    classifier = LINEAR[name].fit(FEATURES, labels)
    head = Head.from_sklearn(classifier)
    assert head.labels == tuple(classifier.classes_)
    assert answers(head, FRESH) == list(classifier.predict(FRESH))


def test_two_classes_are_linear_also_where_more_would_vote() -> None:
    classifier = SVC(kernel="linear").fit(FEATURES, TWO)
    assert answers(Head.from_sklearn(classifier), FRESH) == list(classifier.predict(FRESH))


def test_two_classes_become_a_row_of_zeros_and_the_stored_one() -> None:
    classifier = LogisticRegression().fit(FEATURES, TWO)
    head = Head.from_sklearn(classifier)
    assert head.weight.tolist() == [[0.0] * 4, classifier.coef_[0].tolist()]
    assert head.biases().tolist() == [0.0, classifier.intercept_[0]]


def test_coefficients_come_back_bit_for_bit_in_their_own_dtype() -> None:
    classifier = LogisticRegression().fit(FEATURES.astype(np.float32), THREE)
    head = Head.from_sklearn(classifier)
    assert head.weight.dtype == classifier.coef_.dtype
    assert head.weight.tobytes() == classifier.coef_.tobytes()


def test_sparse_coefficients_are_read() -> None:
    classifier = SGDClassifier(penalty="l1", random_state=0).fit(FEATURES, THREE)
    dense = classifier.coef_.copy()
    assert Head.from_sklearn(classifier.sparsify()).weight.tolist() == dense.tolist()


def test_the_last_step_of_a_pipeline_is_the_head_for_what_the_others_put_out() -> None:
    pipeline = make_pipeline(StandardScaler(), make_pipeline(LogisticRegression())).fit(FEATURES, THREE)
    head = Head.from_sklearn(pipeline)
    assert head.name == "LogisticRegression"
    assert answers(head, pipeline[0].transform(FRESH)) == list(pipeline.predict(FRESH))


def test_numbers_as_labels_become_text() -> None:
    head = Head.from_sklearn(LogisticRegression().fit(FEATURES, SIDES.argmax(1) + 7), name="digits")
    assert head.labels == ("7", "8", "9")
    assert head.name == "digits"


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (SVC(kernel="linear"), "SVC is not a linear classifier"),
        (SVC(), "SVC is not a linear classifier"),
        (RandomForestClassifier(3), "RandomForestClassifier is not a linear classifier"),
        (OneVsOneClassifier(LinearSVC()), "OneVsOneClassifier is not a linear classifier"),
        (
            OutputCodeClassifier(LinearSVC(), random_state=0),
            "OutputCodeClassifier is not a linear classifier",
        ),
        (BaggingClassifier(LinearSVC(), 3), "BaggingClassifier is not a linear classifier"),
        (OneVsRestClassifier(SVC()), "SVC is not a linear classifier"),
        (make_pipeline(StandardScaler(), SVC()), "SVC is not a linear classifier"),
    ],
)
def test_predictions_that_are_no_linear_argmax_are_refused(model: Any, complaint: str) -> None:
    with pytest.raises(HeadError, match=complaint):
        Head.from_sklearn(model.fit(FEATURES, THREE))


@pytest.mark.parametrize("model", [RidgeClassifier(), OneVsRestClassifier(LinearSVC())])
def test_several_labels_at_once_are_no_argmax(model: Any) -> None:
    with pytest.raises(HeadError, match="several labels at once"):
        Head.from_sklearn(model.fit(FEATURES, (SIDES > 0).astype(int)))


def test_a_regression_has_no_classes() -> None:
    with pytest.raises(HeadError, match=r"LinearRegression has no classes_"):
        Head.from_sklearn(LinearRegression().fit(FEATURES, SIDES))


def test_a_classifier_must_be_fitted() -> None:
    with pytest.raises(HeadError, match=r"not fitted yet\. Call fit first"):
        Head.from_sklearn(LogisticRegression())


def test_rows_must_match_the_classes() -> None:
    odd = SimpleNamespace(coef_=np.ones((3, 2)), intercept_=np.zeros(3), classes_=np.arange(4))
    with pytest.raises(HeadError, match="3 rows of coefficients for 4 classes"):
        Head.from_sklearn(odd)
