"""Put another output layer into a model: Hugging Face's, or any other `nn.Module`.

Found by what the model itself calls its output layer, or by its shape; ties to the embedding stay ties.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.logit_settings import take_over_logit_settings
from argmaxable.layers.model_class import give_head_class, note_head


def replace_head(
    model: nn.Module, head: nn.Module, *, name: str | None = None, keep_weights: bool = True
) -> nn.Module:
    """Put `head` (a SoftmaxHead, SphericalLinear, VoronoiLinear, nn.Linear, or DFTLinear for a multi-label
    model) where the model's output layer is.

    `name` says where that is (`lm_head`) when the model doesn't. The head moves to the old layer's device and
    dtype and, with `keep_weights`, starts from its weights; where those are tied to an embedding, so is the
    head. A SoftmaxHead takes over what the model does to its logits (Gemma's soft cap, Cohere's and Granite's
    scale). Returns the old layer. Raises InputError when the output layer is ambiguous or the sizes differ.
    """
    old = _output_layer(model, head, name)
    weight = old.weight
    assert isinstance(weight, Tensor)
    _require_sizes(head, weight.shape[1], weight.shape[0])
    head.to(device=weight.device, dtype=weight.dtype)
    for part in ("weight", "bias"):
        if _is_shared(model, old, part):
            _share(head, old, part)
        elif keep_weights and getattr(old, part, None) is not None:
            _copy(head, old, part)
    take_over_logit_settings(model, old, head)
    _install(model, old, head)
    if hasattr(model, "config"):
        give_head_class(model)
        note_head(model, head)
    return old


def _output_layer(model: nn.Module, head: nn.Module, name: str | None) -> nn.Module:
    if name is not None:
        modules = dict(model.named_modules())
        if name not in modules:
            raise InputError(f"{type(model).__name__} has no module '{name}'. {_candidates(model)}")
        found: nn.Module | None = modules[name]
    else:
        found = _declared(model) or _only_one_of_that_shape(model, head)
    weight = getattr(found, "weight", None)
    if found is None or not isinstance(weight, Tensor) or weight.ndim != 2:
        raise InputError(f"{type(found).__name__} has no matrix of weights. {_candidates(model)}")
    return found


def _declared(model: nn.Module) -> nn.Module | None:
    """What a Hugging Face model itself calls its output layer."""
    getter = getattr(model, "get_output_embeddings", None)
    found = None if getter is None else getter()
    return found if isinstance(found, nn.Module) else None


def _only_one_of_that_shape(model: nn.Module, head: nn.Module) -> nn.Module:
    shape = _sizes(head)
    same = [layer for _, layer in _linears(model) if (layer.in_features, layer.out_features) == shape]
    if len(same) != 1:
        raise InputError(
            f"{len(same)} linear layers of {type(model).__name__} have {shape[0]} features and {shape[1]} "
            f"classes; pass name=. {_candidates(model)}"
        )
    return same[0]


def _linears(model: nn.Module) -> list[tuple[str, nn.Linear]]:
    return [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]


def _candidates(model: nn.Module) -> str:
    shown = [f"{name} ({each.in_features} → {each.out_features})" for name, each in _linears(model)[-3:]]
    return f"Its last linear layers: {', '.join(shown) or 'none'}."


def _sizes(head: nn.Module) -> tuple[int, int]:
    """Features and classes of the new head."""
    if isinstance(head, SoftmaxHead):
        return head.features, head.classes
    if isinstance(head, nn.Linear):
        return head.in_features, head.out_features
    raise InputError(f"{type(head).__name__} is not a head: pass a SoftmaxHead or an nn.Linear.")


def _require_sizes(head: nn.Module, features: int, classes: int) -> None:
    if _sizes(head) != (features, classes):
        found = " features and ".join(str(size) for size in _sizes(head))
        raise InputError(
            f"the model's output layer has {features} features and {classes} classes, the new head {found} "
            "classes."
        )


def _is_shared(model: nn.Module, old: nn.Module, part: str) -> bool:
    """Whether another module of the model holds the same weight or bias."""
    mine = old._parameters.get(part)
    others = (module for module in model.modules() if module is not old)
    held = (each for module in others for each in module._parameters.values())
    return mine is not None and any(each is mine for each in held)


def _share(head: nn.Module, old: nn.Module, part: str) -> None:
    mine, theirs = head._parameters.get(part), old._parameters[part]
    name = type(head).__name__.removeprefix("Parametrized")
    if mine is None or theirs is None or mine.shape != theirs.shape:
        raise InputError(
            f"the model's output layer shares its {part} with another module (tied embeddings), which this "
            f"{name} can't. Give the layer its own first: layer.{part} = "
            f"nn.Parameter(layer.{part}.detach().clone()), with tie_word_embeddings = False in a Hugging "
            "Face configuration."
        )
    setattr(head, part, theirs)


@torch.no_grad()
def _copy(head: nn.Module, old: nn.Module, part: str) -> None:
    mine, theirs = getattr(head, part), getattr(old, part)
    if part in head._parameters and mine is not None:
        mine.copy_(theirs)
    elif part == "weight":  # rows of a special kind: an assignment goes to the free rows behind them
        setattr(head, part, theirs.detach().clone())
    elif isinstance(head, SoftmaxHead):
        raise InputError(
            "the model's output layer has a bias and the new head none. Build the head with bias=True, or "
            "pass keep_weights=False."
        )


def _install(model: nn.Module, old: nn.Module, head: nn.Module) -> None:
    for name in [name for name, module in model.named_modules(remove_duplicate=False) if module is old]:
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, head)
