"""Time and memory of the heads' loss, forward and backward, beside the plain linear cross-entropy.

The yardstick is what anyone would write, cross_entropy(linear(h), targets), in the same run: rounds take
turns, so that whatever else the machine does meets both. Medians over rounds; a ratio is the median of the
rounds' ratios. Each number of threads and each setting has a process of its own: glibc's malloc as it is,
which returns large blocks after each step and pays for their pages again; with memory retained; and with
memory retained as on a processor without AVX-512, where products are MKL's. Beside the heads: a naive loss in
chunks, a compiled one, and PyTorch's AdaptiveLogSoftmaxWithLoss.

Peak memory is that of a second step in a fresh process, beyond inputs, parameters and their gradients,
measured in two ways: the rise of the process's peak resident memory (VmHWM, with large blocks of malloc
returned at once), which counts what any library takes, and the peak of PyTorch's own allocations by its
profiler.

    python benchmarks/layers.py [--rounds 9] [--mixture-rounds 3]

Takes about six minutes on two idle cores: six runs of 9 rounds (under a minute each), the mixtures (twice a
minute), and memory (a minute). Nothing else should run meanwhile.
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
from torch.utils.checkpoint import checkpoint

from argmaxable.layers import PLIF, SoftmaxHead

TOKENS, FEATURES, CLASSES, MIXTURES = 1400, 400, 10_000, 15
THREADS = (1, 2)
# What glibc is told: nothing, or to keep what it was given. And PyTorch: to take the processor for another.
_RETAIN = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
    "MALLOC_TOP_PAD_": str(1 << 26),
}
DEFAULT, RETAINED, AVX2 = "default", "retained", "retained, AVX2"
SETTINGS = {DEFAULT: {}, RETAINED: _RETAIN, AVX2: _RETAIN | {"ATEN_CPU_CAPABILITY": "avx2"}}
LOGITS_BYTES = TOKENS * CLASSES * 4
# The most a setting may cost with memory retained, relative to one linear loss (mixtures: to 15 of them).
TIME_LIMITS = {
    "lms-plif": 1.3,
    "sigsoftmax": 1.1,
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
CHUNKED, COMPILED, ADAPTIVE = "naive in chunks", "naive, compiled", "AdaptiveLogSoftmaxWithLoss"
_CHUNK = 256  # tokens of the naive loss in chunks

Work = Callable[[], None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mixture-rounds", type=int, default=3)
    parser.add_argument("--memory", metavar="HEAD", help=argparse.SUPPRESS)
    parser.add_argument("--times", metavar="THREADS", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        torch.set_num_threads(max(THREADS))
        print(json.dumps(peak_memory(options.memory)))
        return
    if options.times:
        torch.set_num_threads(options.times)
        print(json.dumps(measure_times(options.rounds, options.mixture_rounds)))
        return
    load = round(os.getloadavg()[0], 2)
    _record.write(
        "layers",
        {
            "torch": torch.__version__,
            "tokens": TOKENS,
            "features": FEATURES,
            "classes": CLASSES,
            "mixtures": MIXTURES,
            "load_average_before": load,
            "time": [
                {"setting": setting, "threads": threads, **row}
                for setting in SETTINGS
                for threads in THREADS
                for row in times_of(setting, threads, options)
            ],
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
    if name == ADAPTIVE:
        torch.manual_seed(0)
        # Frequent classes in the head, the rest in two clusters with fewer features.
        layer: torch.nn.Module = torch.nn.AdaptiveLogSoftmaxWithLoss(FEATURES, CLASSES, [1000, 5000])

        def loss() -> torch.Tensor:
            return layer(h, targets).loss

    else:
        layer = head_of(name if name in TIME_LIMITS else "linear")
        loss = loss_of(name, layer, h, targets)
    receiving = [h, *layer.parameters()]

    def step() -> None:
        for tensor in receiving:
            tensor.grad = None
        loss().backward()

    return step, receiving


def loss_of(
    name: str, head: SoftmaxHead, h: torch.Tensor, targets: torch.Tensor
) -> Callable[[], torch.Tensor]:
    """A head's own loss, or one of the naive ones with its weights."""

    def naive(h: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(F.linear(h, head.weight, head.bias), targets, reduction="sum")

    def in_chunks() -> torch.Tensor:
        parts = zip(h.split(_CHUNK), targets.split(_CHUNK), strict=True)
        return sum(checkpoint(naive, *part, use_reentrant=False) for part in parts) / TOKENS

    if name == COMPILED:
        compiled = torch.compile(naive)
        return lambda: compiled(h, targets) / TOKENS
    kinds = {NAIVE: lambda: naive(h, targets) / TOKENS, CHUNKED: in_chunks}
    return kinds.get(name, lambda: head.loss(h, targets))


# ---------------------------------------------------------------------- time


def times_of(setting: str, threads: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """In a process with that setting."""
    command = [sys.executable, __file__, "--times", str(threads), "--rounds", str(options.rounds)]
    # Fifteen losses take long, and say little more: with all threads and memory retained only.
    mixture_rounds = options.mixture_rounds if setting != DEFAULT and threads == max(THREADS) else 0
    command += ["--mixture-rounds", str(mixture_rounds)]
    environment = {**os.environ, **SETTINGS[setting]}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    if setting != RETAINED:
        rows = [row | {"limit": None, "met": None} for row in rows]
    for row in rows:
        print(setting, threads, row, file=sys.stderr, flush=True)
    return rows


def measure_times(rounds: int, mixture_rounds: int) -> list[dict[str, Any]]:
    h, targets = problem()
    single = {
        name: step_of(name, h, targets)[0]
        for name in (NAIVE, *TIME_LIMITS, CHUNKED, COMPILED, ADAPTIVE)
        if not name.startswith("mos")
    }
    rows = rows_of(take_turns(single, rounds), 1)
    if not mixture_rounds:
        return rows
    fifteen = {NAIVE: lambda: [single[NAIVE]() for _ in range(MIXTURES)][-1]}
    fifteen |= {name: step_of(name, h, targets)[0] for name in TIME_LIMITS if name.startswith("mos")}
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
    step()  # what libraries keep for good once used (12 MB of code and buffers) is not part of a step
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
