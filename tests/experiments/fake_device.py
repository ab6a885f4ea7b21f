"""A device that is not the processor, on a machine that has none.

`FakeDevice` marks tensors as being "there": the parameters it is given, whatever is computed from them, and
whatever is made with an explicit `device=`. An operation on tensors from both sides fails, as on a GPU, and
so does NumPy on a tensor that was not brought back with `.cpu()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode


class FakeDevice(TorchFunctionMode):
    def __init__(self, there: Iterable[Tensor]) -> None:
        super().__init__()
        self.there = list(there)  # tensors themselves: ids of those that are gone would be used again

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        marked = [tensor for tensor in given if self.is_there(tensor)]
        name = getattr(func, "__name__", "")
        if marked and len(marked) < len(given) and any(tensor.dim() for tensor in given):
            raise RuntimeError(f"{name}: tensors on two devices")
        if name == "numpy" and marked:
            raise TypeError("can't convert a tensor of this device to numpy")
        result = func(*args, **kwargs)
        if name == "cpu":
            return result.clone()  # here it is the tensor itself, which stays where it is
        if marked or kwargs.get("device") is not None:
            self.there += _tensors(result)
        return result

    def is_there(self, tensor: Tensor) -> bool:
        return any(tensor is each for each in self.there)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)
