"""Hugging Face: loading saved models whose head was replaced, and a callback for its Trainer.

This is the only module that imports transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from argmaxable.core.errors import InputError
from argmaxable.layers.checkpoint_keys import clear_up, make_room, renamings
from argmaxable.layers.head_records import head_from_record
from argmaxable.layers.model_class import CONFIG_KEY, MODULE_KEY, give_head_class
from argmaxable.layers.monitor import HeadMonitor
from argmaxable.layers.replace import replace_head

# Options that say where files come from; the configuration comes from there too.
_WHERE = ("revision", "subfolder", "cache_dir", "token", "local_files_only", "force_download", "proxies")


def load_pretrained(directory: str | Path, model_class: type[Any] | None = None, **options: Any) -> nn.Module:
    """Load a model that was saved after `replace_head`, with its head and all weights.

    `model_class` is the model's own class, by default the one its configuration names; `options` go to its
    `from_pretrained`. Raises InputError when the configuration describes no such head.
    """
    transformers = _transformers()
    config = options.pop("config", None)
    if config is None:
        where = {name: options[name] for name in _WHERE if name in options}
        config = transformers.AutoConfig.from_pretrained(directory, **where)
    settings = getattr(config, CONFIG_KEY, None)
    if settings is None:
        raise InputError(f"{directory}: its configuration has no {CONFIG_KEY}; use transformers itself.")
    if model_class is None:
        model_class = getattr(transformers, (config.architectures or ["none"])[0], None)
    if model_class is None:
        raise InputError(f"{directory}: transformers has no {config.architectures}; pass model_class.")
    module = settings.get(MODULE_KEY)
    if module is not None:
        options["key_mapping"] = {**renamings(module), **(options.get("key_mapping") or {})}
    model: Any = _with_head(model_class).from_pretrained(directory, config=config, **options)
    give_head_class(model, model_class)
    if module is not None:
        clear_up(model, model.get_submodule(module))
    return model  # type: ignore[no-any-return]  # transformers builds the class at run time


def _with_head(model_class: Any) -> Any:
    """The model's class with a constructor that ends in `replace_head`; weights are loaded after that."""

    def construct(self: Any, config: Any, *arguments: Any, **options: Any) -> None:
        model_class.__init__(self, config, *arguments, **options)
        record = dict(getattr(config, CONFIG_KEY))
        module = record.pop(MODULE_KEY, None)
        head = head_from_record(record, self)
        replace_head(self, head, keep_weights=False)
        if module is not None:
            make_room(head)

    names = {"__init__": construct, "__module__": model_class.__module__}
    return type(model_class.__name__, (model_class,), names)


def trainer_callback(monitor: HeadMonitor) -> Any:
    """A `transformers.TrainerCallback` that measures with the monitor and adds its findings to the log."""
    transformers = _transformers()

    class MonitorCallback(transformers.TrainerCallback):  # type: ignore[name-defined,misc]
        """Measures after optimizer steps; its rows go where the Trainer's own go."""

        def __init__(self) -> None:
            self.waiting: dict[str, float] = {}

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.expect(state.global_step + 1)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            health = monitor(state.global_step)
            if health is not None:
                self.waiting = health.as_record()
                control.should_log = True
            return control

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if self.waiting and logs is not None:
                logs.update(self.waiting)
                if state.log_history:
                    state.log_history[-1].update(self.waiting)
                self.waiting = {}

    return MonitorCallback()


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise InputError(
            f"models of Hugging Face need transformers: pip install 'argmaxable[transformers]' ({error})."
        ) from error
    return transformers
