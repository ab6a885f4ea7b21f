"""Time and memory of the heads' loss, forward and backward, beside the plain linear cross-entropy.

The yardstick is what anyone would write, cross_entropy(linear(h), targets), in the same run: rounds take
turns, so that whatever else the machine does meets both. Medians over rounds; a ratio is the median of the
rounds' ratios. Peak memory is that of a second step in a fresh process, beyond inputs, parameters and their
gradients, measured in two ways: the rise of the process's peak resident memory (VmHWM, with large blocks of
malloc returned at once), which counts what any library takes, and the peak of PyTorch's own allocations by
its profiler.

    python benchmarks/layers.py [--rounds 9] [--mixture-rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _record
import torch
import torch.nn.functional as F

from argmaxable.layers import PLIF, SoftmaxHead

TOKENS, FEATURES, CLASSES, MIXTURES = 1400, 400, 10_000, 15
THREADS = 2
LOGITS_BYTES = TOKENS * CLASSES * 4
# Each row: a setting and the most it may cost, relative to one linear loss (mixtures: to 15 of them).
TIME_LIMITS = {
    "lms-plif": 1.5,
    "sigsoftmax": 1.15,
    "linear": None,
    "lms": None,
    "mos": 1.15,
    "mos-plif": None,
}
# The most extra memory, relative to tokens × classes × 4 bytes.
MEMORY_LIMITS = {
    "linear": 0.35,
    "sigsoftmax": 0.35,
    "lms": 0.35,
    "lms-plif": 0.35,
    "mos": 0.75,
    "mos-plif": 0.75,
}
NAIVE = "cross_entropy(linear)"

Work = Callable[[], None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mixture-rounds", type=int, default=3)
    parser.add_argument("--memory", metavar="HEAD", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    if options.memory:
        print(json.dumps(peak_memory(options.memory)))
        return
    _record.write(
        "layers",
        {
            "torch": torch.__version__,
            "threads": THREADS,
            "tokens": TOKENS,
            "features": FEATURES,
            "classes": CLASSES,
            "mixtures": MIXTURES,
            "load_average_before": round(os.getloadavg()[0], 2),
            "time": measure_times(options.rounds, options.mixture_rounds),
            "memory": [measure_memory(name) for name in (*MEMORY_LIMITS, NAIVE)],
        },
    )


# ---------------------------------------------------------------------- what is measured


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(TOKENS, FEATURES, generator=generator).requires_grad_()
    return h, torch.randint(CLASSES, (TOKENS,), generator=generator)


def head_of(name: str) -> SoftmaxHead:
    """A head with logits of ordinary size, and for PLIF slopes away from 1."""
    torch.manual_seed(0)
    head = SoftmaxHead.from_name(name, FEATURES, CLASSES)
    if isinstance(head.transform, PLIF):
        torch.nn.init.normal_(head.transform.raw, std=0.5)
    return head


def step_of(name: str, h: torch.Tensor, targets: torch.Tensor) -> tuple[Work, list[torch.Tensor]]:
    """Loss and backward, and the tensors that receive gradients."""
    head = head_of("linear" if name == NAIVE else name)
    receiving = [h, *head.parameters()]

    def step() -> None:
        for tensor in receiving:
            tensor.grad = None
        if name == NAIVE:
            loss = F.cross_entropy(F.linear(h, head.weight, head.bias), targets)
        else:
            loss = head.loss(h, targets)
        loss.backward()

    return step, receiving


# ---------------------------------------------------------------------- time


def measure_times(rounds: int, mixture_rounds: int) -> list[dict[str, Any]]:
    h, targets = problem()
    steps = {name: step_of(name, h, targets)[0] for name in (NAIVE, *TIME_LIMITS)}
    single = {name: step for name, step in steps.items() if name == NAIVE or not name.startswith("mos")}
    rows = rows_of(take_turns(single, rounds), 1)
    fifteen = {
        NAIVE: lambda: [steps[NAIVE]() for _ in range(MIXTURES)][-1],
        "mos": steps["mos"],
        "mos-plif": steps["mos-plif"],
    }
    return rows + rows_of(take_turns(fifteen, mixture_rounds), MIXTURES)


def take_turns(steps: dict[str, Work], rounds: int) -> dict[str, list[float]]:
    """Seconds of each step in each round, after a round that doesn't count."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            if number:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def rows_of(seconds: dict[str, list[float]], losses: int) -> list[dict[str, Any]]:
    rows = []
    for name, measured in seconds.items():
        ratios = [mine / theirs for mine, theirs in zip(measured, seconds[NAIVE], strict=True)]
        ratio, limit = statistics.median(ratios), TIME_LIMITS.get(name)
        row = {
            "head": name,
            "linear_losses": losses,
            "seconds": round(statistics.median(measured), 3),
            "fastest": round(min(measured), 3),
            "ratio": round(ratio, 3),
            "ratio_of_fastest": round(min(measured) / min(seconds[NAIVE]), 3),
            "limit": limit,
            "met": None if limit is None else ratio <= limit,
        }
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    return rows


# ---------------------------------------------------------------------- memory


def measure_memory(name: str) -> dict[str, Any]:
    """In a fresh process whose malloc gives large blocks back at once, so that none is used twice unseen."""
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--memory", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    peaks = json.loads(done.stdout)
    limit = MEMORY_LIMITS.get(name)
    resident = peaks["resident"] / LOGITS_BYTES
    row = {
        "head": name,
        "resident_mb": round(peaks["resident"] / 1e6, 1),
        "tensors_mb": round(peaks["tensors"] / 1e6, 1),
        "resident": round(resident, 3),
        "tensors": round(peaks["tensors"] / LOGITS_BYTES, 3),
        "limit": limit,
        "met": None if limit is None else resident <= limit,
    }
    print(row, file=sys.stderr, flush=True)
    return row


def peak_memory(name: str) -> dict[str, int]:
    """Bytes beyond inputs, parameters and their gradients, at the worst moment of loss and backward."""
    h, targets = problem()
    step, receiving = step_of(name, h, targets)
    step()  # what libraries keep for good once used (12 MB of code and buffers) is no part of a step
    for tensor in receiving:
        tensor.grad = None
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    step()
    gradients = sum(tensor.grad.nbytes for tensor in receiving if tensor.grad is not None)
    resident = status("VmHWM") - before - gradients
    return {"resident": resident, "tensors": tensor_peak(step, receiving) - gradients}


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def tensor_peak(step: Work, receiving: list[torch.Tensor]) -> int:
    """The highest total of PyTorch's allocations during the step, above what was there before it."""
    for tensor in receiving:
        tensor.grad = None
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    moves = [event["args"] for event in events if event.get("name") == "[memory]"]
    totals = [move["Total Allocated"] for move in moves]
    return max(totals) - (totals[0] - moves[0]["Bytes"])


if __name__ == "__main__":
    main()
