"""What the doctor says about models, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers  # whose classes are loaded by those who name them
import yaml
from running import Command, without_progress
from safetensors.numpy import save_file

ROOT = Path(__file__).parent.parent.parent
SMALL = {"vocab_size": 300, "bos_token_id": 0, "eos_token_id": 0}


def gpt2() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=24, n_layer=1, n_head=2, n_positions=16, **SMALL)
    )


def llama(dtype: torch.dtype = torch.float32) -> transformers.PreTrainedModel:
    """With a head of its own, as larger ones have."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=24, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, **SMALL
    )
    return transformers.LlamaForCausalLM(config).to(dtype)


def findings(command: Command, model: Path, *options: str) -> dict[str, dict[str, Any]]:
    ran = command("doctor", model, "--json", *options)
    (record,) = json.loads(ran.out)["models"]
    assert ran.code == (1 if record["concerns"] else 0)
    return {finding["kind"]: finding for finding in record["findings"]}


def named(finding: dict[str, Any]) -> list[int]:
    return [each["class"] for each in finding["classes"]]


def npz(folder: Path, weight: Any, bias: Any = None, labels: list[str] | None = None) -> Path:
    path = folder / "head.npz"
    arrays = {"W": weight, "b": bias, "labels": None if labels is None else np.array(labels)}
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items() if array is not None})
    return path


def healthy(classes: int = 60, features: int = 5, seed: int = 0) -> Any:
    """Rows on a sphere: each of them is argmaxable."""
    rows = np.random.default_rng(seed).normal(size=(classes, features))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# ---------------------------------------------------------------------- models that transformers resized


