"""A tiny recogniser and its fonts, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_ocr import TinyOcr, write_font, write_recogniser

from argmaxable.models.model_ref import ModelRef
from argmaxable.workflow.find_model import FoundModel, find_model
from argmaxable.workflow.run_examples import ExampleRunner


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyOcr:
    folder = tmp_path_factory.mktemp("ocr")
    widths = (("A", 0), ("B", 20), ("C", 30))
    fonts = tuple(write_font(folder / f"{name}.ttf", thin=thin) for name, thin in widths)
    return TinyOcr(write_recogniser(folder / "recogniser.onnx", fonts[0], hidden="e"), fonts)


@pytest.fixture(scope="session")
def found(tiny: TinyOcr) -> FoundModel:
    return find_model(ModelRef(tiny.model))


@pytest.fixture(scope="session")
def runner(found: FoundModel) -> ExampleRunner:
    return ExampleRunner.of(found, found.head(), preprocess="ctc-line,width=64")


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A font of two letters."""
    return write_font(tmp_path / "two.ttf", "ab")
