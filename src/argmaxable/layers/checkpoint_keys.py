"""The names that a replaced head's tensors have in the files of a Hugging Face model.

With another head a model has another distribution than its class alone would give it. So its files must not
load as if nothing had happened, not even where the head shares its weight with the embedding and has no
tensors of its own. Under the name of the old layer's weight they hold an empty tensor, which transformers
refuses for its shape; the head's own weight has another name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from argmaxable.layers.head import SoftmaxHead

_WEIGHT, _STORED, _EMPTY = "weight", "weight_for_argmaxable_layers", "no_plain_weight"


def stored_module(model: nn.Module, head: nn.Module) -> str | None:
    """The head's name in the model; None for a head that the model's own class computes alike."""
    if isinstance(head, SoftmaxHead) and head.is_plain:
        return None
    return next(str(name) for name, module in model.named_modules() if module is head)


def separated(state: Mapping[str, Tensor], tied: Collection[str]) -> dict[str, Tensor]:
    """A copy for each further name of a tensor, unless loading ties it again (`tied`).

    transformers writes such a tensor once. BART's and Marian's embeddings, shared after a resize of an untied
    model, would come back as random numbers.
    """
    own, seen = {}, set()
    for name, tensor in state.items():
        place = _place(tensor)
        own[name] = tensor.clone() if place in seen and name not in tied else tensor
        seen.add(place or name)
    return own


def to_stored(module: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A model's tensors under the names that its files have for them; `module` is the head's name."""
    weight, stored = f"{module}.{_WEIGHT}", f"{module}.{_STORED}"
    renamed = {stored if name == weight else name: tensor for name, tensor in state.items()}
    # Where two names share a tensor, transformers drops the one declared as tied, which this one is not.
    places = [_place(tensor) for name, tensor in renamed.items() if name != stored]
    if stored in renamed and _place(renamed[stored]) in {place for place in places if place}:
        del renamed[stored]
    return {**renamed, weight: torch.empty(0)}


def from_stored(module: str, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Inverse of `to_stored`. Tensors that were never stored so pass through."""
    weight = f"{module}.{_WEIGHT}"
    own = {name: each for name, each in stored.items() if name != weight or each.numel()}
    return {weight if name == f"{module}.{_STORED}" else name: each for name, each in own.items()}


def renamings(module: str) -> dict[str, str]:
    """What `from_pretrained` takes as key_mapping: from a file's names to those of the model."""
    name = re.escape(module)
    return {
        rf"^{name}\.{_WEIGHT}$": f"{module}.{_EMPTY}",
        rf"^{name}\.{_STORED}$": f"{module}.{_WEIGHT}",
    }


def make_room(head: nn.Module) -> None:
    """Give the head a place for the empty tensor of a file; `clear_up` removes it."""
    head.register_buffer(_EMPTY, torch.empty(0))


def clear_up(model: Any, head: nn.Module) -> None:
    """Once the weights are loaded: neither the empty tensor nor the renamings stay with the model."""
    del head._buffers[_EMPTY]
    # save_pretrained would undo the renamings of loading; to_stored does that, for every model.
    done = getattr(model, "_weight_conversions", None) or ()
    names = (_STORED, _EMPTY)
    model._weight_conversions = [each for each in done if not any(name in repr(each) for name in names)]


def _place(tensor: Tensor) -> Hashable | None:
    """Equal for two names of one tensor; None where that can't be told (empty, or on no device)."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return (local.data_ptr(), local.shape) if local.data_ptr() else None
