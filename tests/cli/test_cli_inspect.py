"""`argmaxable inspect`, and reading a head of every format through the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2_writer
import fasttext_writer
import gguf_writer
import keras_writer
import ml_dtypes
import numpy as np
import onnx_writer
import pytest
import tflite_writer
import torch
from gguf import GGMLQuantizationType, quants
from keras_writer import dense, layer, sequential
from onnx_writer import node
from running import PROGRAM, Command, Ran, in_a_process, is_one_clear_line, without_progress
from safetensors.numpy import save_file
from tflite_writer import FUSED_RELU6, T, constant, fully_connected, softmax

RNG = np.random.default_rng(0)
WEIGHT, OTHER = RNG.normal(size=(2, 6, 4)).astype(np.float32)
BIAS, OTHER_BIAS = RNG.normal(size=(2, 6)).astype(np.float32)
HIDDEN = RNG.normal(size=(4, 4)).astype(np.float32)
GAIN = RNG.normal(size=4).astype(np.float32)
LABELS = ("a", "b", "c", "d", "e", "f")
Rows = dict[str, list[str]]  # lines of text by heading
Stored = dict[str, Any]  # name, shape and dtype of a tensor, as --json shows them


def stored(name: str, *shape: int, dtype: str = "float32") -> Stored:
    return {"name": name, "shape": list(shape), "dtype": dtype}


@dataclass(frozen=True)
class Case:
    """A file of some format and what `inspect` has to say about it.

    `other` are options that choose another tensor of the same file, `shape` its classes and features.
    """

    name: str
    make: Callable[[Path], Path]
    format: str
    weight: Stored
    bias: Stored | None
    labels: str | None
    inputs: str | None
    domain: str | None
    other: tuple[str, ...]
    shape: tuple[int, int] = (6, 4)
    alternatives: tuple[str, ...] = ()


# ---------------------------------------------------------------------- one small file of each format


def onnx_file(folder: Path) -> Path:
    nodes = [
        node("MatMul", "x V", "v"),
        node("Relu", "v", "h"),
        node("MatMul", "h W", "z"),
        node("Add", "z b", "y"),
    ]
    constants = {"V": HIDDEN, "W": np.ascontiguousarray(WEIGHT.T), "b": BIAS, "v0": OTHER_BIAS[:4]}
    return onnx_writer.save(folder, onnx_writer.build(nodes, constants, character="a\nb\nc\nd"))


def huggingface_folder(folder: Path) -> Path:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.json").write_text(json.dumps({label: number for number, label in enumerate(LABELS)}))
    tensors = {"lm_head.weight": WEIGHT, "model.embed_tokens.weight": OTHER, "model.norm.weight": GAIN}
    save_file({**tensors, "extra.bias": OTHER_BIAS}, folder / "model.safetensors")
    return folder


def safetensors_file(folder: Path) -> Path:
    tensors = {"classifier.weight": WEIGHT.astype(ml_dtypes.bfloat16), "classifier.bias": BIAS}
    more = {"embeddings.weight": OTHER.astype(np.float16), "extra": OTHER_BIAS}
    save_file({**tensors, **more}, folder / "bare.safetensors")
    return folder / "bare.safetensors"


def pytorch_file(folder: Path) -> Path:
    arrays = {
        "body.weight": OTHER,
        "body.bias": OTHER_BIAS,
        "classifier.weight": WEIGHT,
        "classifier.bias": BIAS,
    }
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    torch.save({"state_dict": tensors, "epoch": 3}, folder / "model.bin")
    return folder / "model.bin"


def npz_file(folder: Path) -> Path:
    np.savez(folder / "head.npz", W=WEIGHT, b=BIAS, labels=np.array(LABELS), V=OTHER, c=OTHER_BIAS)
    return folder / "head.npz"


def gguf_file(folder: Path) -> Path:
    tensors = {"output.weight": WEIGHT.astype(np.float16), "token_embd.weight": OTHER, "extra": OTHER_BIAS}
    return gguf_writer.write(
        folder / "model.gguf", {**tensors, "output_norm.weight": GAIN}, tokens=("<s>", "Ġa", *LABELS[:4])
    )


MLP = sequential(dense("hidden", 4, "tanh"), layer("Dropout", "dropout"), dense("output", 6, "softmax"))


def h5_file(folder: Path) -> Path:
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    layers = {
        "hidden": {"hidden/kernel:0": HIDDEN, "hidden/bias:0": OTHER_BIAS[:4]},
        "dropout": {},
        "output": {"output/kernel:0": WEIGHT.T, "output/bias:0": BIAS},
    }
    return keras_writer.write(folder / "model.h5", keras_writer.listed(layers, MLP))


def keras_file(folder: Path) -> Path:
    layers = {
        "layers/dense": ("hidden", [HIDDEN, OTHER_BIAS[:4]]),
        "layers/dense_1": ("output", [WEIGHT.T, BIAS]),
    }
    data = keras_writer.archive(keras_writer.numbered(layers), MLP)
    return keras_writer.write(folder / "model.keras", data)


def tflite_file(folder: Path) -> Path:
    tensors = [T("x", (1, 4)), T("h", (1, 4)), T("z", (1, 6)), T("p", (1, 6))]
    constants = {"V": HIDDEN, "v": OTHER_BIAS[:4], "W": WEIGHT, "b": BIAS, "c": OTHER_BIAS[:4]}
    tensors += [constant(name, array) for name, array in constants.items()]
    operators = [
        fully_connected("x", "V", "v", out="h", fused=FUSED_RELU6),
        fully_connected("h", "W", "b"),
        softmax("z"),
    ]
    return tflite_writer.write(folder / "model.tflite", tensors, operators, ["p"])


def fasttext_file(folder: Path) -> Path:
    names = tuple(f"__label__{label}" for label in LABELS)
    output, words = fasttext_writer.Dense(WEIGHT), fasttext_writer.Dense(RNG.normal(size=(10, 4)))
    return fasttext_writer.Model(output, words, labels=names, dim=4).save(folder / "model.bin")


def ctranslate2_file(folder: Path) -> Path:
    arrays = {
        "decoder/embeddings/weight": WEIGHT + 1,
        "decoder/projection/weight": WEIGHT,
        "decoder/projection/bias": BIAS,
        "extra": OTHER_BIAS,
    }
    return ctranslate2_writer.Model(list(arrays.items())).save(folder, shared_vocabulary=LABELS)


KERNELS = "model_weights/{0}/{0}/kernel:0", "model_weights/{0}/{0}/bias:0"
CASES = [
    Case(
        "onnx", onnx_file, "onnx", stored("W", 4, 6), stored("b", 6), "the model's metadata, key 'character'",
        "Relu", "box [0, inf]", ("--tensor", "V", "--bias-tensor", "v0"), (4, 4), ("V",),
    ),
    Case(
        "directory", huggingface_folder, "huggingface", stored("lm_head.weight", 6, 4), None, "vocab.json",
        "RMSNorm, gain model.norm.weight", "RMSNorm solid",
        ("--tensor", "model.embed_tokens.weight", "--bias-tensor", "extra.bias"),
        alternatives=("model.embed_tokens.weight",),
    ),
    Case(
        "safetensors", safetensors_file, "safetensors", stored("classifier.weight", 6, 4, dtype="bfloat16"),
        stored("classifier.bias", 6), None, "not known", None,
        ("--tensor", "embeddings.weight", "--bias-tensor", "extra"), alternatives=("embeddings.weight",),
    ),
    Case(
        "pytorch", pytorch_file, "pytorch", stored("classifier.weight", 6, 4), stored("classifier.bias", 6),
        None, "not known", None, ("--tensor", "body.weight", "--bias-tensor", "body.bias"),
        alternatives=("body.weight",),
    ),
    Case(
        "npz", npz_file, "npz", stored("W", 6, 4), stored("b", 6), "the array labels", None, None,
        ("--tensor", "V", "--bias-tensor", "c"), alternatives=("V",),
    ),
    Case(
        "gguf", gguf_file, "gguf", stored("output.weight", 6, 4, dtype="float16"), None,
        "the file's tokenizer.ggml.tokens", "RMSNorm with output_norm.weight", "RMSNorm solid",
        ("--tensor", "token_embd.weight", "--bias-tensor", "extra"), alternatives=("token_embd.weight",),
    ),
    Case(
        "h5", h5_file, "keras", stored(KERNELS[0].format("output"), 4, 6),
        stored(KERNELS[1].format("output"), 6), "labels.txt", "Dense 'hidden' (tanh)", "box ±1",
        ("--tensor", KERNELS[0].format("hidden"), "--bias-tensor", KERNELS[1].format("hidden")), (4, 4),
        (KERNELS[0].format("hidden"),),
    ),
    Case(
        "keras", keras_file, "keras", stored("layers/dense_1/vars/0", 4, 6),
        stored("layers/dense_1/vars/1", 6), None, "Dense 'hidden' (tanh)", "box ±1",
        ("--tensor", "layers/dense/vars/0", "--bias-tensor", "layers/dense/vars/1"), (4, 4),
        ("layers/dense/vars/0",),
    ),
    Case(
        "tflite", tflite_file, "tflite", stored("W", 6, 4), stored("b", 6), None, "FULLY_CONNECTED relu6",
        "box [0, 6]", ("--tensor", "V", "--bias-tensor", "c"), (4, 4), ("V",),
    ),
    Case(
        "fasttext", fasttext_file, "fasttext", stored("output", 6, 4), None, "the model's dictionary",
        "the mean of the vectors of a text's words", None, ("--tensor", "output", "--transpose"), (4, 6),
    ),
    Case(
        "ctranslate2", ctranslate2_file, "ctranslate2", stored("decoder/projection/weight", 6, 4),
        stored("decoder/projection/bias", 6), "shared_vocabulary.json", "the decoder's last block", None,
        ("--tensor", "decoder/embeddings/weight", "--bias-tensor", "extra"),
        alternatives=("decoder/embeddings/weight",),
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {case.name: case.make(tmp_path_factory.mktemp(case.name)) for case in CASES}


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    chosen = request.param
    assert isinstance(chosen, Case)
    return chosen


@pytest.fixture(scope="module")
def shown() -> dict[str, Rows]:
    """What `inspect` said about a file, by its name."""
    return {}


@pytest.fixture
def rows(command: Command, files: dict[str, Path], case: Case, shown: dict[str, Rows]) -> Rows:
    """The text about the file: each file is inspected once."""
    if case.name not in shown:
        shown[case.name] = rows_of(command("inspect", files[case.name]))
    return shown[case.name]


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    kind = GGMLQuantizationType.Q8_0
    stored = quants.quantize(np.ones((6, 32), np.float32), kind)
    return gguf_writer.write(tmp_path / "q8.gguf", {"token_embd.weight": (stored, kind)})


def rows_of(ran: Ran) -> dict[str, list[str]]:
    """The lines of text under each heading."""
    assert (ran.code, ran.err) == (0, "")
    rows: dict[str, list[str]] = {}
    for line in ran.out.splitlines():
        heading, text = line[:12].strip(), line[13:]
        rows.setdefault(heading or list(rows)[-1], []).append(text)
    return rows


def as_text(tensor: Stored | None) -> str:
    if tensor is None:
        return "none"
    return f"{tensor['name']} ({' × '.join(map(str, tensor['shape']))}, {tensor['dtype']})"


# ---------------------------------------------------------------------- what was found


def test_the_text_names_format_size_and_tensors(rows: Rows, case: Case) -> None:
    assert rows["format"] == [case.format]
    assert rows["head"] == ["6 classes × 4 features"]
    assert rows["weight"][0] == as_text(case.weight)
    assert rows["bias"] == [as_text(case.bias)]


def test_the_text_says_how_the_head_was_found(rows: Rows) -> None:
    (_, why) = rows["weight"]
    assert why


def test_the_text_says_where_labels_come_from(rows: Rows, case: Case) -> None:
    (labels,) = rows["labels"]
    if case.labels is None:
        assert labels == "none (pass --labels FILE)"
    else:
        assert labels.startswith(f"6 from {case.labels}: ")
        assert len(labels.removeprefix(f"6 from {case.labels}: ").split("  ")) == 6


def test_the_text_shows_how_the_domain_was_derived(rows: Rows, case: Case) -> None:
    assert (case.inputs or "not known from the file") in rows["inputs"][0]
    known = "not known from the file: choose one with verify --domain"
    assert rows["domain"] == [known if case.domain is None else f"{case.domain} (verify with --domain auto)"]


def test_the_text_offers_the_alternatives(rows: Rows, case: Case) -> None:
    offered = rows.get("others", ["none"])[1:]
    assert [line.split()[:2] for line in offered] == [["--tensor", name] for name in case.alternatives]


def test_json_says_the_same(command: Command, files: dict[str, Path], case: Case) -> None:
    record = command("inspect", files[case.name], "--json").record
    said = {key: record[key] for key in ("format", "classes", "features", "weight", "bias", "domain")}
    assert said == {
        "format": case.format, "classes": 6, "features": 4, "weight": case.weight, "bias": case.bias,
        "domain": case.domain,
    }  # fmt: skip
    assert record["model"] == str(files[case.name])
    assert (case.inputs or "") in (record["inputs"] or "")
    assert tuple(info["name"] for info in record["alternatives"]) == case.alternatives
    assert (record["labels"] or {"source": None})["source"] == case.labels
    assert record["why"]


def test_verify_takes_what_inspect_shows(command: Command, files: dict[str, Path], case: Case) -> None:
    shown = command("inspect", files[case.name], "--json").record
    record = command("verify", files[case.name], "--no-db", "--workers", "1", "--json").record
    assert (record["classes"], record["features"]) == (shown["classes"], shown["features"])
    assert record["bias"] == (shown["bias"] is not None)


def test_labels_are_shown_as_a_person_writes_them(command: Command, files: dict[str, Path]) -> None:
    assert rows_of(command("inspect", files["gguf"]))["labels"][0].endswith(": <s>  ' a'  a  b  c  d")
    assert command("inspect", files["gguf"], "--json").record["labels"] == {
        "source": "the file's tokenizer.ggml.tokens", "count": 6, "padding": 0,
        "first": ["<s>", " a", "a", "b", "c", "d"],
    }  # fmt: skip


def test_of_many_labels_and_tensors_the_first_are_shown(command: Command, tmp_path: Path) -> None:
    labels = np.array([f"label number {number}" for number in range(20)])
    others = {f"V{number}": np.ones((20, 2)) for number in range(10)}
    np.savez(tmp_path / "many.npz", W=np.ones((20, 2)), labels=labels, **others)
    rows = rows_of(command("inspect", tmp_path / "many.npz"))
    assert rows["labels"] == [f"20 from the array labels: {'  '.join(labels)[:76]} …"]
    assert rows["others"][1:] == [f"--tensor V{number} (20 × 2, float64)" for number in range(8)] + [
        "and 2 more"
    ]
    assert len(command("inspect", tmp_path / "many.npz", "--json").record["alternatives"]) == 10


def test_quantised_weights_are_noted(command: Command, quantised: Path) -> None:
    rows = rows_of(command("inspect", quantised))
    assert rows["weight"][0] == "token_embd.weight (6 × 32, Q8_0)"
    assert rows["note"] == ["the weights are stored as Q8_0 and dequantised to float32"]
    assert command("inspect", quantised, "--json").record["notes"] == rows["note"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [(7, "7 from the array labels, 1 more than there"), (4, "4 from the array labels, 2 fewer than there")],
)
def test_labels_that_do_not_fit_are_shown_as_such(
    command: Command, tmp_path: Path, labels: int, said: str
) -> None:
    np.savez(tmp_path / "odd.npz", W=WEIGHT, labels=np.array(["x"] * labels))
    rows = rows_of(command("inspect", tmp_path / "odd.npz"))
    assert rows["labels"] == [f"{said} are classes: pass others with --labels FILE"]
    refused = command("verify", tmp_path / "odd.npz", "--no-db")
    assert refused.code == 2
    assert is_one_clear_line(refused)


def test_rows_beyond_the_vocabulary_are_shown_as_padding(command: Command, tmp_path: Path) -> None:
    tensors = {"token_embd.weight": np.repeat(WEIGHT, 2, axis=0)}
    path = gguf_writer.write(tmp_path / "padded.gguf", tensors, tokens=tuple("abcdefghijk"))
    (labels,) = rows_of(command("inspect", path))["labels"]
    assert labels.startswith("11 from the file's tokenizer.ggml.tokens, 1 row of padding: a  b  c")


# ---------------------------------------------------------------------- overrides, everywhere


def test_another_tensor_is_taken_where_the_user_names_it(
    command: Command, files: dict[str, Path], case: Case
) -> None:
    record = command("inspect", files[case.name], *case.other, "--json").record
    assert (record["classes"], record["features"]) == case.shape
    assert record["weight"]["name"] == case.other[1]
    assert (record["bias"] or {"name": "--transpose"})["name"] == case.other[-1]


def test_transpose_swaps_classes_and_features(command: Command, files: dict[str, Path], case: Case) -> None:
    bias = () if case.bias is None else ("--bias-tensor", case.bias["name"])
    record = command("inspect", files[case.name], "--transpose", *bias, "--json").record
    assert (record["classes"], record["features"]) == (4, 6)


def test_overrides_hold_for_verify_and_check_too(
    command: Command, files: dict[str, Path], case: Case, tmp_path: Path
) -> None:
    path, proofs = files[case.name], tmp_path / "proofs"
    verified = command("verify", path, *case.other, "--no-db", "--workers", "1", "--output", proofs)
    assert verified.code in (0, 1)
    checked = command("check", proofs, path, *case.other)
    assert checked.code == 0
    assert checked.out.startswith(f"{case.shape[0]} of {case.shape[0]} verdicts proven")
    another_head = command("check", proofs, path)
    assert another_head.code == 2
    assert is_one_clear_line(another_head)


def test_an_array_without_a_name_can_be_transposed(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "head.npy", WEIGHT.T)
    record = command("inspect", tmp_path / "head.npy", "--transpose", "--json").record
    assert (record["format"], record["classes"], record["features"]) == ("npy", 6, 4)


@pytest.mark.parametrize("option", ["--tensor", "--bias-tensor"])
def test_a_tensor_that_is_not_there_is_bad_input(
    command: Command, files: dict[str, Path], case: Case, option: str
) -> None:
    ran = command("inspect", files[case.name], option, "nowhere")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert str(files[case.name]) in ran.err
    assert "'nowhere'" in ran.err


def test_what_inspect_offers_can_be_pasted_into_a_shell(command: Command, tmp_path: Path) -> None:
    tensors = [T("x", (1, 4)), T("h", (1, 4)), T("z", (1, 6))]
    tensors += [constant("a/weights;b c/weights", HIDDEN), constant("W", WEIGHT)]
    operators = [fully_connected("x", tensors[3].name, out="h"), fully_connected("h", "W")]
    path = tflite_writer.write(tmp_path / "model.tflite", tensors, operators)
    offered = rows_of(command("inspect", path))["others"][1]
    assert offered == "--tensor 'a/weights;b c/weights' (4 × 4, float32)"
    record = command("inspect", path, *shlex.split(offered.rpartition(" (")[0]), "--json").record
    assert record["weight"]["name"] == "a/weights;b c/weights"


def test_a_bias_that_does_not_fit_is_shown_and_not_verified(command: Command, files: dict[str, Path]) -> None:
    arguments = (files["directory"], "--bias-tensor", "model.norm.weight")
    inspected = command("inspect", *arguments)
    assert "model.norm.weight (4, float32), which does not fit 6 classes: pass another --bias-tensor" in (
        inspected.out
    )
    assert inspected.code == command("verify", *arguments, "--no-db").code == 2


def test_a_named_tensor_that_verify_refuses_is_bad_input_for_inspect(
    command: Command, tmp_path: Path
) -> None:
    weight = np.arange(24, dtype=np.int8).reshape(4, 6)
    model = onnx_writer.build([node("MatMul", "x W", "y")], {"W": WEIGHT.T.copy(), "Q": weight})
    path = onnx_writer.save(tmp_path, model)
    verified = command("verify", path, "--tensor", "Q", "--no-db")
    inspected = command("inspect", path, "--tensor", "Q")
    assert (inspected.code, inspected.err) == (verified.code, verified.err) == (2, inspected.err)
    assert "'Q' has type int8" in inspected.err
    assert command("inspect", path, "--tensor", "W").code == 0


# ---------------------------------------------------------------------- no head


@pytest.fixture
def headless(tmp_path: Path) -> Path:
    config = {"model_type": "bert", "architectures": ["BertModel"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.txt").write_text("\n".join(("[PAD]", "[CLS]", "[SEP]", "the", "##s", "is")) + "\n")
    prefix = "embeddings.word_embeddings.weight"
    save_file({prefix: WEIGHT, "encoder.layer.0.output.dense.weight": HIDDEN}, tmp_path / "model.safetensors")
    return tmp_path


def test_a_model_without_a_head_says_so_and_offers_its_embeddings(command: Command, headless: Path) -> None:
    ran = command("inspect", headless)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "BertModel is the body of a model, without a head" in ran.err
    assert "embeddings.word_embeddings.weight (6 × 4, float32)" in ran.err


def test_the_embeddings_on_offer_can_be_pasted(command: Command, headless: Path) -> None:
    offered = re.search(r"\((--tensor \S+)\)", command("inspect", headless).err)
    assert offered is not None
    rows = rows_of(command("inspect", headless, *shlex.split(offered[1])))
    assert rows["weight"] == ["embeddings.word_embeddings.weight (6 × 4, float32)", "chosen by name"]
    assert rows["labels"] == ["6 from vocab.txt: [PAD]  [CLS]  [SEP]  the  ##s  is"]
    verified = command("verify", headless, *shlex.split(offered[1]), "--no-db", "--workers", "1", "--json")
    assert verified.record["classes"] == 6


def test_several_matrices_without_a_name_we_know_are_listed(command: Command, tmp_path: Path) -> None:
    save_file({"one": WEIGHT, "two": HIDDEN}, tmp_path / "model.safetensors")
    ran = command("inspect", tmp_path / "model.safetensors")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "one (6 × 4, float32), two (4 × 4, float32)" in ran.err
    assert "--tensor" in ran.err


def test_hierarchical_softmax_is_refused_in_clear_words(command: Command, tmp_path: Path) -> None:
    matrices = fasttext_writer.Dense(WEIGHT), fasttext_writer.Dense(HIDDEN)
    model = fasttext_writer.Model(*matrices, labels=LABELS, loss=fasttext_writer.HIERARCHICAL, dim=4)
    ran = command("inspect", model.save(tmp_path / "model.bin"))
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "hierarchical softmax" in ran.err


# ---------------------------------------------------------------------- packages that are not there

OPTIONAL = ("torch", "gguf", "h5py", "huggingface_hub")
# Libraries that know these formats but that reading a head must not need.
NEVER_NEEDED = ("safetensors", "tokenizers", "sentencepiece", "transformers", "tensorflow", "keras", "yaml")
MISSING = """
import sys
from contextlib import suppress

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from argmaxable.cli import main
"""
# Several files in one process, because starting one takes half a second.
WITHOUT_ANY = (
    MISSING
    + """
