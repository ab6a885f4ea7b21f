"""The class of a Hugging Face model whose output layer was replaced.

Its class is derived from the model's own. In training, `forward` takes the loss from the head itself, and so
never holds all logits. The output layer is resized with the vocabulary, and saved with what it is made of.
Pickling names the model's own class: the derived one can't be imported. Nothing here imports transformers.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from argmaxable.core.errors import InputError
from argmaxable.layers.checkpoint_keys import from_stored, separated, stored_module, to_stored
from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.head_records import record_of_head
from argmaxable.layers.pending_logits import LogitsNeededError
from argmaxable.layers.resize import resize_bias_beside, resize_head

CONFIG_KEY = "softmax_head"
# In the record: where the head is, if its tensors are stored under names of their own.
MODULE_KEY = "module"


def give_head_class(model: Any, own_class: Any = None) -> None:
    """Make a Hugging Face model (of that class, by default its own) one whose head is ours."""
    if hasattr(model, "_get_resized_lm_head"):
        own_class = getattr(model, "_own_class", type(model)) if own_class is None else own_class
        model.__class__ = _class_of(own_class)


def note_head(model: Any, head: nn.Module) -> None:
    """Describe the head in the model's configuration, so that a saved model says how to build it."""
    record = record_of_head(head, model)
    if record is not None:
        setattr(model.config, CONFIG_KEY, {**record, MODULE_KEY: stored_module(model, head)})
    elif hasattr(model.config, CONFIG_KEY):  # of a head that was there before
        delattr(model.config, CONFIG_KEY)


class _WithHead:
    """What such a model does differently; a base in front of its own class."""

    _own_class: type[Any]
    _needs_logits = False  # found in the first training step

    def _get_resized_lm_head(
        self: Any, old: nn.Module, new_num_tokens: int | None = None, **options: Any
    ) -> nn.Module:
        if new_num_tokens is not None:
            resize_head(old, new_num_tokens)
            resize_bias_beside(self, old)
        return old

    def set_output_embeddings(self: Any, new: nn.Module) -> None:
        """BERT and its kind hold the layer's bias too, as a parameter; one computed from the rows is not."""
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
    """Names of tensors that loading ties to other tensors, by the current configuration."""
    names: Collection[str] = model.get_expanded_tied_weights_keys(all_submodels=True)
    return names


def _rebuilt(own_class: Any) -> Any:
    made: Any = _class_of(own_class)
    return made.__new__(made)


@functools.cache
def _class_of(own_class: Any) -> type[Any]:
    @functools.wraps(own_class.forward)
    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        if _wants_loss_only(self, own_class, arguments, options):
            output = _with_loss_of_head(self, own_class, arguments, options)
            if output is not None:
                return output
        return own_class.forward(self, *arguments, **options)

    names = {"forward": forward, "_own_class": own_class, "__module__": own_class.__module__}
    return type(own_class.__name__, (_WithHead, own_class), names)


def _wants_loss_only(
    model: Any, own_class: type[Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> bool:
    """Whether nobody will miss the logits: evaluation needs them, and so does a caller that takes a tuple.

    In a model that is compiled whole, torch.compile fuses what the model's own code does with its logits.
    """
    head = model.get_output_embeddings()
    if not (isinstance(head, SoftmaxHead) and head.fuses_loss and not model._needs_logits):
        return False
    if torch.compiler.is_compiling():
        return False
    call = inspect.signature(own_class.forward).bind_partial(model, *arguments, **options).arguments
    has_labels = call.get("labels", options.get("labels")) is not None
    is_tuple = options.get("return_dict") is False or not getattr(model.config, "return_dict", True)
    return has_labels and not is_tuple and model.training and torch.is_grad_enabled()


def _with_loss_of_head(
    model: Any, own_class: type[Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What the model returns, with the head's own loss and no logits; None where it needs its logits."""
    head: SoftmaxHead = model.get_output_embeddings()
    try:
        with head.logits_pending() as pending:
            output = own_class.forward(model, *arguments, **options)
    except LogitsNeededError as error:
        if error.changes_logits and not head.is_plain:
            raise InputError(
                f"{own_class.__name__} changes the logits of its output layer ({error.operation}). With this "
                "head that would give another distribution. Remove that from the model first."
            ) from None
        warnings.warn(
            f"{own_class.__name__} needs its logits in training ({error.operation}), so its loss is computed "
            "from all of them, in as much memory as before.",
            stacklevel=4,
        )
        model._needs_logits = True
        return None
    if not pending:
        if not head.is_plain:
            raise InputError(
                f"{own_class.__name__} does not call its output layer: a replaced one has no effect there."
            )
        return output
    if output.loss is None:
        return None
    output.logits = None
    return output
