"""What a Hugging Face model does to the logits after its output layer, moved into the head.

A head with mixtures returns log-probabilities, and a cap or a scale applied to those makes another
distribution. A head with a transform would meet them after the transform instead of before, and its own loss
not at all.
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from argmaxable.core.errors import InputError
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.softcap import SoftCap

_CAP, _DIVISOR, _SCALE = "final_logit_softcapping", "logits_scaling", "logit_scale"
# Settings that look like one of these, in the configuration or in a part of it, and mean what we don't know.
_SUSPECT = re.compile(r"soft_?cap|logits?_scal|output_multiplier|lm_head_multiplier")
_OF_ATTENTION = re.compile("attn|attention|router")


def take_over_logit_settings(model: nn.Module, head: SoftmaxHead) -> None:
    """Give the head the model's cap and scale, and take them off the model.

    Raises InputError when the model has such a setting of a kind that is unknown here.
    """
    config = getattr(model, "config", None)
    if config is None:
        return
    for name, value in _settings(config):
        if name not in (_CAP, _DIVISOR, _SCALE):
            raise InputError(
                f"{type(model).__name__} seems to change the logits of its output layer ({name} = {value}). "
                "With a SoftmaxHead that would be another distribution. Take it off the model first."
            )
    cap = getattr(config, _CAP, None)
    scale = float(getattr(config, _SCALE, None) or 1.0) / float(getattr(config, _DIVISOR, None) or 1.0)
    if cap is None and scale == 1:
        return
    head.transform = SoftCap(head.transform, cap=cap, scale=scale)
    _neutralise(model, config)


def _neutralise(model: nn.Module, config: Any) -> None:
    for name, neutral in ((_CAP, None), (_DIVISOR, 1.0), (_SCALE, 1.0)):
        for holder in (config, model):
            if getattr(holder, name, None) is not None:
                setattr(holder, name, neutral)


def _settings(config: Any) -> list[tuple[str, Any]]:
    """Settings that change logits, with their place in the configuration, where they are not neutral."""
    found = []
    for name, value in config.to_dict().items():
        parts = value.items() if isinstance(value, dict) else [(None, value)]
        for part, setting in parts:
            full = name if part is None else f"{name}.{part}"
            is_number = isinstance(setting, int | float) and not isinstance(setting, bool)
            if _SUSPECT.search(full) and not _OF_ATTENTION.search(full) and is_number and setting != 1:
                found.append((full, setting))
    return found
