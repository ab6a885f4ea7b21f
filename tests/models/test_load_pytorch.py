"""Heads in PyTorch files: every tensor bit for bit, every payload refused by name and never run."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.pytorch.reader import find
from argmaxable.models.pytorch.tensors import tensors_of
from argmaxable.models.registry import ReadOptions, find_format

torch.manual_seed(0)
WEIGHT, BIAS = torch.randn(5, 3), torch.randn(5)
HEAD = {"fc.weight": WEIGHT, "fc.bias": BIAS}
FORMATS = pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])


measurable = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


def saved(path: Path, value: object, *, new: bool = True) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=new)
    return path


def bits(array: Any) -> bytes:
    return np.asarray(array).tobytes()


# ---------------------------------------------------------------------- what is read


@FORMATS
@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt"])
def test_a_state_dict_is_read_from_every_suffix(tmp_path: Path, suffix: str, new: bool) -> None:
    head = load_head(saved(tmp_path / f"model{suffix}", HEAD, new=new))
    assert bits(head.weight) == bits(WEIGHT)
    assert head.bias is not None
    assert bits(head.bias) == bits(BIAS)


@FORMATS
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floats_come_back_bit_for_bit(tmp_path: Path, dtype: torch.dtype, new: bool) -> None:
    weight, bias = WEIGHT.to(dtype), BIAS.to(dtype)
    head = load_head(saved(tmp_path / "m.pt", {"fc.weight": weight, "fc.bias": bias}, new=new))
    assert head.weight.dtype == weight.numpy().dtype
    assert bits(head.weight) == bits(weight)
    assert bits(head.bias) == bits(bias)


@FORMATS
def test_bfloat16_comes_back_bit_for_bit(tmp_path: Path, new: bool) -> None:
    weight = WEIGHT.to(torch.bfloat16)
    head = load_head(saved(tmp_path / "m.pt", {"fc.weight": weight}, new=new))
    assert head.weight.dtype == ml_dtypes.bfloat16
    assert bits(head.weight) == bits(weight.view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_eight_bit_floats_become_the_same_numbers_in_float16(tmp_path: Path, dtype: torch.dtype) -> None:
    weight = WEIGHT.to(dtype)
    head = load_head(saved(tmp_path / "m.pt", {"fc.weight": weight}))
    assert head.weight.dtype == np.float16
    assert head.weight.tolist() == weight.double().tolist()


@pytest.mark.parametrize(
    "weight",
    [WEIGHT.T.contiguous().T, torch.randn(10, 6)[::2, ::2], torch.randn(20, 3)[3:8]],
    ids=["column-major", "strided", "part of a larger storage"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_memory_layout_gives_the_same_weight(
    tmp_path: Path, weight: torch.Tensor, dtype: torch.dtype
) -> None:
    head = load_head(saved(tmp_path / "m.pt", {"fc.weight": weight.to(dtype)}))
    assert head.weight.astype(np.float64).tolist() == weight.to(dtype).double().tolist()


def test_parameters_are_read_like_tensors(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pt", {"fc.weight": nn.Parameter(WEIGHT), "fc.bias": nn.Parameter(BIAS)})
    assert bits(load_head(path).weight) == bits(WEIGHT)


def test_a_bare_tensor_is_a_head(tmp_path: Path) -> None:
    assert bits(load_head(saved(tmp_path / "w.pt", WEIGHT)).weight) == bits(WEIGHT)


@FORMATS
@pytest.mark.parametrize(
    "wrapped",
    [
        {"state_dict": HEAD, "epoch": 3, "optimizer_states": [{"state": {0: {"exp_avg": WEIGHT + 1}}}]},
        {"model": HEAD, "optimizer": {"state": {0: {"exp_avg": WEIGHT + 1}}}, "best_acc": torch.tensor(0.5)},
        {"model_state_dict": HEAD, "loss": 0.1},
        {"module": {"model": HEAD}},
        {"model": {"fc": {"weight": WEIGHT, "bias": BIAS}}},
        {f"module.{name}": tensor for name, tensor in HEAD.items()},
        {f"_orig_mod.module.{name}": tensor for name, tensor in HEAD.items()},
        {"state_dict": {f"model.{name}": tensor for name, tensor in HEAD.items()}},
    ],
    ids=["lightning", "fairseq", "common", "nested", "tree", "data-parallel", "compiled", "lightning-model"],
)
def test_weights_are_found_inside_what_training_tools_save(tmp_path: Path, wrapped: Any, new: bool) -> None:
    head = load_head(saved(tmp_path / "m.ckpt", wrapped, new=new))
    assert bits(head.weight) == bits(WEIGHT)
    assert bits(head.bias) == bits(BIAS)


@FORMATS
def test_settings_and_statistics_beside_the_weights_do_no_harm(tmp_path: Path, new: bool) -> None:
    beside = {
        "args": argparse.Namespace(arch="transformer", path=Path("/data"), nested=argparse.Namespace()),
        "best_loss": np.float64(0.25),
        "curve": np.arange(3.0),
        "counts": defaultdict(list, {"a": [1]}),
        "types": [int, dict, str],
    }
    assert bits(load_head(saved(tmp_path / "m.pt", {**beside, "model": HEAD}, new=new)).weight) == bits(
        WEIGHT
    )


class AttributeDict(dict[str, Any]):
    """Stands for the class of that name in Lightning 1."""


def test_a_checkpoint_of_lightning_1_is_read_without_lightning(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.ckpt", {"state_dict": HEAD, "hyper_parameters": AttributeDict(lr=0.1)})
    with zipfile.ZipFile(path) as archive:
        pickled = archive.read("m/data.pkl")
    ours, theirs = f"c{__name__}\n".encode(), b"cpytorch_lightning.utilities.parsing\n"
    assert ours in pickled
    rewritten(path, zipfile.ZIP_STORED, data=pickled.replace(ours, theirs))
    assert bits(load_head(path).weight) == bits(WEIGHT)


def test_a_model_in_several_files_is_one_model(tmp_path: Path) -> None:
    embeddings = torch.randn(5, 3)
    head = {"lm_head.weight": WEIGHT, "model.norm.weight": torch.ones(3)}
    saved(tmp_path / "pytorch_model-00001-of-00002.bin", {"model.embed_tokens.weight": embeddings})
    saved(tmp_path / "pytorch_model-00002-of-00002.bin", head)
    files = {
        "model.embed_tokens.weight": "pytorch_model-00001-of-00002.bin",
        "lm_head.weight": "pytorch_model-00002-of-00002.bin",
        "model.norm.weight": "pytorch_model-00002-of-00002.bin",
    }
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    finding = find_format(tmp_path).find(tmp_path, ReadOptions())
    assert finding.weight.name == "lm_head.weight"
    assert finding.inputs is not None
    assert finding.inputs.domain is not None
    assert bits(finding.head("m").weight) == bits(WEIGHT)


def test_a_configuration_beside_the_file_says_where_the_head_is(tmp_path: Path) -> None:
    tied = {"transformer.wte.weight": WEIGHT, "transformer.ln_f.weight": torch.ones(3)}
    path = saved(tmp_path / "pytorch_model.bin", tied)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load_head(path).weight.tolist() == WEIGHT.tolist()


Measure = Callable[[Path], tuple[str, float]]

# Opens every file that it is told, each in a child of its own: importing torch takes longer than all of them.
MEASURING = r"""
import os, re, sys
from pathlib import Path
from argmaxable.models.pytorch.tensors import tensors_of
import torch