for path in sys.argv[1:]:
    sys.argv = ["argmaxable", "inspect", "--json", path]
    with suppress(SystemExit):
        main()
"""
)


def run_without(blocked: tuple[str, ...], *paths: Path) -> Ran:
    line = [sys.executable, "-c", WITHOUT_ANY.format(blocked=blocked), *map(str, paths)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("torch", "pytorch", "torch"),
        ("h5py", "h5", "keras"),
        ("h5py", "keras", "keras"),
        ("gguf", "quantised", "gguf"),
        ("huggingface_hub", "org/name", "hub"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    command: Command,
    files: dict[str, Path],
    quantised: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    name: str,
    extra: str,
) -> None:
    model = {**files, "quantised": quantised}.get(name, name)
    monkeypatch.setitem(sys.modules, package, None)
    ran = command("inspect", model)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert package in ran.err
    assert f"pip install 'argmaxable[{extra}]'" in ran.err


def test_other_formats_are_read_by_the_base_install(files: dict[str, Path]) -> None:
    names = ("onnx", "directory", "safetensors", "npz", "gguf", "tflite", "fasttext", "ctranslate2")
    ran = run_without(OPTIONAL + NEVER_NEEDED, *(files[name] for name in names))
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line)["classes"] for line in ran.out.splitlines()] == [6] * len(names)


# ---------------------------------------------------------------------- files that mean harm


class Payload:
    """Unpickled carelessly, it creates a folder."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("name", ["inspect", "verify"])
