"""Work shared with Ray: the same verdicts, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ray_driver import hard_head

import argmaxable as am
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.ray import (
    _connect,
    _import_ray,
    _own_stdout,
    _refusal,
    pack,
    unpack,
    without_handlers,
)

DRIVER = Path(__file__).parents[1] / "ray_driver.py"
# The kernel's notation of 127.0.0.1, as such and inside an IPv6 address.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
import argmaxable as am
try:
    am.verify(am.Head([[1.0, 2.0]] * 3), engine=am.Engine(ray="local"))
except am.InputError as error:
    print(error)
"""


def printed_by(*arguments: str | Path, **environment: str) -> str:
    """The one line on stdout: whatever Ray has to say goes to stderr."""
    ran = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    return line


@pytest.fixture(scope="module")
def in_process() -> list[str]:
    return [verdict.status.value for verdict in am.verify(hard_head(), engine=am.Engine(workers=1)).verdicts]


def test_ray_workers_on_loopback_reach_the_same_verdicts_though_one_is_killed(in_process: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:  # a short name: Ray's sockets lie below
        report: dict[str, Any] = json.loads(printed_by(DRIVER, TMPDIR=temporary))
    assert report["statuses"] == in_process
    assert report["killed"]
    assert report["left"] == []
    assert report["files"] == []
    assert report["listening"]
    assert set(report["listening"]) <= LOOPBACK


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_a_parcel_holds_the_job_bit_for_bit(dtype: Any) -> None:
    head, domain = hard_head(dtype), am.Box(-3.0, np.arange(48.0))
    job = Job(head, domain, np.ones(48), np.array([3]), frozenset({4}), np.zeros(600), 7, None)
    back = unpack(pack(job))
    assert back.head.sha256() == head.sha256()
    assert back.domain.as_record() == domain.as_record()
    assert (back.ignored.tolist(), back.tied, back.seed) == ([3], frozenset({4}), 7)


def test_an_address_without_a_cluster_is_bad_input() -> None:
    code = "import argmaxable as am\nengine = am.Engine(ray='127.0.0.1:1')\n"
    code += "try:\n  am.verify(am.Head([[1.0, 2.0]] * 3), engine=engine)\n"
    code += "except am.InputError as error:\n  print(error)"
    assert "no Ray cluster at '127.0.0.1:1'" in printed_by("-c", code)


def test_a_refused_token_is_told_apart_from_no_cluster() -> None:
    ray = _import_ray()
    refused = _refusal(ray, "10.0.0.1:6379", ray.exceptions.AuthenticationError("InvalidAuthToken"))
    absent = _refusal(ray, "10.0.0.1:6379", ConnectionRefusedError(111, "Connection refused"))
    assert "refuses the token, or none was given" in refused
    assert "RAY_AUTH_TOKEN" in refused
    assert "no Ray cluster at '10.0.0.1:6379'" in absent


def test_a_start_that_takes_ray_too_long_is_told_as_that() -> None:
    told = _refusal(
        _import_ray(), "local", Exception("The current node timed out during startup. This could")
    )
    assert told.startswith("Ray did not start on this machine (The current node timed out during startup")
    assert "--workers" in told


@pytest.mark.parametrize(("late", "starts"), [(2, 3), (9, 3)])
def test_a_local_cluster_that_is_late_is_started_again(
    late: int, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, tried = _import_ray(), []

    def start(**options: Any) -> None:
        tried.append(options)
        if len(tried) <= late:
            raise Exception("The current node timed out during startup. This could happen because")

    monkeypatch.setattr(ray, "init", start)
    with pytest.raises(am.InputError, match="did not start") if late >= starts else nullcontext():
        _connect(ray, "local", {})
    assert len(tried) == starts


def test_a_cluster_that_wants_a_token_is_not_called_absent(tmp_path: Path) -> None:
    # Without a token in its environment or its home, Ray refuses before it connects.
    code = "import argmaxable as am\nimport socket\n"
    code += "listener = socket.create_server(('127.0.0.1', 0))\n"
    code += "engine = am.Engine(ray=f'127.0.0.1:{listener.getsockname()[1]}')\n"
    code += "try:\n  am.verify(am.Head([[1.0, 2.0]] * 3), engine=engine)\n"
    code += "except am.InputError as error:\n  print(error)"
    said = printed_by("-c", code, RAY_AUTH_MODE="token", HOME=str(tmp_path))
    assert "refuses the token, or none was given" in said


def test_what_other_threads_print_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with _own_stdout():
        other = threading.Thread(target=print, args=("a worker died",))
        other.start()
        other.join()
        print("{}")
    print("after")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("{}\nafter\n", "a worker died\n")


def test_without_ray_the_error_names_the_extra() -> None:
    assert printed_by("-c", WITHOUT_RAY) == "--ray needs Ray: pip install 'argmaxable[ray]'."


def test_ray_leaves_the_handler_of_sigterm_as_it_is() -> None:
    ray = _import_ray()
    mine, own = signal.getsignal(signal.SIGTERM), ray._private.utils.set_sigterm_handler
    with without_handlers(ray):
        ray._private.utils.set_sigterm_handler(lambda *_: sys.exit(15))  # what `ray.init` does first
        assert signal.getsignal(signal.SIGTERM) is mine
    assert ray._private.utils.set_sigterm_handler is own