def peak():
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])

for line in sys.stdin:
    if not os.fork():
        before = peak()
        try:
            outcome = str(tensors_of(Path(line[:-1])).read("fc.weight").shape)
        except Exception as error:  # whichever: the test asks for its name
            outcome = type(error).__name__
        print(peak() - before, outcome, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def memory_to_open() -> Iterator[Measure]:
    """What comes of reading the head's weight, and how many megabytes a process grows by.

    Not as getrusage tells it, which begins with the size of the process that started the measured one.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", MEASURING], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip

        def measure(path: Path) -> tuple[str, float]:
            assert process.stdin is not None
            assert process.stdout is not None
            print(path, file=process.stdin, flush=True)
            kilobytes, _, outcome = process.stdout.readline().strip().partition(" ")
            return outcome, int(kilobytes) / 2**10

        yield measure


@measurable
def test_a_big_file_is_mapped_not_read(tmp_path: Path, memory_to_open: Measure) -> None:
    path = saved(tmp_path / "m.pt", {"body.weight": torch.zeros(24, 2**20), **HEAD})
    assert path.stat().st_size > 96 * 2**20
    outcome, megabytes = memory_to_open(path)
    assert outcome == "(5, 3)"
    assert megabytes < 24


@measurable
def test_an_old_file_takes_as_much_memory_as_it_has_bytes(tmp_path: Path, memory_to_open: Measure) -> None:
    path = saved(tmp_path / "m.pt", {"body.weight": torch.zeros(24, 2**20), **HEAD}, new=False)
    outcome, megabytes = memory_to_open(path)
    assert outcome == "(5, 3)"
    assert megabytes < path.stat().st_size / 2**20 + 24


# ---------------------------------------------------------------------- which tensor is the head


class Classifier(nn.Module):
    """Layers under names nobody could know, a convolution first."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(1, 4, 3)
        self.think = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.decide = nn.Linear(6, 7)

    def forward(self, images: torch.Tensor) -> Any:
        return self.decide(self.features(images))

    def features(self, images: torch.Tensor) -> Any:
        return self.norm(torch.relu(self.think(torch.relu(self.look(images)).mean((2, 3)))))


def test_the_argmax_of_the_head_is_the_models_own(tmp_path: Path) -> None:
    model = Classifier().eval()
    head = load_head(saved(tmp_path / "m.pth", model.state_dict()))
    with torch.no_grad():
        images = torch.randn(50, 1, 8, 8)
        features = model.features(images).double().numpy()
        answers = model(images).argmax(1).tolist()
    assert head.bias is not None
    assert (features @ head.weight.astype(float).T + head.bias).argmax(1).tolist() == answers


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Classifier(), "decide.weight"),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5)), "2.weight"),
        (nn.ModuleDict({"net": nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5))}), "net.1.weight"),
    ],
    ids=["names", "numbers", "inner-numbers"],
)
def test_without_a_usual_name_the_last_linear_layer_is_the_head(
    tmp_path: Path, model: nn.Module, name: str
) -> None:
    finding = find(saved(tmp_path / "m.pth", model.state_dict()), ReadOptions())
    assert finding.weight.name == name
    assert finding.bias is not None
    assert finding.why == "the last layer in the file, linear and with a bias"