@pytest.mark.parametrize("file", ["model.bin", "model.pt", "folder/pytorch_model.bin"])
def test_a_payload_is_refused_by_name_and_never_run(
    command: Command, tmp_path: Path, name: str, file: str
) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "created"
    weights = {"classifier.weight": torch.ones(3, 2), "classifier.bias": torch.ones(3)}
    torch.save({**weights, "more": Payload(target)}, tmp_path / file)
    ran = command(name, tmp_path / file if "/" not in file else tmp_path / "folder")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "posix.mkdir" in ran.err
    assert not target.exists()


def test_pickled_labels_are_refused_and_never_run(command: Command, tmp_path: Path) -> None:
    labels = np.array([Payload(tmp_path / "created")], dtype=object)
    np.savez(tmp_path / "head.npz", W=np.ones((1, 2)), labels=labels, allow_pickle=True)
    ran = command("inspect", tmp_path / "head.npz")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "pickled Python objects" in ran.err
    assert not (tmp_path / "created").exists()


CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029]")
HOSTILE = ("\x1b]0;owned\x07", "\x1b[2J\x1b[31m", "a\rb", "\u202edrowssap", "\x9b31m", "line\u2028end")


def hostile_labels(folder: Path) -> Path:
    np.savez(folder / "hostile.npz", W=np.zeros((6, 4)), labels=np.array(HOSTILE))
    return folder / "hostile.npz"


