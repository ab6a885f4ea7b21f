"""argmaxable sets: its files, its ways to name sets, its answers and exit codes, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper, save_model
from running import Command
from scipy import sparse

import argmaxable as am
from argmaxable.questions.sets.files import read_sets

LABELS = ("cat", "dog", "bird", "a|b")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bird is on wherever cat and dog are both on."""
    path = tmp_path_factory.mktemp("model") / "head.npz"
    weight = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    np.savez(path, W=weight, b=np.array([-0.5, -0.5, -0.9, -0.5]), labels=np.array(LABELS))
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------------- files


def test_json_lines_name_labels_or_numbers_and_may_count(model: Path, tmp_path: Path) -> None:
    text = '["cat", "dog"]\n{"labels": [2], "count": 3}\n[]\n[1, 0]\n'
    found = read_sets(written(tmp_path / "sets.jsonl", text), am.load_head(str(model)))
    assert dict(zip(found.sets, found.counts, strict=True)) == {(0, 1): 2, (2,): 3, (): 1}


def test_csv_has_labels_in_cells_or_in_one(model: Path, tmp_path: Path) -> None:
    head = am.load_head(str(model))
    assert read_sets(written(tmp_path / "a.csv", "cat,dog\nbird\n"), head).sets == ((0, 1), (2,))
    assert read_sets(written(tmp_path / "b.csv", "cat|dog\na|b\n"), head).sets == ((0, 1), (3,))
    found = read_sets(written(tmp_path / "c.csv", "labels,count\ncat|dog,5\n,2\n"), head)
    assert (found.sets, found.counts) == (((0, 1), ()), (5, 2))


def test_a_sparse_matrix_has_a_set_a_row(model: Path, tmp_path: Path) -> None:
    matrix = sparse.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]))
    sparse.save_npz(tmp_path / "sets.npz", matrix)
    found = read_sets(tmp_path / "sets.npz", am.load_head(str(model)))
    assert dict(zip(found.sets, found.counts, strict=True)) == {(0, 1): 2, (2,): 1, (): 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.jsonl", '["cow"]\n', "s.jsonl, line 1: the model has no label cow"),
        ("s.jsonl", "[0]\n[9]\n", "line 2: label 9 does not exist"),
        ("s.jsonl", '["cat", "cat"]\n', "label 0 occurs twice"),
        ("s.jsonl", "{}\n", "expected a list of labels"),
        ("s.jsonl", "nonsense\n", "not JSON"),
        ("s.jsonl", '{"labels": [0], "count": -1}\n', "a whole number of 0 or more"),
        ("s.jsonl", "\n", "has no sets"),
        ("s.csv", "labels,count\ncat\n", "the line has no count"),
        ("s.txt", "cat\n", "ends in .jsonl"),
        ("s.npz", "not a zip", "not a sparse matrix"),
    ],
)
def test_a_file_that_is_none_is_refused(
    model: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(am.InputError, match=message):
        read_sets(written(tmp_path / name, text), am.load_head(str(model)))


def test_a_matrix_of_another_width_or_format_is_refused(model: Path, tmp_path: Path) -> None:
    head = am.load_head(str(model))
    sparse.save_npz(tmp_path / "wide.npz", sparse.csr_matrix(np.eye(5)))
    with pytest.raises(am.InputError, match="5 columns, but the model has 4 labels"):
        read_sets(tmp_path / "wide.npz", head)
    sparse.save_npz(tmp_path / "columns.npz", sparse.csc_matrix(np.eye(4)))
    with pytest.raises(am.InputError, match="in the format csc, expected csr"):
        read_sets(tmp_path / "columns.npz", head)


# ---------------------------------------------------------------------- the command


def test_it_tells_which_sets_can_never_be_predicted_and_writes_proofs(
    model: Path, tmp_path: Path, command: Command
) -> None:
    data = written(tmp_path / "data.jsonl", '{"labels": ["cat", "dog"], "count": 3}\n["cat"]\n' * 2)
    page = tmp_path / "page.html"
    ran = command("sets", model, data, "--workers", "1", "--output", tmp_path / "proofs", "--report", page)
    assert ran.code == 1
    assert ran.out.startswith(
        "1 of 2 label sets can never be predicted for features within ±100; they are 75.0 % of 8 examples."
    )
    assert "{cat, dog}, 6 examples (margin at most " in ran.out
    assert command("check", tmp_path / "proofs", model).code == 0
    assert "{cat, dog}" in page.read_text(encoding="utf-8")


def test_json_has_every_set(model: Path, tmp_path: Path, command: Command) -> None:
    data = written(tmp_path / "data.jsonl", '["cat", "dog"]\n["cat"]\n')
    ran = command("sets", model, data, "--workers", "1", "--json")
    record = ran.record
    assert (record["infeasible"], record["feasible"], record["kind"]) == (1, 1, "exactly")
    assert [entry["status"] for entry in record["sets"]] == ["infeasible", "feasible"]
    assert 2 in record["sets"][0]["because_of"]


def test_all_pairs_random_sets_and_every_set(model: Path, command: Command) -> None:
    ran = command("sets", model, "--all-pairs", "--kind", "at-least", "--workers", "1", "--json")
    assert (ran.record["feasible"] + ran.record["infeasible"], ran.code) == (6, 1)
    ran = command("sets", model, "--random", "1", "--count", "9", "--workers", "1")
    assert "of 4 label sets" in ran.out
    ran = command("sets", model, "--active", "2", "--workers", "1")
    assert ran.code == 1
    assert ran.out.startswith(
        "Refuted: not every set of at most 2 labels can be predicted. This one never is:"
    )


def test_all_pairs_may_be_settled_at_once(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "head.npz", W=np.eye(5))
    ran = command("sets", tmp_path / "head.npz", "--all-pairs", "--domain", "everywhere")
    assert ran.code == 0
    assert "the rows are independent" in ran.out


def test_thresholds_may_be_numbers_files_or_probabilities(
    model: Path, tmp_path: Path, command: Command
) -> None:
    np.save(tmp_path / "each.npy", np.full(4, -9.0))
    for option, value, code in (
        ("--threshold", "-9", 1),
        ("--threshold", str(tmp_path / "each.npy"), 1),
        ("--probability", "0.5", 0),
    ):
        ran = command("sets", model, "--random", "0", "--count", "1", option, value, "--domain", "box:1")
        assert ran.code == code, (option, value, ran)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name the sets in exactly one way, found none of them"),
        (("--random", "2", "--all-pairs"), "found --random and --all-pairs"),
        (("--random", "5"), "the model has 4 labels"),
        (("--active", "9"), "sets of at most 9 labels"),
        (
            ("--random", "1", "--threshold", "0", "--probability", "0.5"),
            "pass --threshold or --probability, not both",
        ),
        (("--random", "1", "--probability", "1.5"), "above 0 and below 1"),
        (("--random", "1", "--threshold", "none.npy"), "neither a number nor"),
        (("--random", "1", "--kind", "top", "--threshold", "1"), "have no thresholds"),
        (("--random", "1", "--count", "0"), "--count must be 1 or more"),
    ],
)
def test_bad_options_are_refused(
    model: Path, command: Command, arguments: tuple[str, ...], message: str
) -> None:
    ran = command("sets", model, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_threshold_for_each_of_other_labels_is_refused(
    model: Path, tmp_path: Path, command: Command
) -> None:
    np.save(tmp_path / "each.npy", np.zeros(3))
    ran = command("sets", model, "--random", "1", "--threshold", str(tmp_path / "each.npy"))
    assert ran.code == 2
    assert "3 thresholds for 4 labels" in ran.err


# ---------------------------------------------------------------------- sigmoid or softmax


def onnx_with(path: Path, activation: str) -> Path:
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "W")
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["z"]),
        helper.make_node(activation, ["z"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [1, 3]) for name in "xy")
    save_model(helper.make_model(helper.make_graph(nodes, "g", [x], [y], [weight])), str(path))
    return path