@pytest.mark.parametrize(
    "state",
    [
        {"a.weight": torch.randn(4, 3), "b.weight": torch.randn(5, 4)},
        {
            "a.weight": torch.randn(4, 3),
            "b.weight": WEIGHT,
            "b.bias": BIAS,
            "c.weight": torch.randn(2, 4, 3, 3),
        },
        {"a.weight": torch.randn(4, 3), "b.weight": torch.randn(5, 4), "b.bias": torch.randn(4)},
        {
            f"blocks.{block}.mlp.{layer}.{kind}": torch.randn(4, 4) if kind == "weight" else torch.randn(4)
            for block in range(2)
            for layer in ("up", "down")
            for kind in ("weight", "bias")
        },
    ],
    ids=["no bias", "convolution behind", "bias of another length", "one of many blocks"],
)
def test_where_the_last_layer_may_be_no_head_the_user_has_to_choose(
    tmp_path: Path, state: dict[str, torch.Tensor]
) -> None:
    with pytest.raises(LoadError, match=r"no output layer found.*Largest matrices: .*weight \(.*--tensor"):
        load_head(saved(tmp_path / "m.pth", state))


def test_two_usual_names_are_ambiguous(tmp_path: Path) -> None:
    state = {**HEAD, "lm_head.weight": torch.randn(9, 3)}
    with pytest.raises(LoadError, match=r"lm_head\.weight, fc\.weight.*--tensor"):
        load_head(saved(tmp_path / "m.pth", state))


def test_names_choose_another_layer(tmp_path: Path) -> None:
    state = {"a.weight": WEIGHT, "a.bias": BIAS, "b": BIAS + 1, **{f"x.{k}": v for k, v in HEAD.items()}}
    path = saved(tmp_path / "m.pth", state)
    assert bits(load_head(path, tensor="a.weight").bias) == bits(BIAS)
    assert bits(load_head(path, tensor="a.weight", bias_tensor="b").bias) == bits(BIAS + 1)


