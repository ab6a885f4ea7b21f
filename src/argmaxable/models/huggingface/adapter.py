"""Heads that a PEFT adapter stores whole: the modules that its configuration lists as modules_to_save.

An adapter changes the layers of a model that is not here. Those it only adds to (LoRA and others) can't be
read without that model. Those it replaces are in its own file, under names with marks of PEFT around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.source import TensorSource

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_PREFIX = "base_model.model."
# What PEFT has in front of a saved module's own names: the adapter's, mostly "default", or nothing since 0.5.
_SAVED = re.compile(r"\.modules_to_save(\.\w+(?=\.\w+$))?")
_NONE = (
    f"is an adapter ({CONFIG}), not a whole model, and stores none of its modules (modules_to_save). Merge "
    "it into its base model (in peft: merge_and_unload) and save that."
)
NOTE = "a PEFT adapter, whose own output layer this is; what feeds it is in the model that it was trained on"


def require_saved_modules(config: Mapping[str, Any]) -> list[str]:
    """The names of the modules that an adapter stores whole; raises LoadError where it stores none."""
    modules = config.get("modules_to_save")
    if not isinstance(modules, list) or not modules:
        raise LoadError(_NONE)
    return [each for each in modules if isinstance(each, str)]


def saved_modules(source: TensorSource, modules: list[str]) -> TensorSource:
    """The tensors of modules that an adapter stores whole, by their names in the model; raises LoadError."""
    own = {name: _plain(name) for name in source.tensors if _is_saved(name, modules)}
    if not own:
        raise LoadError(_NONE)
    repeated = twice(own.values())
    if repeated is not None:
        raise ambiguous(f"two tensors of the adapter are {repeated!r} of the model")
    stored = {plain: name for name, plain in own.items()}
    infos = {plain: replace(source.tensors[name], name=plain) for plain, name in stored.items()}
    return TensorSource(source.name, infos, lambda plain: source.read_array(stored[plain]))


def is_adapter(path: Path) -> bool:
    """Whether a file is the weights of an adapter, with its configuration beside it."""
    return path.name in WEIGHTS and (path.parent / CONFIG).is_file()


def _plain(name: str) -> str:
    return _SAVED.sub("", name.removeprefix(_PREFIX))


def _is_saved(name: str, modules: list[str]) -> bool:
    """Whether a tensor belongs to one of the modules, and not to what is only added to a layer."""
    parts = _plain(name).split(".")
    return name.startswith(_PREFIX) and any(each in parts for each in modules) and "lora_" not in name
