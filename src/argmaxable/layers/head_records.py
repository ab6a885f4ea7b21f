"""What an output layer is made of, as plain JSON values in a model's configuration, and back."""

from __future__ import annotations

from typing import Any

from torch import nn

from argmaxable.core.errors import InputError
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.norms import Norm
from argmaxable.layers.prevention import (
    EqualNorms,
    SphericalLinear,
    Voronoi,
    VoronoiLinear,
    prevention_of,
)

_GUARDED: dict[str, type[SphericalLinear | VoronoiLinear]] = {
    "SphericalLinear": SphericalLinear,
    "VoronoiLinear": VoronoiLinear,
}
# A head with a transform of the user's own.
_UNKNOWN = "unknown"


def record_of_head(head: nn.Module, model: nn.Module) -> dict[str, Any] | None:
    """None for a head that needs no description (nn.Linear)."""
    if isinstance(head, SoftmaxHead):
        unknown = {"layer": _UNKNOWN, "transform": type(head.transform).__name__}
        return head.settings() if head.has_settings else unknown
    if not isinstance(head, SphericalLinear | VoronoiLinear):
        return None
    prevention = prevention_of(head)
    assert isinstance(prevention, EqualNorms | Voronoi)
    return {
        "layer": next(name for name, layer in _GUARDED.items() if isinstance(head, layer)),
        "features": head.in_features,
        "classes": head.out_features,
        "radius": prevention.radius,
        "behind": None if prevention.behind is None else _record_of_norm(prevention.behind, model),
    }


def head_from_record(record: dict[str, Any], model: nn.Module) -> nn.Module:
    """Inverse of `record_of_head`, with fresh weights. Raises InputError for a layer unknown here."""
    layer = record.get("layer", SoftmaxHead.__name__)
    if layer == SoftmaxHead.__name__:
        return SoftmaxHead.from_settings(record)
    if layer == _UNKNOWN:
        raise InputError(
            f"this model's head has a transform that a configuration can't describe, {record['transform']}. "
            "Build the model, give it the head with replace_head, and load the weights with load_state_dict."
        )
    if layer not in _GUARDED:
        raise InputError(f"no output layer is called '{layer}': update argmaxable to load this model.")
    behind = None if record["behind"] is None else _norm_from_record(record["behind"], model)
    sizes = record["features"], record["classes"]
    return _GUARDED[layer](*sizes, radius=record["radius"], behind=behind)


def _record_of_norm(norm: Norm, model: nn.Module) -> dict[str, Any]:
    return {
        "module": _name_of(model, norm.module),
        "removes_mean": norm.removes_mean,
        "stores_gain_minus_one": norm.stores_gain_minus_one,
    }


def _norm_from_record(record: dict[str, Any], model: nn.Module) -> Norm:
    how = {name: value for name, value in record.items() if name != "module"}
    return Norm(model.get_submodule(record["module"]), **how)


def _name_of(model: nn.Module, part: nn.Module) -> str:
    for name, module in model.named_modules():
        if module is part:
            return str(name)
    raise InputError(
        f"the {type(part).__name__} that the head was built behind does not belong to this model."
    )