@pytest.mark.parametrize("name", ["inspect", "verify"])
def test_labels_can_not_steer_the_terminal(command: Command, tmp_path: Path, name: str) -> None:
    options = ("--no-db", "--workers", "1") if name == "verify" else ()
    ran = command(name, hostile_labels(tmp_path), *options)
    assert ran.code in (0, 1)
    assert r"\u{1b}]0;owned\u{7}" in ran.out
    assert not CONTROL.search(ran.out)


@pytest.mark.parametrize("name", ["inspect", "verify"])
def test_json_holds_such_labels_escaped(command: Command, tmp_path: Path, name: str) -> None:
    options = ("--no-db", "--workers", "1") if name == "verify" else ()
    ran = command(name, hostile_labels(tmp_path), *options, "--json")
    assert not CONTROL.search(ran.out)
    assert ran.out.isascii()
    record = ran.record
    labels = record["labels"]["first"] if name == "inspect" else [
        entry["label"] for entry in record["unargmaxable_classes"]
    ]  # fmt: skip
    assert tuple(labels) == HOSTILE


def test_names_of_tensors_can_not_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    name = "\x1b[31mhead\x9b"
    save_file({f"{name}.weight": WEIGHT, f"{name}.bias": BIAS}, tmp_path / "m.safetensors")
    ran = command("inspect", tmp_path / "m.safetensors")
    assert not CONTROL.search(ran.out)
    rows = rows_of(ran)
    assert rows["weight"][0] == r"\u{1b}[31mhead\u{9b}.weight (6 × 4, float32)"
    assert rows["bias"] == [r"\u{1b}[31mhead\u{9b}.bias (6, float32)"]


