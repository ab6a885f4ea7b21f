"""Names under which .npz files keep an output layer: our own, Marian's, Nematus's, recommenders'. A table.

A translation model's embeddings often are its output layer too ("tied"). They alone prove nothing, since
every model has some; that they are tied shows in a bias without a weight of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The weight's and the bias's name, and whether the weight's rows are the classes.

    `needs_bias` tells tied embeddings. A vocabulary lies beside a translation model (`has_vocabulary`).
    """

    why: str
    weight: str
    bias: str
    rows_are_classes: bool = True
    needs_bias: bool = False
    has_vocabulary: bool = True

    def fits(self, names: Collection[str]) -> bool:
        return self.weight in names and (self.bias in names or not self.needs_bias)


def _tied(toolkit: str, weight: str, bias: str) -> Layout:
    return Layout(f"{toolkit}'s embeddings, tied to its output layer", weight, bias, needs_bias=True)


_MARIAN = "Marian's output layer"
# Marian's transformers call the layer out, its recurrent models l2. Older versions store W by feature.
_LAYOUTS = (
    Layout("the array named W", "W", "b", has_vocabulary=False),
    Layout("the array named weight", "weight", "bias", has_vocabulary=False),
    # Recommenders: implicit's models as they save themselves, LightFM's under its own names.
    Layout("implicit's item factors", "item_factors", "item_biases", has_vocabulary=False),
    Layout("LightFM's item embeddings", "item_embeddings", "item_biases", has_vocabulary=False),
    Layout(_MARIAN, "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_b"),
    Layout(_MARIAN, "decoder_ff_logit_out_W", "decoder_ff_logit_out_b", rows_are_classes=False),
    Layout(_MARIAN, "decoder_ff_logit_l2_Wt", "decoder_ff_logit_l2_b"),
    Layout(_MARIAN, "decoder_ff_logit_l2_W", "decoder_ff_logit_l2_b", rows_are_classes=False),
    Layout("Nematus's output layer", "ff_logit_W", "ff_logit_b", rows_are_classes=False),
    _tied("Marian", "decoder_Wemb", "decoder_ff_logit_out_b"),
    _tied("Marian", "decoder_Wemb", "decoder_ff_logit_l2_b"),
    _tied("Marian", "Wemb", "decoder_ff_logit_out_b"),
    _tied("Marian", "Wemb", "decoder_ff_logit_l2_b"),
    _tied("Nematus", "Wemb_dec", "ff_logit_b"),
    _tied("Nematus", "Wemb", "ff_logit_b"),
    # Only a decoder that is tied can do without a weight of its own; without a bias it was trained with
    # --output-omit-bias.
    Layout("Marian's embeddings, tied to its output layer", "decoder_Wemb", "decoder_ff_logit_out_b"),
)


def layout_of(names: Collection[str], weight: str | None) -> Layout | None:
    """The first layout whose arrays are among the names (with that weight, if given), or None."""
    return next((each for each in _LAYOUTS if each.fits(names) and weight in (None, each.weight)), None)