def test_transpose_reads_features_by_classes(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pth", {"fc.weight": WEIGHT.T.contiguous(), "fc.bias": BIAS})
    assert bits(load_head(path, transpose=True).weight) == bits(WEIGHT)


def test_labels_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\ne\n")
    assert load_head(saved(tmp_path / "m.pth", HEAD)).labels == ("a", "b", "c", "d", "e")


# ---------------------------------------------------------------------- what is refused


class Payload:
    """An object whose pickle calls a function when it is loaded."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


# What is called, and its name or, where it is looked up on a class, the name of what looks it up.
PAYLOADS: dict[str, tuple[Callable[[Path], Payload], str]] = {
    "touch": (lambda trace: Payload(Path.touch, trace), r"(pathlib\.Path\.touch|(builtins\.)?getattr)"),
    "system": (lambda trace: Payload(os.system, f"touch {trace}"), r"\w+\.system"),
    "eval": (lambda trace: Payload(eval, f"open({str(trace)!r}, 'w')"), r"(builtins\.)?eval"),
    "open": (lambda trace: Payload(open, str(trace), "w"), r"_?io\.open"),
}


@FORMATS
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_refused_by_name_and_never_run(
    tmp_path: Path, payload: str, protocol: int, new: bool
) -> None:
    make, name = PAYLOADS[payload]
    trace = tmp_path / "executed"
    path = tmp_path / "m.pt"
    torch.save(
        {"fc.weight": WEIGHT, "x": make(trace)},
        path,
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=new,
    )
    with pytest.raises(LoadError, match=rf"asks for {name}, .*could run code, so the file was refused"):
        load_head(path)
    assert not trace.exists()


def test_a_protocol_pytorch_can_not_read_safely_is_named_as_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.save(HEAD, path, pickle_protocol=4)
    with pytest.raises(LoadError, match=r"newer protocol.*without pickle_protocol="):
        load_head(path)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_plain_pickle_is_refused_and_never_run(tmp_path: Path, protocol: int) -> None:
    trace = tmp_path / "executed"
    path = tmp_path / "m.bin"
    path.write_bytes(pickle.dumps(Payload(os.system, f"touch {trace}"), protocol))
    with pytest.raises(LoadError, match=r"asks for \w+\.system|is not a readable PyTorch file"):
        load_head(path)
    assert not trace.exists()


def test_a_whole_model_is_refused_by_the_name_of_its_class(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pt", nn.Linear(3, 5))
    with pytest.raises(LoadError, match=r"asks for torch\.nn\.modules\.linear\.Linear.*state_dict"):
        load_head(path)


def test_a_torchscript_archive_among_the_weights_of_a_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as archive:  # as torch.jit.save lays it out; torch 2.13 deprecates it
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py", "version"):
            archive.writestr(f"m/{name}", b"")
    with pytest.raises(LoadError, match=r"TorchScript archive.*was not run"):
        load_head(tmp_path)


def test_an_archive_that_is_not_pytorchs_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", W=np.ones((2, 2)))
    (tmp_path / "m.npz").rename(tmp_path / "m.pt")
    with pytest.raises(LoadError, match=r"zip archive without data\.pkl"):
        load_head(tmp_path / "m.pt")


def rewritten(path: Path, compression: int, **replaced: bytes) -> Path:
    """The archive again, some members replaced, all compressed in the given way."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, replaced.get(name.rpartition("/")[2].partition(".")[0], data))
    return path


def test_a_compressed_archive_is_refused_unread(tmp_path: Path) -> None:
    path = rewritten(saved(tmp_path / "m.pt", HEAD), zipfile.ZIP_DEFLATED)
    with pytest.raises(LoadError, match=r"compressed members, e\.g\. 'data\.pkl'.*Save the model again"):
        load_head(path)


def test_an_enormous_pickle_is_refused_unread(tmp_path: Path) -> None:
    path = rewritten(saved(tmp_path / "m.pt", HEAD), zipfile.ZIP_STORED, data=bytes(33 * 2**20))
    with pytest.raises(LoadError, match=r"pickle of 34603008 bytes"):
        load_head(path)


@FORMATS
def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, new: bool) -> None:
    data = saved(tmp_path / "whole.pt", HEAD, new=new).read_bytes()
    path = tmp_path / "cut.pt"
    for length in range(0, len(data), len(data) // 40):
        path.write_bytes(data[:length])
        with pytest.raises(LoadError, match=r"not a readable PyTorch file|asks for (torch|collections)\.\w*"):
            find(path, ReadOptions())


@pytest.mark.parametrize("garbage", [b"garbage", b"\x80\x02", bytes(1000), b"PK\x03\x04" + bytes(50)])
def test_garbage_is_refused_without_advice_to_trust_it(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(garbage)
    with pytest.raises(LoadError, match=r"not a readable PyTorch file") as caught:
        load_head(path)
    assert "Re-running" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([WEIGHT], "holds a list, expected a dictionary"),
        (3, "holds a int"),
        ({"epoch": 3, "args": {"lr": 0.1}}, r"holds no tensors \(keys: epoch, args\)"),
        ({}, r"holds no tensors \(keys: none\)"),
        ({"fc.weight": WEIGHT.to(torch.int8)}, "no output layer|quantised"),
        ({"fc.weight": WEIGHT.to(torch.complex64)}, "no output layer|quantised|floats"),
        ({"fc.weight": BIAS}, "must be a matrix"),
        ({"fc.weight": WEIGHT * torch.nan}, "every weight must be finite"),
    ],
)
def test_files_without_a_head_are_refused(tmp_path: Path, value: object, complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path / "m.pt", value))