def test_names_of_tensors_in_errors_can_not_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    save_file({"\x1b[31mone": WEIGHT, "\x1b]0;owned\x07": HIDDEN}, tmp_path / "m.safetensors")
    ran = command("inspect", tmp_path / "m.safetensors")
    assert ran.code == 2
    assert not CONTROL.search(ran.err)


# ---------------------------------------------------------------------- terminals and pipes


def test_a_narrow_terminal_gets_the_same_text(
    command: Command, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        shown.append(command("inspect", files["onnx"]))
    assert shown[0] == shown[1]


def test_help_fits_a_narrow_terminal(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = command("inspect", "--help")
    assert ran.code == 0
    assert "argmaxable inspect model.onnx" in ran.out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_is_gone_hears_no_complaint(files: dict[str, Path], options: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "inspect", str(files["onnx"]), *options],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, without_progress(done.stderr.decode())) == (0, "")


def test_the_first_line_can_be_taken_with_head(files: dict[str, Path]) -> None:
    line = f"{shlex.join([*PROGRAM, 'inspect', str(files['onnx'])])} | head -1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.stdout, without_progress(done.stderr)) == ("format       onnx\n", "")


def test_names_that_stdout_can_not_encode_are_escaped(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=np.ones((1, 2)), labels=np.array(["😀"]))
    ran = in_a_process("inspect", tmp_path / "head.npz", PYTHONIOENCODING="latin-1")
    assert ran.code == 0
    assert "\\U0001f600" in ran.out
