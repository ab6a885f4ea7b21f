"""Output layers for PyTorch that break the softmax bottleneck, or that can't lose a class."""

from argmaxable.errors import InputError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise InputError(
        f"argmaxable.layers needs PyTorch: pip install 'argmaxable[torch]' ({error})."
    ) from error

from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.plif import PLIF
from argmaxable.layers.pointwise import Transform
from argmaxable.layers.transforms import Identity, MonotonicNetwork, SigSoftmax

__all__ = ["PLIF", "Identity", "MonotonicNetwork", "SigSoftmax", "SoftmaxHead", "Transform"]
