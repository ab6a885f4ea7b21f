"""Output layers for PyTorch that break the softmax bottleneck, or in which every class can be predicted."""

from argmaxable.core.errors import InputError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise InputError(
        f"argmaxable.layers needs PyTorch: pip install 'argmaxable[torch]' ({error})."
    ) from error

from argmaxable.layers.head import SoftmaxHead
from argmaxable.layers.huggingface import load_pretrained, trainer_callback
from argmaxable.layers.lightning_callback import lightning_callback
from argmaxable.layers.monitor import HeadMonitor, Health, effective_rank, gradient_lost
from argmaxable.layers.multilabel import DFTLinear
from argmaxable.layers.plif import PLIF
from argmaxable.layers.pointwise import Kernel, Transform
from argmaxable.layers.prevention import (
    SphericalLinear,
    VoronoiLinear,
    make_spherical,
    make_voronoi,
    prevention_of,
)
from argmaxable.layers.replace import replace_head
from argmaxable.layers.softcap import SoftCap
from argmaxable.layers.transforms import Identity, MonotonicNetwork, SigSoftmax
from argmaxable.layers.vocabulary import VocabularyShard

__all__ = [
    "PLIF",
    "DFTLinear",
    "HeadMonitor",
    "Health",
    "Identity",
    "Kernel",
    "MonotonicNetwork",
    "SigSoftmax",
    "SoftCap",
    "SoftmaxHead",
    "SphericalLinear",
    "Transform",
    "VocabularyShard",
    "VoronoiLinear",
    "effective_rank",
    "gradient_lost",
    "lightning_callback",
    "load_pretrained",
    "make_spherical",
    "make_voronoi",
    "prevention_of",
    "replace_head",
    "trainer_callback",
]
