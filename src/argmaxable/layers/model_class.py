"""The class of a Hugging Face model whose output layer was replaced.

Its class is derived from the model's own. `forward` takes the loss from the head itself in training, and so
never holds all logits. The output layer is resized with the vocabulary, and saved with what it is made of.
Pickling names the model's own class: the derived one can't be imported. Nothing here imports transformers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers.checkpoint_keys import from_stored, separated, stored_module, to_stored
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.head_records import record_of_head
from argmaxable.layers.resize import resize_bias_beside, resize_head

CONFIG_KEY = "softmax_head"
# In the record: where the head is, if its tensors are stored under names of their own.
MODULE_KEY = "module"
_IGNORED = -100


def give_head_class(model: Any, own_class: Any = None) -> None:
    """Make a Hugging Face model (of that class, by default its own) one whose head is ours."""
    if hasattr(model, "_get_resized_lm_head"):
        own_class = getattr(model, "_own_class", type(model)) if own_class is None else own_class
        model.__class__ = _class_of(own_class)


def note_head(model: Any, head: nn.Module) -> None:
    """Write into the model's configuration what its head is made of, so that a saved model says it itself."""
    record = record_of_head(head, model)
    if record is not None:
        setattr(model.config, CONFIG_KEY, {**record, MODULE_KEY: stored_module(model, head)})


class _WithHead:
    """What such a model does differently; stands before its own class."""

    _own_class: type[Any]

    def _get_resized_lm_head(
        self: Any, old: nn.Module, new_num_tokens: int | None = None, **options: Any
    ) -> nn.Module:
        if new_num_tokens is not None:
            resize_head(old, new_num_tokens)
            resize_bias_beside(self, old)
        return old

    def set_output_embeddings(self: Any, new: nn.Module) -> None:
        """BERT and its kind also hold the layer's bias, as a parameter. One that follows from the rows is
        none."""
        if isinstance(new.bias, nn.Parameter | None):
            self._own_class.set_output_embeddings(self, new)
        elif new is not self.get_output_embeddings():
            raise InputError(f"{type(new).__name__}: use replace_head, not set_output_embeddings.")

    def save_pretrained(self: Any, *arguments: Any, **options: Any) -> Any:
        note_head(self, self.get_output_embeddings())
        call = inspect.signature(self._own_class.save_pretrained).bind(self, *arguments, **options)
        given = call.arguments.get("state_dict")
        state = separated(self.state_dict() if given is None else given, _tied_names(self))
        module = _stored_module(self)
        call.arguments["state_dict"] = state if module is None else to_stored(module, state)
        return self._own_class.save_pretrained(*call.args, **call.kwargs)

    def load_state_dict(self: Any, state_dict: Mapping[str, Any], *arguments: Any, **options: Any) -> Any:
        """Also takes what `save_pretrained` wrote, as the Trainer does when it resumes."""
        module = _stored_module(self)
        own = state_dict if module is None else from_stored(module, state_dict)
        return self._own_class.load_state_dict(self, own, *arguments, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._own_class,), self.__dict__


def _stored_module(model: Any) -> str | None:
    record = getattr(model.config, CONFIG_KEY, None) or {}
    module: str | None = record.get(MODULE_KEY)
    return module


def _tied_names(model: Any) -> Collection[str]:
    """Names of tensors that loading takes from others, by the configuration as it is now."""
    names: Collection[str] = model.get_expanded_tied_weights_keys(all_submodels=True)
    return names


def _rebuilt(own_class: Any) -> Any:
    made: Any = _class_of(own_class)
    return made.__new__(made)


@functools.cache
def _class_of(own_class: Any) -> type[Any]:
    @functools.wraps(own_class.forward)
    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        task = _fused_task(self, own_class, arguments, options)
        if task is None:
            return own_class.forward(self, *arguments, **options)
        return _forward_with_loss(self, own_class, *task)

    names = {"forward": forward, "_own_class": own_class, "__module__": own_class.__module__}
    return type(own_class.__name__, (_WithHead, own_class), names)


def _fused_task(
    model: Any, own_class: type[Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], Tensor] | None:
    """The call without its labels, and the labels, where the head can take the loss; otherwise None.

    Outside training the caller may want the logits. A model with a router adds a term to its loss, and one
    that adds a bias to its logits has another distribution than its head.
    """
    signature = inspect.signature(own_class.forward)
    call = dict(signature.bind_partial(model, *arguments, **options).arguments)
    call.pop("self", None)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            call.update(call.pop(name, {}))
    labels = call.pop("labels", None)
    wants_all = call.get("return_dict") is False or not getattr(model.config, "return_dict", True)
    bias = getattr(model, "final_logits_bias", None)
    is_known = (
        isinstance(model.get_output_embeddings(), SoftmaxHead)
        and _shift_of(model) is not None
        and not getattr(model.config, "output_router_logits", False)
        and (bias is None or not bool(bias.any()))
    )
    if labels is None or wants_all or not is_known or not (model.training and torch.is_grad_enabled()):
        return None
    return call, labels


def _shift_of(model: Any) -> int | None:
    """By how many tokens labels are ahead of features; None if that is not known."""
    if getattr(model.config, "is_encoder_decoder", False) or "MaskedLM" in type(model).__name__:
        return 0
    return (
        1 if getattr(model, "loss_type", None) == "ForCausalLM" or "LMHead" in type(model).__name__ else None
    )


def _forward_with_loss(model: Any, own_class: type[Any], call: dict[str, Any], labels: Tensor) -> Any:
    head: SoftmaxHead = model.get_output_embeddings()
    ignored = call.pop("ignore_index", _IGNORED)
    items = call.pop("num_items_in_batch", None)
    shifted = call.pop("shift_labels", None)
    has_inputs = any(call.get(f"decoder_{name}") is not None for name in ("input_ids", "inputs_embeds"))
    if model.config.is_encoder_decoder and not has_inputs:
        call["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    with head.features_only() as seen:
        output = own_class.forward(model, **call)
    (features,) = seen
    targets = _targets(labels, _shift_of(model) or 0, ignored) if shifted is None else shifted
    targets = targets.to(features.device)
    if items is None:
        output.loss = head.loss(features, targets, ignore_index=ignored)
    else:
        output.loss = head.loss(features, targets, ignore_index=ignored, reduction="sum") / items
    output.logits = None
    return output


def _targets(labels: Tensor, shift: int, ignored: int) -> Tensor:
    """Labels beside the features that predict them; the last feature predicts nothing."""
    return nn.functional.pad(labels, (0, shift), value=ignored)[..., shift:] if shift else labels
