"""The whole path: fonts or images, a recogniser, a taught row, and what it reads then."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from running import Command
from tiny_ocr import LETTERS, TinyOcr

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.edit.teach.plan import Taught, TeachingRules, teach
from argmaxable.examples.faces import Face
from argmaxable.examples.material import Material
from argmaxable.workflow.example_set import ExampleSet
from argmaxable.workflow.find_model import FoundModel
from argmaxable.workflow.run_examples import ExampleRunner

HIDDEN = "e"
CTC = TeachingRules(blank=0)


def material(tiny: TinyOcr) -> Material:
    faces = tuple(map(Face, tiny.fonts))
    return Material(faces[:2], faces[2:], ordinary=60, text_lines=60, copies=24)


@pytest.fixture(scope="session")
def examples(tiny: TinyOcr, runner: ExampleRunner) -> ExampleSet:
    return runner.printed(material(tiny), [HIDDEN])


@pytest.fixture(scope="session")
def taught(found: FoundModel, runner: ExampleRunner, examples: ExampleSet) -> Taught:
    number = LETTERS.index(HIDDEN) + 1
    return teach(
        runner.head, found.domain, examples.training, [number], held_out=examples.held_out, rules=CTC
    )


def test_the_hidden_letter_could_never_be_predicted(taught: Taught) -> None:
    assert [(each.label, each.was) for each in taught.classes] == [(HIDDEN, Status.UNARGMAXABLE)]


def test_a_taught_letter_is_read_in_a_font_that_was_never_seen(taught: Taught) -> None:
    assert taught.held_out is not None
    plain = [each for each in taught.held_out.readings if each.source == "C.ttf, plain"]
    assert sum(each.before for each in plain) == 0
    assert sum(each.after for each in plain) == sum(each.occurrences for each in plain) > 0


def test_ordinary_lines_read_as_before(taught: Taught) -> None:
    assert taught.held_out is not None
    assert (taught.held_out.changed.count, taught.held_out.changed.total) == (0, 60)


def test_ordinary_lines_have_no_occurrences(examples: ExampleSet) -> None:
    training = examples.training
    assert int((~training.holding(set(LETTERS))).sum()) == 60


def test_the_same_seed_gives_the_same_features(tiny: TinyOcr, runner: ExampleRunner) -> None:
    small = Material((Face(tiny.fonts[0]),), ordinary=5, text_lines=5, copies=2)
    one, other = (runner.printed(small, [HIDDEN]).training for _ in range(2))
    assert np.array_equal(one.features, other.features)
    assert np.array_equal(one.spans, other.spans)


def test_pictures_are_of_the_held_out_lines(examples: ExampleSet) -> None:
    assert len(examples.pictures) == len(examples.held_out.sources)
    assert Image.open(io.BytesIO(examples.pictures[0])).format == "PNG"
    assert examples.pictures.get(10**6) is None


def test_how_images_became_inputs_is_told(examples: ExampleSet) -> None:
    assert examples.notes[0].startswith("images became inputs by --preprocess ctc-line,height=20,width=64")


def test_a_model_without_a_blank_can_not_be_shown_text(tiny: TinyOcr, runner: ExampleRunner) -> None:
    head = type(runner.head)(runner.head.weight, runner.head.bias, name="classifier")
    with pytest.raises(InputError, match="not a recogniser of text"):
        ExampleRunner(head, runner.recogniser).printed(material(tiny), [HIDDEN])


def write_images(folder: Path, tiny: TinyOcr) -> None:
    """Lines of three letters, with their texts, as PaddleOCR lists them."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(40):
        text = (
            "".join(rng.choice(list("abcdfgh"), 3)) if number % 2 else f"a{HIDDEN}{rng.choice(list('bdfh'))}"
        )
        image, _ = Face(tiny.fonts[number % 3]).line(text, 40, pad=4, ink=0, paper=255)
        image.save(folder / f"{number}.png")
        rows.append(f"{number}.png\t{text}")
    (folder / "rec_gt.txt").write_text("\n".join(rows), encoding="utf-8")


def test_images_with_texts_teach_too(
    tiny: TinyOcr, found: FoundModel, runner: ExampleRunner, tmp_path: Path
) -> None:
    write_images(tmp_path, tiny)
    given = runner.photographed(tmp_path, [HIDDEN])
    assert len(given.held_out.sources) == 8
    number = LETTERS.index(HIDDEN) + 1
    answer = teach(runner.head, found.domain, given.training, [number], held_out=given.held_out, rules=CTC)
    assert answer.held_out is not None
    assert answer.held_out.read_before.count == 0
    assert answer.held_out.read_after.count == answer.held_out.read_after.total > 0


def test_a_folder_that_is_named_as_no_class_is_refused(runner: ExampleRunner, tmp_path: Path) -> None:
    (tmp_path / "nobody").mkdir()
    for number in range(5):
        Image.new("RGB", (32, 20), "white").save(tmp_path / "nobody" / f"{number}.png")
    with pytest.raises(InputError, match="'nobody' is the name of a folder of images, but not of a class"):
        runner.photographed(tmp_path, [HIDDEN])


def test_the_command_teaches_from_fonts(tiny: TinyOcr, command: Command, tmp_path: Path) -> None:
    target, page = tmp_path / "taught.onnx", tmp_path / "page.html"
    ran = command(
        "teach", tiny.model, HIDDEN, "--font", tiny.fonts[0], "--held-out-font", tiny.fonts[2],
        "--copies", "8", "--text-lines", "30", "--preprocess", "ctc-line,width=64",
        "-o", target, "--report", page,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert target.is_file()
    assert "1 classes could never be predicted, now 0" in ran.out
    assert "data:image/png" in page.read_text(encoding="utf-8")


def test_the_command_observes_every_letter(tiny: TinyOcr, command: Command) -> None:
    ran = command(
        "observe", tiny.model, "--font", tiny.fonts[0], "--font", tiny.fonts[1], "--copies", "6", "--json"
    )
    assert ran.code == 0, ran.err
    classes = {each["label"]: each for each in json.loads(ran.out)["classes"]}
    assert all(classes[letter]["examples"] >= 6 for letter in LETTERS)
    assert classes[HIDDEN]["grade"] == "unargmaxable"
    assert classes["a"]["grade"] == "wins"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no examples were given. Pass one of"),
        (("--font", "A", "--images", "B"), "--font and --images can't be used together"),
        (("--features", "x.npz", "--held-out-font", "C"), "--held-out-font only works with --font"),
    ],
)
def test_examples_come_from_one_place(
    tiny: TinyOcr, command: Command, options: tuple[str, ...], said: str
) -> None:
    ran = command("teach", tiny.model, HIDDEN, "--dry-run", *options)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
