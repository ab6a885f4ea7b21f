"""Models named by hub id or address, fetched from a hub that listens on the loopback address only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback_hub import COMMITS, SHARDS, WEIGHT, Hub, environment_for

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.fetch.hub import HubModel, parse, resolve

# Each line of input is a model with options, each line of output a path or an error.
PROGRAM = """
import json, sys
from argmaxable.core.errors import LoadError
from argmaxable.models.fetch.hub import resolve
for line in sys.stdin:
    model, options = json.loads(line)
    try:
        answer = {"path": str(resolve(model, **options))}
    except LoadError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
"""


def start(hub: Hub, home: Path, **environment: str) -> subprocess.Popen[str]:
    """A process that answers questions; huggingface_hub reads its environment when it is imported there."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**environment_for(hub, home), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask_in(environment: dict[str, str], hub: Hub, home: Path, model: str, **options: Any) -> Any:
    """What `resolve` answers in a process of its own."""
    with start(hub, home, **environment) as process:
        output, _ = process.communicate(json.dumps([model, options]) + "\n")
    return json.loads(output)


class Asker:
    """What `resolve` answers, each test with a cache of its own, in a process that all of them share."""

    def __init__(self, process: subprocess.Popen[str], cache: Path) -> None:
        self.process, self.cache = process, cache

    def __call__(self, model: str, **options: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([model, {"cache_dir": str(self.cache), **options}]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def process(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    with start(served, tmp_path_factory.mktemp("home")) as process:
        yield process


@pytest.fixture
def ask(process: subprocess.Popen[str], tmp_path: Path) -> Asker:
    return Asker(process, tmp_path)


def test_a_hub_id_is_fetched_and_read(ask: Asker) -> None:
    folder = Path(ask("org/whole")["path"])
    head = load_head(folder)
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.labels == tuple(f"token{number}" for number in range(6))


def test_only_what_the_head_needs_is_fetched(hub: Hub, ask: Asker) -> None:
    ask("org/whole")
    assert set(hub.files) == {"config.json", "vocab.json", "model.safetensors"}


def test_of_several_files_only_those_with_the_head_are_fetched(hub: Hub, ask: Asker) -> None:
    folder = Path(ask("org/sharded")["path"])
    assert {file for file in hub.files if file in SHARDS} == {"three.safetensors", "four.safetensors"}
    assert load_head(folder).weight.tobytes() == WEIGHT.tobytes()


def test_a_tensor_the_user_names_is_fetched(hub: Hub, ask: Asker) -> None:
    name = "model.layers.0.weight"
    folder = Path(ask("org/sharded", tensor=name, bias_tensor="model.norm.weight")["path"])
    assert {file for file in hub.files if file in SHARDS} == {"two.safetensors", "three.safetensors"}
    assert load_head(folder, tensor=name).weight.tobytes() == (WEIGHT + 2).tobytes()


def test_of_a_translator_the_weights_and_the_vocabulary_are_fetched(hub: Hub, ask: Asker) -> None:
    folder = Path(ask("org/translator")["path"])
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.bin", "shared_vocabulary.json"}


def test_the_address_of_a_model_is_as_good_as_its_id(hub: Hub, ask: Asker) -> None:
    folder = Path(ask(f"{hub.address}/org/v2.5-tiny")["path"])
    assert load_head(folder).classes == 6


def test_the_address_of_a_file_fetches_that_file(hub: Hub, ask: Asker) -> None:
    path = Path(ask(f"{hub.address}/org/gguf/blob/main/head.npy")["path"])
    assert path.name == "head.npy"
    assert path.read_bytes() == b"\x93NUMPY"


def test_a_revision_is_heeded(ask: Asker) -> None:
    assert Path(ask("org/whole", revision="v2")["path"]).name == COMMITS["v2"]


def test_a_subfolder_is_heeded(ask: Asker) -> None:
    folder = Path(ask("org/nested", subfolder="deep/er")["path"])
    assert folder.parts[-2:] == ("deep", "er")
    assert load_head(folder).classes == 6


def test_a_cache_directory_is_heeded(ask: Asker, tmp_path: Path) -> None:
    folder = ask("org/whole", cache_dir=str(tmp_path / "cache"))["path"]
    assert Path(folder).is_relative_to((tmp_path / "cache").resolve())


def test_home_and_token_of_the_environment_are_heeded(hub: Hub, tmp_path: Path) -> None:
    folder = ask_in({"HF_TOKEN": "hf_example"}, hub, tmp_path, "org/whole")["path"]
    assert Path(folder).is_relative_to(tmp_path.resolve())
    assert hub.tokens == {"Bearer hf_example"}


def test_what_was_fetched_once_is_found_offline(hub: Hub, ask: Asker, tmp_path: Path) -> None:
    online = ask("org/sharded")
    hub.files.clear()
    offline = ask_in({"HF_HUB_OFFLINE": "1"}, hub, tmp_path, "org/sharded", cache_dir=str(tmp_path))
    assert offline == online
    assert not hub.files


@pytest.mark.parametrize(
    ("model", "options", "complaint"),
    [
        ("org/absent", {}, "org/absent is not at http"),
        ("org/gated", {}, "is gated. Accept its terms at http"),
        ("org/whole", {"revision": "v9"}, "org/whole (revision v9) does not exist"),
        ("org/two--dashes", {}, "can't be fetched: Cannot have -- or .. in repo_id"),
        ("org/gguf", {}, "has no model.safetensors and no pytorch_model.bin"),
    ],
    ids=["missing", "gated", "revision", "invalid", "no weights"],
)
def test_a_model_that_cannot_be_fetched_is_explained(
    ask: Asker, model: str, options: dict[str, str], complaint: str
) -> None:
    assert complaint in ask(model, **options)["error"]


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_without_a_connection_the_local_cache_is_named(
    hub: Hub, tmp_path: Path, environment: dict[str, str]
) -> None:
    error = ask_in(environment, hub, tmp_path, "org/whole")["error"]
    assert "not (or not completely) in the local cache" in error


def test_a_file_that_is_not_in_the_repository_is_named(hub: Hub, ask: Asker) -> None:
    address = f"{hub.address}/org/whole/resolve/main/absent.onnx"
    assert "has no file absent.onnx in its main folder" in ask(address)["error"]


def test_without_the_package_the_extra_is_named() -> None:
    program = "import sys; sys.modules['huggingface_hub'] = None\n" + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input='["org/name", {}]\n',
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip install 'argmaxable[hub]'" in json.loads(done.stdout)["error"]


# ---------------------------------------------------------------------- local paths


def test_a_local_path_is_never_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert resolve("org/name") == Path("org/name")
    assert resolve("org", subfolder="name") == Path("org/name")


def test_a_local_path_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="Leave out --revision"):
        resolve(str(tmp_path), revision="main")


@pytest.mark.parametrize(
    "model", ["absent", "a/b/c", "folder/model.onnx", "folder/absent.npz", "/absent", "../a", ""]
)
def test_what_is_neither_path_nor_hub_id_is_refused(model: str) -> None:
    with pytest.raises(LoadError, match=r"no such file or directory.*written org/name"):
        resolve(model)


# ---------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("org/name", HubModel("org/name")),
        ("Qwen/Qwen2.5-0.5B", HubModel("Qwen/Qwen2.5-0.5B")),
        ("https://huggingface.co/org/name", HubModel("org/name")),
        ("https://huggingface.co/org/name/", HubModel("org/name")),
        ("https://hf.co/org/name?library=transformers", HubModel("org/name")),
        ("https://huggingface.co/org/name/tree/v2", HubModel("org/name", "v2")),
        ("https://huggingface.co/org/name/tree/refs%2Fpr%2F1/a/b", HubModel("org/name", "refs/pr/1", "a/b")),
        ("https://huggingface.co/org/name/blob/main/x.gguf", HubModel("org/name", "main", "", "x.gguf")),
        (
            "https://huggingface.co/org/name/resolve/main/a/x.onnx?download=true",
            HubModel("org/name", "main", "a", "x.onnx"),
        ),
    ],
)
def test_ids_and_addresses_are_understood(model: str, meant: HubModel) -> None:
    assert parse(model) == meant


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/org/name",
        "https://huggingface.co/gpt2",
        "https://huggingface.co/org/name/discussions",
        "https://huggingface.co/datasets/org/name",
    ],
)
def test_an_address_that_is_no_model_is_refused(address: str) -> None:
    with pytest.raises(LoadError, match="is not the address of a model"):
        parse(address)
