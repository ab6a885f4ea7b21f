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
        """How many outputs of the joint network are not tokens; None where that can't be told."""
        joint = _section(self.text, ("joint",))
        if joint and "num_extra_outputs" not in joint:
            return 0
        value = _value(joint, "num_extra_outputs")
        is_number = value is not None and value.isascii() and value.isdigit() and len(value) < 6
        return int(value) if value is not None and is_number else None

    def chooses_durations(self) -> bool:
        """Whether the further outputs choose durations (TDT), which NeMo compares among themselves."""
        return _value(_section(self.text, ("loss",)), "loss_name") == "tdt"

    def has_blank(self, part: str) -> bool:
        """Whether an output of the joint network or of a CTC decoder stands for no token."""
        value = _value(_section(self.text, _SECTIONS[part]), "add_blank")
        return value is None or value.lower() != "false"

    def is_single(self, part: str) -> bool:
        """Whether a decoder chooses one class at a time."""
        return _value(_section(self.text, _SECTIONS[part]), "num_decoders") in (None, "1")

    def labels(self) -> tuple[str, ...]:
        """The labels of a classifier; raises LoadError."""
        return tuple(list_under("labels:\n" + "\n".join(_items_below(self.text, "labels")), ["labels"]))

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


def _items_below(text: str, key: str) -> Iterator[str]:
    """The items of the list below a key that is not indented, which may not be indented either."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if line.rstrip() == f"{key}:"]
    for line in lines[places[0] + 1 :] if len(places) == 1 else []:
        if not line.startswith(("- ", " ")) and line.strip() != "-":
            return
        yield line


def _value(text: str, key: str) -> str | None:
    """What stands behind a key that is not indented; None where it is not there, or there twice."""
    found = re.findall(rf"^{re.escape(key)}: *(.+?) *$", text, re.MULTILINE)
    return found[0].strip("'\"") if len(found) == 1 else None