@FORMATS
def test_a_tensor_that_repeats_few_stored_numbers_is_not_read(tmp_path: Path, new: bool) -> None:
    bomb = torch.zeros(1).expand(10**6, 10**6)
    path = saved(tmp_path / "m.pt", {"fc.weight": bomb}, new=new)
    with pytest.raises(LoadError, match=r"takes 4000000000000 bytes, of which the file stores 4"):
        load_head(path)


def forged(data: bytes, numbers: int, *, also_where_they_are: bool) -> bytes:
    """An old file that declares so many numbers for its first tensor, in the pickle and perhaps beside it."""
    declared = data.index(b"K\x0f", data.index(b"cpu"))  # 15 = 5 × 3, behind the device
    data = data[:declared] + b"J" + numbers.to_bytes(4, "little") + data[declared + 2 :]
    if also_where_they_are:
        stored = data.index((15).to_bytes(8, "little") + bits(WEIGHT)[:8])
        data = data[:stored] + numbers.to_bytes(8, "little") + data[stored + 8 :]
    return data


@pytest.mark.parametrize("also_where_they_are", [False, True])
@pytest.mark.parametrize("numbers", [16, 2**28, 2**31 - 1])
def test_an_old_file_that_declares_more_than_it_has_is_refused(
    tmp_path: Path, numbers: int, also_where_they_are: bool
) -> None:
    path = saved(tmp_path / "m.pt", HEAD, new=False)
    path.write_bytes(forged(path.read_bytes(), numbers, also_where_they_are=also_where_they_are))
    with pytest.raises(LoadError, match=r"not a readable PyTorch file.*(wrong byte size|EOF|alloc)"):
        load_head(path)


@measurable
def test_a_size_that_an_old_file_only_declares_takes_no_memory(
    tmp_path: Path, memory_to_open: Measure
) -> None:
    path = saved(tmp_path / "m.pt", HEAD, new=False)
    path.write_bytes(forged(path.read_bytes(), 2**28, also_where_they_are=True))
    outcome, megabytes = memory_to_open(path)
    assert outcome == "LoadError"
    assert megabytes < 24


def test_an_old_file_of_countless_objects_is_refused_before_they_are_built(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"\x80\x02](" + b"}" * (9 * 2**20) + b"e.")
    with pytest.raises(LoadError, match="pickles do not end within 8388608 bytes and 2097152 instructions"):
        load_head(path)


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (torch.eye(4).to_sparse(), "torch.sparse_coo"),
        (torch.zeros(5, 3, device="meta"), "on meta"),
    ],
)
def test_tensors_that_are_no_plain_arrays_are_absent_with_a_reason(
    tmp_path: Path, tensor: torch.Tensor, complaint: str
) -> None:
    path = saved(tmp_path / "m.pt", {"fc.weight": tensor, **{f"x.{k}": v for k, v in HEAD.items()}})
    source = tensors_of(path)
    assert list(source.tensors) == ["x.fc.weight", "x.fc.bias"]
    assert complaint in source.absent["fc.weight"]


@FORMATS
def test_a_dictionary_that_contains_itself_ends(tmp_path: Path, new: bool) -> None:
    loop: dict[str, Any] = {"fc.weight": WEIGHT}
    loop["again"] = loop
    outer: dict[str, Any] = {"model": {"state_dict": {}}, "again": loop}
    outer["model"]["state_dict"]["model"] = outer
    assert tensors_of(saved(tmp_path / "m.pt", loop, new=new)).names == {"fc.weight"}
    assert "again.fc.weight" in tensors_of(saved(tmp_path / "o.pt", outer, new=new)).names


def test_dictionaries_nested_without_end_are_not_followed(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"weight": WEIGHT}
    for _ in range(100):
        deep = {"x": deep}
    with pytest.raises(LoadError, match=r"holds no tensors \(keys: x\)"):
        load_head(saved(tmp_path / "m.pt", deep))


def test_a_missing_torch_is_said_to_be_an_extra(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pt", HEAD)
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from argmaxable.models import load_head\n"
        "try: load_head(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, path], check=True, env=environment, capture_output=True, text=True
    )
    assert done.stdout.startswith("LoadError")
    assert "pip install 'argmaxable[torch]'" in done.stdout


def test_a_torch_with_known_holes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "m.pt", HEAD)
    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.9.1"))
    with pytest.raises(LoadError, match=r"torch 2\.9\.1 can't load safely.*upgrade"):
        load_head(path)
