"""How compressed-tensors says in config.json that a layer was quantised: bits, groups, and whether inputs are
rounded, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_METHOD = "compressed-tensors"


@dataclass(frozen=True)
class Scheme:
    """What a layer's settings say; a `group_size` of None stands for whole rows, or the whole tensor."""

    bits: int
    is_symmetric: bool
    group_size: int | None
    rounds_inputs: bool


def scheme_of(config: Mapping[str, Any], layer: str) -> Scheme | None:
    """The scheme of a layer, or None where config.json does not say it without doubt.

    A group of settings lists layers by kind, by name or by pattern. Of several groups that differ, only the
    one that lists the layer's own name is sure to be meant.
    """
    settings = config.get("quantization_config")
    if not isinstance(settings, dict) or settings.get("quant_method") != _METHOD:
        return None
    groups = settings.get("config_groups")
    if not isinstance(groups, dict) or not all(isinstance(each, dict) for each in groups.values()):
        return None
    named = [each for each in groups.values() if layer in _targets(each)]
    schemes = [_scheme(each) for each in named or groups.values()]
    return schemes[0] if schemes and all(each == schemes[0] for each in schemes) else None


def _targets(group: Mapping[str, Any]) -> list[Any]:
    targets = group.get("targets")
    return targets if isinstance(targets, list) else []


def _scheme(group: Mapping[str, Any]) -> Scheme | None:
    rounds_inputs = group.get("input_activations") is not None
    match group.get("weights"):
        case {"num_bits": int(bits), "type": "int" | "float", "symmetric": bool(symmetric), **rest} if (
            0 < bits <= 8
        ):
            size = rest.get("group_size")
            if size is None or (isinstance(size, int) and size == -1):
                return Scheme(bits, symmetric, None, rounds_inputs)
            if isinstance(size, int) and size > 0:
                return Scheme(bits, symmetric, size, rounds_inputs)
    return None
