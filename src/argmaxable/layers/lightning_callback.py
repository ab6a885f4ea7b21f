"""Lightning: a callback that measures with the monitor and logs what it finds.

This is the only module that imports lightning.
"""

from __future__ import annotations

from typing import Any

from argmaxable.core.errors import InputError
from argmaxable.layers.monitor import HeadMonitor


def lightning_callback(monitor: HeadMonitor) -> Any:
    """A `lightning.pytorch.Callback` for `Trainer(callbacks=[...])`. Its steps are optimizer steps."""
    try:
        import lightning.pytorch as pl
    except ImportError as error:
        raise InputError(f"the callback needs Lightning: pip install lightning ({error}).") from error

    class MonitorCallback(pl.Callback):
        """Measures after optimizer steps; what it finds goes where the module's own log goes."""

        def __init__(self) -> None:
            self.step = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.step = trainer.global_step
            monitor.expect(self.step + 1)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *rest: Any) -> None:
            if trainer.global_step == self.step:  # a batch of several that make one step
                return
            self.step = trainer.global_step
            health = monitor(self.step)
            if health is not None:
                pl_module.log_dict(health.as_record())

    return MonitorCallback()