@pytest.fixture
def resized(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[transformers.PreTrainedModel, Path]:
    model = request.param()
    model.resize_token_embeddings(307)
    model.save_pretrained(tmp_path)
    return model, tmp_path


MODELS = pytest.mark.parametrize(
    "resized",
    [gpt2, llama, lambda: llama(torch.bfloat16)],
    ids=["gpt2", "llama", "llama-bf16"],
    indirect=True,
)


@MODELS
def test_exactly_the_new_tokens_of_a_resized_model_are_at_the_mean(
    command: Command, resized: tuple[transformers.PreTrainedModel, Path]
) -> None:
    found = findings(command, resized[1])
    assert list(found) == ["at the mean"]
    assert named(found["at the mean"]) == list(range(300, 307))


@MODELS
def test_the_new_tokens_of_a_resized_model_are_proven_unargmaxable(
    command: Command, resized: tuple[transformers.PreTrainedModel, Path]
) -> None:
    classes = findings(command, resized[1])["at the mean"]["classes"]
    assert {each["verdict"] for each in classes} <= {"unargmaxable", "argmaxable on paper only"}


def train(model: transformers.PreTrainedModel, folder: Path, rate: float) -> None:
    """One step on a text with the new tokens in it."""
    tokens = torch.arange(296, 307)[None]
    model(tokens, labels=tokens).loss.backward()
    torch.optim.SGD(model.parameters(), lr=rate).step()
    model.save_pretrained(folder)


@MODELS
def test_new_tokens_that_a_step_moved_a_little_are_near_the_mean_and_still_unargmaxable(
    command: Command, resized: tuple[transformers.PreTrainedModel, Path]
) -> None:
    train(*resized, rate=0.01)
    found = findings(command, resized[1])
    assert list(found) == ["near the mean"]
    assert named(found["near the mean"]) == list(range(300, 307))
    assert {each["verdict"] for each in found["near the mean"]["classes"]} == {"unargmaxable"}


@MODELS
def test_new_tokens_that_a_step_moved_among_the_others_are_healthy(
    command: Command, resized: tuple[transformers.PreTrainedModel, Path]
) -> None:
    train(*resized, rate=0.3)
    assert findings(command, resized[1]) == {}


@pytest.mark.parametrize("resized", [gpt2, llama], indirect=True)
def test_new_tokens_that_a_step_moved_far_are_proven_argmaxable(
    command: Command, resized: tuple[transformers.PreTrainedModel, Path]
) -> None:
    train(*resized, rate=1.0)
    found = findings(command, resized[1])["norm"]
    assert set(range(300, 307)) <= set(named(found))
    assert {each["verdict"] for each in found["classes"]} == {"argmaxable"}
    assert not found["concern"]


def test_a_model_before_resizing_is_healthy(command: Command, tmp_path: Path) -> None:
    gpt2().save_pretrained(tmp_path)
    ran = command("doctor", tmp_path)
    assert ran.code == 0
    assert ran.out.endswith("No concerns.\n")


def test_new_tokens_far_from_the_mean_are_no_concern(command: Command, tmp_path: Path) -> None:
    model = gpt2()
    model.resize_token_embeddings(307, mean_resizing=False)
    model.save_pretrained(tmp_path)
    assert findings(command, tmp_path) == {}


# ---------------------------------------------------------------------- heads that are none


def test_a_bias_of_another_length_is_a_finding(command: Command, tmp_path: Path) -> None:
    found = findings(command, npz(tmp_path, healthy(60), np.zeros(57)))
    assert found["bias length"]["found"].startswith("the bias has 57 entries for 60 rows")
    assert found["bias length"]["concern"]


def test_rows_that_are_not_finite_are_named(command: Command, tmp_path: Path) -> None:
    weight, bias = healthy(), np.zeros(60)
    weight[4, 1], bias[9] = np.nan, -np.inf
    assert named(findings(command, npz(tmp_path, weight, bias))["not finite"]) == [4, 9]


def test_labels_that_do_not_fit_are_a_finding(command: Command, tmp_path: Path) -> None:
    path = npz(tmp_path, healthy(60), labels=[str(k) for k in range(50)])
    assert findings(command, path)["label count"]["concern"]


def test_all_faults_of_a_head_are_told_at_once(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[0] = np.inf
    assert set(findings(command, npz(tmp_path, weight, np.zeros(3)))) == {"bias length", "not finite"}


def test_a_file_without_a_head_is_bad_input(command: Command, tmp_path: Path) -> None:
    save_file({"a": healthy(), "b": healthy()}, tmp_path / "m.safetensors")
    ran = command("doctor", tmp_path / "m.safetensors")
    assert ran.code == 2
    assert "no output layer found" in ran.err


def test_a_missing_file_is_bad_input(command: Command, tmp_path: Path) -> None:
    assert command("doctor", tmp_path / "none.onnx").code == 2


# ---------------------------------------------------------------------- tokens with a role


LABELS = ["</s>", "<pad>", *(f"w{k}" for k in range(58))]


def interior(which: int) -> Any:
    """Rows of which one is well inside the hull of the others."""
    weight = healthy()
    weight[which] = weight[np.arange(60) != which].mean(axis=0) + 0.05
    return weight


def test_an_end_mark_that_can_never_be_predicted_is_a_concern(command: Command, tmp_path: Path) -> None:
    found = findings(command, npz(tmp_path, interior(0), labels=LABELS))["special tokens"]
    assert found["concern"]
    assert [(each["label"], each["verdict"]) for each in found["classes"]] == [("</s>", "unargmaxable")]


def test_a_padding_token_that_can_never_be_predicted_is_none(command: Command, tmp_path: Path) -> None:
    found = findings(command, npz(tmp_path, interior(1), labels=LABELS))["special tokens"]
    assert not found["concern"]
    assert named(found) == [1]


def test_the_end_mark_is_the_one_that_the_configuration_names(command: Command, tmp_path: Path) -> None:
    model = gpt2()
    with torch.no_grad():
        model.lm_head.weight[7] = model.lm_head.weight.mean(axis=0) * 1.5
    model.config.eos_token_id = model.generation_config.eos_token_id = 7
    model.save_pretrained(tmp_path)
    found = findings(command, tmp_path)["special tokens"]
    assert (found["concern"], named(found)) == (True, [7])


# ---------------------------------------------------------------------- odd rows


def test_a_zero_row_for_a_word_is_a_concern(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[30] = 0
    found = findings(command, npz(tmp_path, weight, labels=LABELS))["zero"]
    assert (found["concern"], named(found)) == (True, [30])


def test_a_zero_row_for_the_padding_token_is_none(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[1] = 0
    assert not findings(command, npz(tmp_path, weight, labels=LABELS))["zero"]["concern"]


def test_words_with_the_same_row_are_a_concern(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[30] = weight[20]
    found = findings(command, npz(tmp_path, weight, labels=LABELS))["duplicate"]
    assert (found["concern"], named(found)) == (True, [20, 30])


def test_a_bias_that_switches_a_word_off_is_a_concern(command: Command, tmp_path: Path) -> None:
    bias = np.zeros(60)
    bias[30] = -1e6
    bias[:20] = np.linspace(-1, 1, 20)
    found = findings(command, npz(tmp_path, healthy(), bias, LABELS))["bias"]
    assert found["concern"]
    assert found["classes"][0]["verdict"] == "unargmaxable"


def test_a_large_bias_is_only_worth_knowing(command: Command, tmp_path: Path) -> None:
    bias = np.linspace(-1, 1, 60)
    bias[30] = 100
    assert not findings(command, npz(tmp_path, healthy(), bias, LABELS))["bias"]["concern"]


def test_rows_without_a_token_are_only_worth_knowing(command: Command, tmp_path: Path) -> None:
    save_file({"lm_head.weight": healthy(64).astype(np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(f"w{k}" for k in range(60)))
    found = findings(command, tmp_path / "model.safetensors", "--labels", str(tmp_path / "vocab.txt"))
    assert (found["padding"]["concern"], named(found["padding"])) == (False, [60, 61, 62, 63])


# ---------------------------------------------------------------------- the command


def test_findings_come_with_their_meaning_and_advice(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[30] = 0
    ran = command("doctor", npz(tmp_path, weight, labels=LABELS))
    assert "CONCERN  1 row of zeros only.\n         30 w28\n" in ran.out
    assert "What to do: " in ran.out
    assert ran.out.endswith("1 concern.\n")


def test_several_models_get_a_check_up_each(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[3] = weight[5]
    ill = npz(tmp_path, weight).rename(tmp_path / "ill.npz")
    ran = command("doctor", npz(tmp_path, healthy()), ill, "--json")
    assert ran.code == 1
    assert [each["concerns"] for each in json.loads(ran.out)["models"]] == [0, 1]


def test_labels_cannot_steer_a_terminal(command: Command, tmp_path: Path) -> None:
    weight = healthy()
    weight[0] = 0
    ran = command("doctor", npz(tmp_path, weight, labels=["\x1b[2J", *LABELS[1:]]))
    assert "\x1b" not in ran.out


def test_the_domain_and_format_can_be_chosen(command: Command, tmp_path: Path) -> None:
    path = npz(tmp_path, healthy(), labels=LABELS)
    ran = command("doctor", path, "--domain", "ball:3", "--dtype", "bf16", "--json")
    (record,) = json.loads(ran.out)["models"]
    assert (record["domain"], record["dtype"]) == ("ball of radius 3", "bf16")


# ---------------------------------------------------------------------- around the command


def test_the_github_action_runs_the_doctor_on_its_input(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    (run,) = [step for step in action["runs"]["steps"] if "doctor" in step.get("run", "")]
    assert run["shell"] == "bash"
    weight = healthy()
    weight[30] = 0
    done = _run_action(tmp_path, npz(tmp_path, weight), "--domain box:10")
    assert (done.returncode, without_progress(done.stderr)) == (1, "")
    assert "of zeros only" in done.stdout
    assert "of zeros only" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_actions_arguments_follow_the_quoting_rules_of_a_shell_that_never_sees_them(
    tmp_path: Path,
) -> None:
    arguments = "--domain 'box:\t10'\n--dtype \"$(touch owned)\"\n  `touch owned`; touch owned > owned\n"
    done = _run_action(tmp_path, npz(tmp_path, healthy()), arguments, program=_ECHO)
    words = json.loads(done.stdout.splitlines()[0])
    assert words[:5] == ["doctor", "--domain", "box:\t10", "--dtype", "$(touch owned)"]
    assert words[5:-4] == ["`touch", "owned`;", "touch", "owned", ">", "owned"]
    assert words[-4:-1] == ["--format", "github", "--"]
    assert not list(tmp_path.rglob("owned"))


def test_a_models_name_gives_the_runner_no_command(tmp_path: Path) -> None:
    name = Path("::error::hacked.npz")
    npz(tmp_path, healthy()).rename(tmp_path / name)
    done = _run_action(tmp_path, name, "")
    first, *between, last = done.stdout.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert len(token) == 32
    assert last == f"::{token}::"
    assert between[0].startswith("::error::hacked.npz: ")
    assert token not in "".join(between)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.count("<") == 2  # <pre> and </pre>


def test_other_peoples_actions_are_pinned_by_commit() -> None:
    used = re.findall(r"uses: (\S+)", (ROOT / "action.yml").read_text(encoding="utf-8"))
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in used)


def test_every_input_of_the_action_is_used() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    inputs = yaml.safe_load(text)["inputs"]
    assert [name for name in inputs if f"inputs.{name} " not in text] == []


def test_the_pre_commit_hook_runs_the_doctor_on_files(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["language"] == "python"
    weight = healthy()
    weight[30] = 0
    environment = {
        "PATH": f"{_program(tmp_path)}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(tmp_path),
    }
    npz(tmp_path, weight).rename(tmp_path / "--help.npz")
    command = [*hook["entry"].split(), *hook["args"], "--help.npz"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (1, "")
    assert "of zeros only" in done.stdout


_MAIN = "from argmaxable.cli import main\nmain()\n"
_ECHO = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"


def _run_action(
    folder: Path, model: Path, arguments: str, *, program: str = _MAIN
) -> subprocess.CompletedProcess[str]:
    """The action's step, as the runner runs it."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (run,) = [step for step in action["runs"]["steps"] if "doctor" in step.get("run", "")]
    environment = {
        "COMMAND": "doctor",
        "MODELS": f"{model}\n",
        "ARGUMENTS": arguments,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "PATH": f"{_program(folder, program)}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(folder),
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", run["run"]],
        env=environment, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip


def _program(folder: Path, program: str = _MAIN) -> Path:
    """A folder with the command as an installation would have it, and its Python."""
    script = folder / "bin" / "argmaxable"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{program}", encoding="utf-8")
    script.chmod(0o755)
    (script.parent / "python").symlink_to(sys.executable)
    return script.parent
