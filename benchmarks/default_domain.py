"""What the default domain costs: `verify` over the domain that the file proves, against the box ±100.

The whole command with `--domain auto` and `--domain box:100` in turns, in seconds of all
processors. MODEL is a path.

    python benchmarks/default_domain.py [--rounds N] [MODEL ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import _models
import _record
from whole_command import ROOT, Run, run_command

DOMAINS = ("auto", "box:100")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    models = options.models or [
        *(_models.onnx_file(name) for name in ("ppocrv4_rec_ch", "ppocrv3_rec_ch", "magika")),
        _models.language_model_file("smollm2"),
    ]
    found = {model.name: measure(model, options.rounds) for model in models}
    if options.models:
        print(json.dumps(found, indent=2))
    else:
        _record.write("default_domain", {"rounds": options.rounds, "models": found})


def measure(model: Path, rounds: int) -> dict[str, object]:
    """Medians over the rounds; a first one, not counted, compiles the modules."""
    runs: dict[str, list[Run]] = {domain: [] for domain in DOMAINS}
    for number in range(rounds + 1):
        for domain in DOMAINS:
            run = run_command(model, ROOT, "--domain", domain)
            if number:
                runs[domain].append(run)
    cpu = {domain: statistics.median(run.cpu for run in each) for domain, each in runs.items()}
    return {
        "auto": runs["auto"][0].printed["domain"],
        "unargmaxable": {domain: each[0].printed["unargmaxable"] for domain, each in runs.items()},
        "solves": {domain: each[0].printed["solves"] for domain, each in runs.items()},
        "cpu_seconds": {domain: round(seconds, 2) for domain, seconds in cpu.items()},
        "auto_over_box": round(cpu["auto"] / cpu["box:100"], 3),
    }


if __name__ == "__main__":
    main()
