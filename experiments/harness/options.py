"""The command line of the experiments."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from experiments.harness.corpus import text_files
from experiments.harness.means import AUTO

# As the papers call it; _corpus knows what is in such a directory.
DEFAULT_TEXT = Path(__file__).parent.parent / "data" / "wikitext-2"


def scale_of(parser: argparse.ArgumentParser, *, has_long: bool = True) -> argparse._MutuallyExclusiveGroup:
    """The options that say how much is run, and on what."""
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--smoke", action="store_true", help="run everything once in seconds; writes nothing")
    scale.add_argument(
        "--paper", action="store_true", help="the paper's own sizes: may take days; writes results/paper"
    )
    if has_long:
        scale.add_argument(
            "--long", action="store_true", help="until training converges: hours; writes results/long"
        )
    else:
        parser.set_defaults(long=False)
    parser.add_argument("--device", help="what PyTorch computes on, such as cuda:1 (default: a GPU, or cpu)")
    parser.add_argument("--heads", type=_names, help="of --paper and --long, only these heads: linear,mos")
    parser.add_argument("--seeds", type=_numbers, help="of --paper and --long, only these seeds: 0,1")
    parser.add_argument(
        "--mixtures", type=_numbers, help="of --long, only mixtures of these numbers of softmaxes: 3"
    )
    parser.add_argument(
        "--parts", type=_names, help="of --long, only these parts: small,large or M100-alpha0.1"
    )
    parser.add_argument(
        "--steps",
        type=positive,
        help="end every training after this many steps, to try a machine; writes nothing",
    )
    return scale


def checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, if they go together."""
    options = parser.parse_args()
    if (options.heads or options.seeds) and not (options.paper or options.long):
        parser.error("--heads and --seeds choose among the cells of --paper and --long: give one of these.")
    if (options.parts or options.mixtures) and not options.long:
        parser.error("--parts and --mixtures choose among the cells of --long: give that too.")
    if options.device:
        options.device = _device(parser, options.device)
    else:
        options.device = AUTO
    return options


def _device(parser: argparse.ArgumentParser, name: str) -> str:
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        parser.error(f"--device {name}: {str(error).splitlines()[0]}")
    return name


def text_of(parser: argparse.ArgumentParser) -> None:
    """The option that names a text."""
    parser.add_argument(
        "--text",
        type=Path,
        default=Path(os.environ.get("TEXT") or DEFAULT_TEXT),
        help="directory with train.txt, valid.txt, test.txt, or the last two, or with the Parquet files of a "
        "dataset on the hub (default: data/wikitext-2)",
    )


def require_text(who: str, path: Path) -> None:
    """Stop where there is no text."""
    try:
        text_files(path)
    except FileNotFoundError as error:
        sys.exit(
            f"{who}: no text. {error} Name your directory with --text DIRECTORY or "
            "make experiments TEXT=DIRECTORY."
        )


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is not a number of processes, threads or steps; expected 1 or more."
        )
    return int(text)


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a list of whole numbers; expected one like 0,1,2."
        ) from None
