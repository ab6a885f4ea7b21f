"""The tokens of Hugging Face's tokenizer.json, by their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import Labels
from argmaxable.models.labels.readable import BYTE_LEVEL, PLAIN, guess_kind, readable_token, readable_tokens

TOKENIZER = "tokenizer.json"


def from_tokenizer(tokenizer: Mapping[str, Any], classes: int) -> Labels:
    """The tokens of Hugging Face's tokenizer.json; special ones are literal, the rest in its own writing."""
    vocabulary = tokenizer["model"].get("vocab")
    if isinstance(vocabulary, dict):
        pairs = [(number, token) for token, number in vocabulary.items()]
    elif isinstance(vocabulary, list) and all(isinstance(pair, list) and pair for pair in vocabulary):
        pairs = [(number, pair[0]) for number, pair in enumerate(vocabulary)]  # Unigram: [token, score]
    else:
        raise LoadError("has no model.vocab; expected a tokenizer.json of Hugging Face.")
    added = tokenizer.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise LoadError("has added_tokens that are not a list of objects.")
    more = [(token.get("id"), token.get("content")) for token in added]
    tokens = by_number([*pairs, *more], classes)
    _require_usual_numbers(pairs, more)
    byte_level = any(_is_byte_level(tokenizer.get(part)) for part in ("pre_tokenizer", "decoder"))
    names = list(readable_tokens(tokens, BYTE_LEVEL if byte_level else guess_kind(tokens)))
    special = {token["id"]: token["content"] for token in added if token.get("special") is True}
    for number, token in special.items():
        names[number] = readable_token(token, PLAIN)
    return Labels(tuple(names), TOKENIZER, special=frozenset(special))


def _require_usual_numbers(pairs: Sequence[tuple[Any, Any]], added: Iterable[tuple[Any, Any]]) -> None:
    """Refuse added tokens with other numbers than Hugging Face's library gives them.

    It does not heed the numbers in the file: a token of the vocabulary has its own, another the next.
    """
    numbers = {token: number for number, token in pairs}
    following = len(pairs)
    for number, token in added:
        if token not in numbers:
            numbers[token], following = following, following + 1
        if numbers[token] != number:
            raise ambiguous(
                f"the added token {token[:80]!r} has the number {number}, where tokenizers gives it "
                f"{numbers[token]}"
            )


def _is_byte_level(step: object) -> bool:
    """Whether a pre-tokenizer or decoder, or a step of it when it is a Sequence, is GPT-2's."""
    inner = step.get("pretokenizers", step.get("decoders")) if isinstance(step, dict) else None
    steps = inner if isinstance(inner, list) else [step]
    return any(isinstance(each, dict) and each.get("type") == "ByteLevel" for each in steps)


def by_number(pairs: Iterable[tuple[Any, Any]], classes: int) -> list[str]:
    """Tokens in the order of their numbers, which may leave some out.

    Raises AmbiguousError where two have the same number.
    """
    tokens = _numbered(pairs, classes)
    return [tokens.get(number, unused(number)) for number in range(max(tokens, default=-1) + 1)]


def _numbered(pairs: Iterable[tuple[Any, Any]], classes: int) -> dict[int, str]:
    tokens: dict[int, str] = {}
    for number, token in pairs:
        if type(number) is not int or not isinstance(token, str):  # True is an int too
            raise LoadError(
                f"numbers {str(token)[:60]!r} with {str(number)[:60]!r}; expected a token and a whole number."
            )
        if not 0 <= number < classes:
            raise LoadError(
                f"numbers {token[:60]!r} with {number}; the head has only {classes:,} classes. "
                "Does it belong to this model?"
            )
        if tokens.setdefault(number, token) != token:
            raise ambiguous(f"{tokens[number][:80]!r} and {token[:80]!r} have the same number, {number}")
    return tokens


def unused(number: int) -> str:
    return f"<unused {number}>"
