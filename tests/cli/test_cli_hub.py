"""Models named by hub id or address on the command line, from a hub on the loopback address."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from loopback_hub import COMMITS, Hub, environment_for
from running import PROGRAM, Command, Ran, is_one_clear_line, without_progress


def in_a_process(hub: Hub, home: Path, *arguments: str | Path, **environment: str) -> Ran:
    """Run the program as a user of this hub does; huggingface_hub reads its environment when imported."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env={**environment_for(hub, home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, without_progress(done.stderr))


# Each line of input is a list of arguments, each line of output what came of them: importing
# huggingface_hub anew for every test would take most of the time.
REPEATEDLY = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from argmaxable.cli import main
for line in sys.stdin:
    sys.argv = ["argmaxable", *json.loads(line)]
    code = 0
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


@pytest.fixture(scope="module")
def process(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", REPEATEDLY],
        env=environment_for(served, tmp_path_factory.mktemp("home")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def shell(process: subprocess.Popen[str], hub: Hub, tmp_path: Path) -> Command:
    """Run the program with an empty cache."""

    def run(*arguments: str | Path) -> Ran:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([*map(str, arguments), "--cache-dir", str(tmp_path / "cache")]) + "\n")
        process.stdin.flush()
        code, out, err = json.loads(process.stdout.readline())
        return Ran(code, out, without_progress(err))

    return run


def commits_in(cache: Path) -> set[str]:
    """Names of the commits whose files are in a cache."""
    return {path.name for path in cache.glob("models--*/snapshots/*")}


def refused(ran: Ran) -> str:
    """The complaint about a model that can't be had."""
    assert ran.code == 2, ran
    assert is_one_clear_line(ran)
    return ran.err


# ---------------------------------------------------------------------- models that are there


def test_a_hub_id_is_inspected(shell: Command) -> None:
    record = shell("inspect", "org/whole", "--json").record
    assert (record["model"], record["format"]) == ("org/whole", "huggingface")
    assert (record["classes"], record["features"]) == (6, 4)
    assert record["labels"]["first"] == [f"token{number}" for number in range(6)]
    assert record["domain"] == "RMSNorm solid"


def test_nothing_is_fetched_but_what_the_head_needs(shell: Command, hub: Hub) -> None:
    assert shell("inspect", "org/whole").code == 0
    assert set(hub.files) == {"config.json", "vocab.json", "model.safetensors"}


def test_tokens_added_behind_the_vocabulary_have_their_labels(shell: Command, hub: Hub) -> None:
    record = shell("inspect", "org/added", "--json").record
    assert record["labels"]["first"] == [*(f"token{number}" for number in range(5)), "<added>"]
    assert {"added_tokens.json", "special_tokens_map.json"} <= set(hub.files)


@pytest.mark.parametrize(("options", "revision"), [([], "main"), (["--revision", "v2"], "v2")])
def test_revision_and_cache_are_heeded(
    shell: Command, tmp_path: Path, options: list[str], revision: str
) -> None:
    assert shell("inspect", "org/whole", *options).code == 0
    assert commits_in(tmp_path / "cache") == {COMMITS[revision]}


def test_home_and_token_of_the_user_are_heeded(hub: Hub, tmp_path: Path) -> None:
    assert in_a_process(hub, tmp_path, "inspect", "org/whole", HF_TOKEN="hf_example").code == 0
    assert commits_in(tmp_path / "hub") == {COMMITS["main"]}
    assert hub.tokens == {"Bearer hf_example"}


def test_a_subfolder_is_heeded(shell: Command) -> None:
    assert shell("inspect", "org/nested", "--subfolder", "deep/er", "--json").record["classes"] == 6


def test_a_tensor_in_another_file_is_fetched(shell: Command, hub: Hub) -> None:
    name = "model.layers.0.weight"
    record = shell("inspect", "org/sharded", "--tensor", name, "--json").record
    assert record["weight"] == {"name": name, "shape": [6, 4], "dtype": "float32"}
    assert "two.safetensors" in hub.files
    assert "four.safetensors" not in hub.files


@pytest.mark.parametrize(
    ("page", "model_format"),
    [
        ("org/whole", "huggingface"),
        ("org/whole/tree/v2", "huggingface"),
        ("org/nested/tree/main/deep/er", "huggingface"),
        ("org/files/blob/main/arrays/head.safetensors", "safetensors"),
        ("org/files/resolve/main/arrays/head.safetensors?download=true", "safetensors"),
    ],
)
def test_an_address_is_as_good_as_an_id(shell: Command, hub: Hub, page: str, model_format: str) -> None:
    record = shell("inspect", f"{hub.address}/{page}", "--json").record
    assert (record["format"], record["classes"]) == (model_format, 6)


def test_proofs_about_a_hub_model_are_checked_without_the_hub(
    shell: Command, hub: Hub, tmp_path: Path
) -> None:
    model = ("org/whole", "--revision", "v2")
    verified = shell("verify", *model, "--no-db", "--workers", "1", "--output", tmp_path / "proofs")
    assert verified.code in (0, 1)
    assert "\norg/whole: 6 classes × 4 features" in verified.out
    hub.files.clear()
    options = ("--cache-dir", tmp_path / "cache")
    checked = in_a_process(hub, tmp_path, "check", tmp_path / "proofs", *model, *options, HF_HUB_OFFLINE="1")
    assert checked.code == 0
    assert checked.out.startswith("6 of 6 verdicts proven")
    assert not hub.files


def test_a_local_file_goes_before_a_hub_id(
    command: Command, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("org").mkdir()
    np.save("org/whole.npy", np.ones((3, 2)))
    Path("org/whole.npy").rename("org/whole")
    assert command("inspect", "org/whole", "--json").record["format"] == "npy"
    assert not hub.files


# ---------------------------------------------------------------------- models that can't be had


UNAVAILABLE = {
    "missing": (["org/absent"], "org/absent is not at http"),
    "revision": (["org/whole", "--revision", "v9"], "the model has no such revision. Check --revision."),
    "gated": (["org/gated"], "org/gated is gated. Accept its terms at http"),
    "gated, not logged in": (["org/gated-too"], "org/gated-too is gated. Accept its terms at http"),
    "private": (["org/private"], "or is private. Check the spelling; for a private model log in"),
    "forbidden": (["org/forbidden"], "403 Forbidden"),
    "out of order": (["org/broken"], "500 Internal Server Error"),
    "no folder": (
        ["org/whole", "--subfolder", "nowhere"],
        "has no model.safetensors and no pytorch_model.bin",
    ),
    "no weights": (["org/gguf"], "For another file pass its address"),
}


@pytest.mark.parametrize("case", UNAVAILABLE)
def test_a_model_that_can_not_be_had_is_explained_in_plain_words(shell: Command, case: str) -> None:
    model, complaint = UNAVAILABLE[case]
    assert complaint in refused(shell("inspect", *model))


@pytest.mark.parametrize(
    "environment",
    [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}],
    ids=["offline", "server down"],
)
def test_without_the_hub_what_is_not_in_the_cache_is_refused(
    hub: Hub, tmp_path: Path, environment: dict[str, str]
) -> None:
    names = ("inspect", "verify")
    done = subprocess.run(
        [sys.executable, "-c", REPEATEDLY],
        input="".join(json.dumps([name, "org/whole"]) + "\n" for name in names),
        env={**environment_for(hub, tmp_path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        code, out, err = json.loads(line)
        complaint = refused(Ran(code, out, without_progress(err)))
        assert "org/whole is not (or not completely) in the local cache" in complaint, name
        assert "Check the network and HF_HUB_OFFLINE" in complaint, name
    assert done.stderr == ""


def test_no_other_complaint_goes_before_ours(hub: Hub, tmp_path: Path) -> None:
    refused(in_a_process(hub, tmp_path, "inspect", "org/gguf"))


# ---------------------------------------------------------------------- names that are no models


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere.onnx"], "no such file"),
        (["folder/nowhere.onnx"], "no such file"),
        (["https://example.org/org/name"], "is not the address of a model on the hub"),
        (["head.npz", "--revision", "main"], "Leave out --revision"),
    ],
)
def test_what_is_no_hub_model_is_never_looked_up(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("head.npz", W=np.ones((3, 2)))
    assert complaint in refused(command("inspect", *arguments))
