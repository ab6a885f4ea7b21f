"""Run all experiments, one after another. Run the same command again to resume: finished cells are stored.

Examples:
  python -m experiments --text data/wikitext-2     (over an hour on two cores)
  python -m experiments --smoke                    (everything once at a toy size: a minute)
  python -m experiments --long --text ...          (until training converges: days on two cores)
  python -m experiments --paper --device cuda --text data/penn-treebank
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from experiments.harness.means import AUTO
from experiments.harness.options import checked, require_text, scale_of, text_of


def main() -> int:
    options = _options()
    if not options.smoke:
        # Before the first of them: not after half an hour.
        require_text("Some experiments", options.text)
    names, failed = _names(is_long=options.long), []
    for number, name in enumerate(names, start=1):
        print(f"== {name} ({number} of {len(names)})", flush=True)
        command = [sys.executable, "-m", f"experiments.{name}", *_passed_on(options)]
        done = subprocess.run(command, env={**os.environ, "TEXT": str(options.text)}, check=False)
        if done.returncode:
            failed.append(name)  # the others need nothing of it
    if failed:
        print(f"{len(failed)} of {len(names)} experiments failed: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


def _names(*, is_long: bool) -> list[str]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    if is_long:
        names = [name for name in names if import_module(f"experiments.{name}").EXPERIMENT.long]
    return names


def _passed_on(options: argparse.Namespace) -> list[str]:
    scales = [f"--{name}" for name in ("smoke", "paper", "long") if getattr(options, name)]
    device = [] if options.device == AUTO else ["--device", options.device]
    return [*scales, *device, *(["--steps", str(options.steps)] if options.steps else [])]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scale_of(parser)
    text_of(parser)
    options = checked(parser)
    if options.parts or options.heads or options.mixtures or options.seeds:
        parser.error(
            "--parts, --heads, --mixtures and --seeds belong to one experiment: "
            "python -m experiments.language_models."
        )
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the experiment has said what there is to say
