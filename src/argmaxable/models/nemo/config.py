"""What a NeMo model's configuration says about its head. Only the few lines that matter are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from argmaxable.models.labels.flat_yaml import list_under
from argmaxable.models.labels.readable import SENTENCEPIECE, guess_kind, readable_tokens

# What NeMo's joint network knows.
_ACTIVATIONS = ("relu", "sigmoid", "tanh")
# A hybrid model describes its CTC decoder under another key.
_SECTIONS = {"joint": ("joint",), "decoder": ("decoder",), "ctc_decoder": ("aux_ctc", "decoder")}


@dataclass(frozen=True)
class NemoConfig:
    """The text of a model_config.yaml."""

    text: str

    def activation(self) -> str | None:
        """What the joint network does before its last layer, where it is known."""
        name = _value(_section(self.text, ("joint", "jointnet")), "activation")
        return name.lower() if name is not None and name.lower() in _ACTIVATIONS else None

    def extra_outputs(self) -> int | None:
        """How many outputs of the joint network are no tokens; None where that can't be told."""
        joint = _section(self.text, ("joint",))
        if joint and "num_extra_outputs" not in joint:
            return 0
        value = _value(joint, "num_extra_outputs")
        is_number = value is not None and value.isascii() and value.isdigit() and len(value) < 6
        return int(value) if value is not None and is_number else None

    def chooses_durations(self) -> bool:
        """Whether the further outputs choose durations (TDT), which NeMo compares among themselves."""
        return _value(_section(self.text, ("loss",)), "loss_name") == "tdt"

    def vocabulary(self, part: str) -> tuple[str, ...]:
        """The tokens of the joint network or of a decoder; raises LoadError."""
        tokens = list_under(_section(self.text, _SECTIONS[part]), ["vocabulary"])
        kind = guess_kind(tokens)
        return readable_tokens(tokens, kind) if kind == SENTENCEPIECE else tuple(tokens)


def _section(text: str, keys: tuple[str, ...]) -> str:
    """The lines below a key inside another, and so on, without their indentation; empty if there are none."""
    for key in keys:
        text = "\n".join(_below(text, key))
    return text


def _below(text: str, key: str) -> Iterator[str]:
    """The lines below a key that is not indented; what is indented less ends them."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if line.rstrip() == f"{key}:"]
    if len(places) != 1:
        return
    indent = ""
    for line in lines[places[0] + 1 :]:
        if not line.strip():
            continue
        indent = indent or line[: len(line) - len(line.lstrip(" "))]
        if not indent or not line.startswith(indent):
            return
        yield line[len(indent) :]


def _value(text: str, key: str) -> str | None:
    """What stands behind a key that is not indented; None where it is not there, or there twice."""
    found = re.findall(rf"^{re.escape(key)}: *(.+?) *$", text, re.MULTILINE)
    return found[0].strip("'\"") if len(found) == 1 else None