def test_inspect_tells_sigmoid_heads_from_softmax_heads(tmp_path: Path, command: Command) -> None:
    path = onnx_with(tmp_path / "sigmoid.onnx", "Sigmoid")
    assert "output       sigmoid: each label by itself" in command("inspect", path).out
    assert json.loads(command("inspect", path, "--json").out)["activation"] == "sigmoid"
    path = onnx_with(tmp_path / "softmax.onnx", "Softmax")
    assert "output       softmax: one class at a time" in command("inspect", path).out


def test_verify_says_what_it_means_for_a_sigmoid_head(tmp_path: Path, command: Command) -> None:
    said = "The output is a sigmoid. This answer is about whether a label can score highest"
    for activation in ("Sigmoid", "Softmax"):
        path = onnx_with(tmp_path / f"{activation}.onnx", activation)
        ran = command("verify", path, "--no-db", "--workers", "1")
        assert (said in ran.out) == (activation == "Sigmoid")


# ---------------------------------------------------------------------- stored


def test_answers_are_stored_and_found_again(model: Path, tmp_path: Path, command: Command) -> None:
    data = written(tmp_path / "data.jsonl", '["cat", "dog"]\n["cat"]\n[]\n')
    asked = ("sets", model, data, "--domain", "box:1", "--workers", "1")
    assert "Stored as sets:1 (argmaxable show sets:1)." in command(*asked).out
    assert "Already stored as sets:1; --overwrite computes it again." in command(*asked).out
    assert command(*asked, "--json").record["run"] == "sets:1"
    assert "run" not in command(*asked, "--json", "--no-db").record
    listed = command("runs")
    assert "sets:1  head.npz  exactly" in listed.out
    assert [run["run"] for run in command("runs", "--json").record["sets"]] == ["sets:1"]
    assert not command("runs", "--json", "--name", "other").record["sets"]
    shown = command("show", "sets:1")
    assert "1 of 3 label sets can never be predicted for features within ±1" in shown.out
    assert command("show", "sets:1", "--json").record["infeasible"] == 1


