"""All experiments, one after another; what is finished is kept, so the same command goes on where it stopped.

Examples:
  python -m experiments --text data/wikitext-2     (about an hour on two cores)
  python -m experiments --smoke                    (everything once at a toy size: a minute)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from experiments._experiment import require_text, text_of


def main() -> int:
    options = _options()
    if not options.smoke:
        # Before the first of them: not after half an hour.
        require_text("Some experiments", options.text)
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    for number, name in enumerate(names, start=1):
        print(f"== {name} ({number} of {len(names)})", flush=True)
        command = [sys.executable, "-m", f"experiments.{name}", *(["--smoke"] if options.smoke else [])]
        done = subprocess.run(command, env={**os.environ, "TEXT": str(options.text)}, check=False)
        if done.returncode:
            return done.returncode
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--smoke", action="store_true", help="run everything once at a toy size")
    text_of(parser)
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the experiment has said what there is to say
