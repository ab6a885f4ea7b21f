"""Peak memory of a training step in Hugging Face's Trainer, with a model's own head and with a replaced one.

A GPT-2 with one small layer and a large vocabulary, so that the head is what counts. Each head in a fresh
process whose malloc returns large blocks at once. The figure is the rise of the peak resident memory during
the second optimizer step, above what was resident when it began.

    python benchmarks/trainer_memory.py [--classes 100000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import _record
import torch
import transformers

from argmaxable.layers import SoftmaxHead, replace_head

CLASSES, FEATURES, ROWS, LENGTH = 100_000, 64, 4, 256
HEADS = ("own", "linear")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--head", choices=HEADS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(2)
    if options.head:
        print(step_peak(options.head, options.classes))
        return
    logits = ROWS * LENGTH * options.classes * 4
    rows = [measure(head, options.classes, logits) for head in HEADS]
    _record.write(
        "trainer_memory",
        {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "classes": options.classes,
            "features": FEATURES,
            "tokens": ROWS * LENGTH,
            "logits_mb": round(logits / 1e6, 1),
            "heads": rows,
        },
    )


def measure(head: str, classes: int, logits: int) -> dict[str, Any]:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--head", head, "--classes", str(classes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    peak = int(done.stdout.split()[-1])
    row = {"head": head, "peak_mb": round(peak / 1e6, 1), "logits": round(peak / logits, 3)}
    print(row, file=sys.stderr, flush=True)
    return row


def step_peak(head: str, classes: int) -> int:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=classes, n_embd=FEATURES, n_layer=1, n_head=2, n_positions=LENGTH, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    if head != "own":
        replace_head(model, SoftmaxHead.from_name(head, FEATURES, classes, bias=False))
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=ROWS, max_steps=2, optim="sgd", report_to=[],
            save_strategy="no", logging_strategy="no", use_cpu=True, disable_tqdm=True,
            dataloader_pin_memory=False,
        )  # fmt: skip
        rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(classes, (2 * ROWS, LENGTH))]
        transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[watch]).train()
    return watch.peak


class Watch(transformers.TrainerCallback):
    """Measures the last step."""

    peak = before = 0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.before = status("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.peak = status("VmHWM") - self.before


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main()
