"""What a Hugging Face model does to the logits after its output layer, moved into the head.

A head with mixtures returns log-probabilities, and capping or scaling these makes another distribution. In a
head with a transform, they would apply after the transform instead of before it. The head's own loss would
not see them at all.
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from argmaxable.core.errors import InputError
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.softcap import SoftCap

_CAP, _DIVISOR, _SCALE = "final_logit_softcapping", "logits_scaling", "logit_scale"
# Settings, anywhere in the configuration, that look like one of these but whose meaning is unknown here.
_SUSPECT = re.compile(r"soft_?cap|logits?_scal|output_multiplier|lm_head_multiplier")
_ELSEWHERE = re.compile("attn|attention|router|gate|mlp")


def take_over_logit_settings(model: nn.Module, old: nn.Module, head: nn.Module) -> None:
    """Give the head the cap and scale of the model or of its old head, and take them off the model.

    Raises InputError when the model has such a setting of a kind that is unknown here, or when the old head
    has one that the new one can't take.
    """
    moved = old.transform if isinstance(old, SoftmaxHead) and isinstance(old.transform, SoftCap) else None
    if isinstance(head, SoftmaxHead):
        if moved is not None and not isinstance(head.transform, SoftCap):
            head.transform = SoftCap(head.transform, cap=moved.cap, scale=moved.scale)
        _take_over_from_config(model, head)
    elif moved is not None:
        raise InputError(
            f"the model's head caps or scales its logits (cap {moved.cap}, scale {moved.scale}), which "
            f"{type(head).__name__} can't. Pass a SoftmaxHead, or load the model again."
        )


def _take_over_from_config(model: nn.Module, head: SoftmaxHead) -> None:
    config = getattr(model, "config", None)
    if config is None:
        return
    for name, value in _settings(config):
        if name not in (_CAP, _DIVISOR, _SCALE):
            raise InputError(
                f"{type(model).__name__} seems to change the logits of its output layer ({name} = {value}). "
                "With a SoftmaxHead that would give another distribution. Remove the setting first."
            )
    cap = getattr(config, _CAP, None)
    scale = float(getattr(config, _SCALE, None) or 1.0) / float(getattr(config, _DIVISOR, None) or 1.0)
    if cap is None and scale == 1:
        return
    _neutralise(model, config)
    head.transform = SoftCap(head.transform, cap=cap, scale=scale)


def _neutralise(model: nn.Module, config: Any) -> None:
    for name, neutral in ((_CAP, None), (_DIVISOR, 1.0), (_SCALE, 1.0)):
        for holder in (config, model):
            if getattr(holder, name, None) is not None:
                try:
                    setattr(holder, name, neutral)
                except AttributeError:  # MiniCPM computes it from other settings
                    raise InputError(
                        f"{type(model).__name__} scales its logits by a setting that can't be changed "
                        f"({name}), so a SoftmaxHead can't take it over."
                    ) from None


def _settings(config: Any) -> list[tuple[str, Any]]:
    """Settings that change logits, with their place in the configuration, where they are not neutral."""
    found = []
    for name, value in config.to_dict().items():
        parts = value.items() if isinstance(value, dict) else [(None, value)]
        for part, setting in parts:
            full = name if part is None else f"{name}.{part}"
            is_number = isinstance(setting, int | float) and not isinstance(setting, bool)
            if _SUSPECT.search(full) and not _ELSEWHERE.search(full) and is_number and setting != 1:
                found.append((full, setting))
    return found
