"""What docs/results.md says about the text: sizes of its parts, words that the vocabularies leave out.

python -m experiments.page.text --text data/wikitext-2     writes experiments/page/text.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from experiments.harness.corpus import UNKNOWN, Corpus, articles, corpus
from experiments.harness.options import text_of
from experiments.harness.storage import digest_of

PATH = Path(__file__).parent / "text.json"
_SIZES = (1_000, 10_000)  # of the vocabularies
_PARTS = ("train", "valid", "test")


def described(text: Path) -> dict[str, Any]:
    """The text's digest, tokens and articles of each part, and what each vocabulary leaves out."""
    by_size = {size: corpus(text, vocabulary=size) for size in _SIZES}
    smallest = by_size[_SIZES[0]]
    return {
        "text": digest_of(text),
        "tokens": {part: len(getattr(smallest, part)) for part in _PARTS},
        "articles": articles(text),
        "unknown": {str(size): _unknown(words) for size, words in by_size.items()},
        "least_count": {str(size): int(words.counts.min()) for size, words in by_size.items()},
        "words": smallest.words,
    }


def _unknown(words: Corpus) -> dict[str, float]:
    """The share of each part's tokens that stand for words that are left out."""
    token = words.words.index(UNKNOWN)
    return {part: round(float((getattr(words, part) == token).mean()), 5) for part in _PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.page.text", description=__doc__)
    text_of(parser)
    PATH.write_text(json.dumps(described(parser.parse_args().text), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