def test_stored_sets_are_exported_reported_and_deleted(model: Path, tmp_path: Path, command: Command) -> None:
    command("sets", model, "--random", "2", "--count", "4", "--workers", "1")
    assert command("export", "sets:1", "--format", "bundle", "-o", tmp_path / "proofs").code == 0
    assert command("check", tmp_path / "proofs", model).code == 0
    refused = command("export", "sets:1")
    assert (refused.code, "--format bundle" in refused.err) == (2, True)
    assert command("report", "sets:1", "-o", tmp_path / "page.html").code == 0
    assert "label sets" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert command("report", "sets:1", "--format", "markdown").code == 2
    assert command("store", "check").code == 0
    assert command("runs", "--delete", "sets:1", "--yes").out == "Deleted 1 run.\n"
    gone = command("show", "sets:1")
    assert (gone.code, "sets:1 does not exist" in gone.err) == (2, True)


def test_numbers_in_a_table_are_no_labels_beside_names(model: Path, tmp_path: Path, command: Command) -> None:
    ran = command("sets", model, written(tmp_path / "ids.csv", "3,cat,dog\n"), "--no-db")
    assert ran.code == 2
    assert "line 1: the model has no label 3" in ran.err


def test_blank_lines_of_a_table_are_no_sets(model: Path, tmp_path: Path) -> None:
    found = read_sets(written(tmp_path / "s.csv", 'cat,dog\n\n\n""\n'), am.load_head(model))
    assert (found.sets, found.counts) == (((0, 1), ()), (1, 1))


def test_a_mark_of_byte_order_is_skipped(model: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", '\ufeff["cat"]\n')
    assert read_sets(path, am.load_head(model)).sets == ((0,),)


def test_a_quotation_mark_that_is_not_closed_is_bad_input(model: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", 'cat,"dog' + "x" * 200_000)
    with pytest.raises(am.InputError, match="is not CSV"):
        read_sets(path, am.load_head(model))


@pytest.mark.parametrize(
    "change",
    [
        {"data": np.array([1.0, np.nan])},
        {"shape": np.array([-1, 4]), "indptr": np.empty(0, np.int64)},
        {"shape": np.array([1, 4, 1])},
        {"format": np.array([b"csr", b"csr"])},
    ],
    ids=["NaN", "negative rows", "three sides", "two formats"],
)
def test_a_damaged_matrix_is_bad_input(model: Path, tmp_path: Path, change: dict[str, np.ndarray]) -> None:
    arrays = {
        **{"format": np.array(b"csr"), "shape": np.array([1, 4]), "indptr": np.array([0, 2])},
        **{"indices": np.array([0, 1]), "data": np.ones(2)},
    }
    np.savez(tmp_path / "s.npz", **arrays | change)
    with pytest.raises(am.InputError):
        read_sets(tmp_path / "s.npz", am.load_head(model))


@pytest.mark.parametrize("content", [b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_a_damaged_file_of_thresholds_is_bad_input(
    model: Path, tmp_path: Path, command: Command, content: bytes
) -> None:
    (tmp_path / "t.npy").write_bytes(content)
    ran = command("sets", model, "--all-pairs", "--threshold", tmp_path / "t.npy", "--no-db")
    assert ran.code == 2
    assert "neither a number nor an .npy file of numbers" in ran.err


def test_complex_thresholds_are_bad_input(model: Path, tmp_path: Path, command: Command) -> None:
    np.save(tmp_path / "t.npy", np.ones(4) * 1j)
    ran = command("sets", model, "--all-pairs", "--threshold", tmp_path / "t.npy", "--no-db")
    assert ran.code == 2
    assert "real numbers" in ran.err
    with pytest.raises(am.InputError, match="thresholds are numbers"):
        am.SetTest("exactly", np.ones(4) * 1j)


def test_the_answer_says_which_threshold_it_is_about(model: Path, command: Command) -> None:
    ran = command("sets", model, "--all-pairs", "--threshold", "3", "--no-db")
    assert "exactly these labels above a logit of 3 and every other label below." in ran.out


def test_nothing_decided_is_not_told_as_nothing_possible(model: Path, command: Command) -> None:
    ran = command("sets", model, "--all-pairs", "--time-limit", "0", "--no-db")
    assert ran.code == 3
    assert "No label set is decided. Not finished: 6 sets are undecided." in ran.out


def test_a_bundle_that_is_not_written_is_told(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "eye.npz", W=np.eye(4))
    places = ("--domain", "everywhere", "--output", tmp_path / "p", "--no-db")
    ran = command("sets", tmp_path / "eye.npz", "--all-pairs", *places)
    assert ran.code == 0
    assert "is not written: a condition on the rows settles all sets at once" in ran.err
    assert not (tmp_path / "p" / "sets.json").exists()


def test_undecided_sets_are_counted_where_every_set_is_open(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "h.npz", W=np.random.default_rng(0).normal(size=(12, 3)))
    asked = ("--active", "2", "--kind", "top", "--time-limit", "0", "--no-db")
    ran = command("sets", tmp_path / "h.npz", *asked)
    assert ran.code == 3
    assert "Open: it is not known whether every set of at most 2 labels can be predicted" in ran.out
