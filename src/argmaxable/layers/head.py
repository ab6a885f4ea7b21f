"""SoftmaxHead: one output layer for all of the papers' heads.

    P(c | h) = Σ_k π_k(h) softmax(f(W g_k(h) + b))_c

K mixture components times an increasing function f of the logits. With K = 1 g is h itself, otherwise
g_k = tanh(U_k h) and π = softmax(V h). Everything stays in log space.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, final

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from argmaxable.core.errors import InputError
from argmaxable.layers.aims import Aims
from argmaxable.layers.loss import Inputs, LossTask, chunked_loss, plain_loss
from argmaxable.layers.loss_arguments import is_class, kept_tokens, require_loss_arguments, require_shard
from argmaxable.layers.pending_logits import PendingLogits
from argmaxable.layers.plif import PLIF
from argmaxable.layers.pointwise import FAR, Transform, computing_dtype, is_traced
from argmaxable.layers.products import half_asked_for
from argmaxable.layers.transform_records import from_record, has_record, record_of
from argmaxable.layers.transforms import Identity, MonotonicNetwork, SigSoftmax
from argmaxable.layers.vocabulary import WHOLE, Vocabulary, VocabularyShard

# Logits held at a time where the caller needs one row of them after the other: 64 MB in float32.
_CHUNK_LOGITS = 1 << 24

# Each row: the papers' name of a setting, its number of components, and its transform. Sizes are the papers'.
NAMED: dict[str, tuple[int, Callable[[], Transform]]] = {
    "linear": (1, Identity),
    "sigsoftmax": (1, SigSoftmax),
    "lms": (1, MonotonicNetwork),
    "lms-plif": (1, lambda: PLIF(100_000)),
    "mos": (15, Identity),
    "mos-plif": (15, lambda: PLIF(1_000_000)),
}


@final
class SoftmaxHead(nn.Module):
    """From features (…, features) to distributions over classes; a `torch.nn.Linear` with K = 1 and f =
    identity.

    Under autocast, and with parameters in half precision, it computes in float32.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        mixtures: int = 1,
        transform: Transform | None = None,
        bias: bool = True,
        tie_to: nn.Module | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """`tie_to` is a module (an `nn.Embedding`) whose weight becomes this head's; with mixtures > 1 its
        rows may have another length than `features`. Raises InputError."""
        super().__init__()
        for name, size in (("features", features), ("classes", classes), ("mixtures", mixtures)):
            if size < 1:
                raise InputError(f"a head needs {name} of at least 1, found {size}.")
        if not isinstance(transform, Transform | None):
            raise InputError(
                f"a transform is an object like PLIF(1000), found {transform!r}; from_name takes names."
            )
        self.features, self.mixtures = features, mixtures
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(classes, features, **place))
        self.bias = nn.Parameter(torch.zeros(classes, **place)) if bias else None
        self._reset_weight()
        if tie_to is not None:
            self.weight = _shared_weight(tie_to, classes, features if mixtures == 1 else None)
        width = self.weight.shape[1]
        self.latent = nn.Linear(features, mixtures * width, **place) if mixtures > 1 else None
        self.prior = nn.Linear(features, mixtures, bias=False, **place) if mixtures > 1 else None
        self.transform = Identity() if transform is None else transform.to(device=device, dtype=dtype)
        # Called at each loss with the features (n × features) and targets (n) that count; see monitor.py.
        self.loss_hooks: list[Callable[[Tensor, Tensor], None]] = []
        # Whether a Hugging Face model in training takes its loss from `loss` and never computes all logits.
        self.fuses_loss = True
        self._pending: list[Tensor] | None = None

    def reset_parameters(self) -> None:
        """Initialise again, as the constructor does, including a weight that is shared with an embedding."""
        self._reset_weight()
        for part in (self.latent, self.prior):
            if part is not None:
                part.reset_parameters()
        self.transform.reset_parameters()

    def _reset_weight(self) -> None:
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # as nn.Linear starts
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def classes(self) -> int:
        """The number of rows, which an embedding that the head is tied to may change."""
        return self.weight.shape[0]

    @property
    def is_plain(self) -> bool:
        """Whether this is an nn.Linear and a softmax, nothing else."""
        return self.mixtures == 1 and isinstance(self.transform, Identity)

    @classmethod
    def from_name(cls, name: str, features: int, classes: int, **settings: Any) -> Self:
        """A setting by the papers' name: linear, sigsoftmax, lms, lms-plif, mos or mos-plif.

        `settings` go to the constructor; `mixtures` and `transform` given there replace the papers' sizes.
        """
        if name not in NAMED:
            raise InputError(f"no head is called '{name}': choose one of {', '.join(NAMED)}.")
        mixtures, transform = NAMED[name]
        if "transform" not in settings:
            settings["transform"] = transform()
        return cls(features, classes, **{"mixtures": mixtures, **settings})

    @property
    def has_settings(self) -> bool:
        """Whether plain values describe the head. They don't if its transform is your own class."""
        return has_record(self.transform)

    def settings(self) -> dict[str, Any]:
        """What `from_settings` builds such a head from (without its weights), as plain JSON values."""
        return {
            "features": self.features,
            "classes": self.classes,
            "mixtures": self.mixtures,
            "bias": self.bias is not None,
            "transform": record_of(self.transform),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], **place: Any) -> Self:
        """Inverse of `settings`, with fresh weights; `place` may give tie_to, device and dtype."""
        arguments = dict(settings)
        transform = from_record(arguments.pop("transform"))
        return cls(**arguments, transform=transform, **place)

    def extra_repr(self) -> str:
        return (
            f"features={self.features}, classes={self.classes}, mixtures={self.mixtures}, "
            f"bias={self.bias is not None}"
        )

    def forward(self, h: Tensor) -> Tensor:
        """Logits (…, classes): f(Wh + b) as it is with one component, log-probabilities with several.

        Both give the same distribution to whatever applies a softmax.
        """
        self._require_features(h)
        if self._pending is not None:
            self._pending.append(PendingLogits.of(h, self.classes, self.loss))
            return self._pending[-1]
        if self.mixtures == 1:
            logits: Tensor = self.transform(self._linear_logits(h))
            return logits
        return self.log_prob(h)

    @contextmanager
    def logits_pending(self) -> Iterator[list[Tensor]]:
        """Inside, `forward` computes no logits: its result stands for them (see pending_logits.py), and is
        added to the list."""
        self._pending = []
        try:
            yield self._pending
        finally:
            self._pending = None

    def log_prob(self, h: Tensor) -> Tensor:
        """Log-probabilities (…, classes)."""
        self._require_features(h)
        if self.mixtures == 1:
            return self.forward(h).log_softmax(-1)
        if is_traced():
            return self._mixture_log_prob(h)
        # A chunk's tokens × K × classes are computed again in backward instead of being kept.
        parts = [checkpoint(self._mixture_log_prob, part, use_reentrant=False) for part in self._chunks(h)]
        return torch.cat(parts).view(*h.shape[:-1], self.classes)

    def component_logits(self, h: Tensor) -> Tensor:
        """W g_k(h) + b of every component, before the transform (…, mixtures, classes)."""
        self._require_features(h)
        self._require_own_layers()
        if self.latent is None:
            return self._linear_logits(h)[..., None, :]
        with torch.autocast(h.device.type, enabled=False):
            latent = _linear(self.latent, h, computing_dtype(h, self.weight))
        return self._linear_logits(torch.tanh(latent).unflatten(-1, (self.mixtures, -1)))

    def _linear_logits(self, components: Tensor) -> Tensor:
        with torch.autocast(components.device.type, enabled=False):
            dtype = computing_dtype(components, self.weight)
            bias = self._finite_bias()
            bias = None if bias is None else bias.to(dtype)
            return nn.functional.linear(components.to(dtype), self.weight.to(dtype), bias)

    def _finite_bias(self) -> Tensor | None:
        """The bias; an entry of −∞, which rules a class out, as a number (except in a plain linear head)."""
        return self.bias if self.bias is None or self.is_plain else self.bias.clamp(min=-FAR)

    def combine(self, h: Tensor, logits: Tensor) -> Tensor:
        """What `forward` makes of component logits (…, mixtures, classes)."""
        values: Tensor = self.transform(logits)
        if self.prior is None:
            return values[..., 0, :]
        with torch.autocast(h.device.type, enabled=False):
            log_prior = _linear(self.prior, h, logits.dtype).log_softmax(-1)
            return (values.log_softmax(-1) + log_prior[..., None]).logsumexp(-2)

    def _mixture_log_prob(self, h: Tensor) -> Tensor:
        return self.combine(h, self.component_logits(h))

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # its kernels can't be traced
    def loss(
        self,
        h: Tensor,
        targets: Tensor,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        class_weights: Tensor | None = None,
        z_loss: float = 0.0,
        reduction: str = "mean",
        shard: VocabularyShard | None = None,
    ) -> Tensor:
        """Cross-entropy, as `torch.nn.functional.cross_entropy` of the logits, in little memory.

        h is (…, features), targets (…) of integers or (…, classes) of probabilities, `class_weights` has one
        entry for each class. "mean" is over the tokens not ignored (weighted by their classes' weights), and
        0 when there are none; "none" returns one loss a token. `z_loss` · (log Σ exp of the logits)² is added
        to each token's loss, for heads with one component. Raises InputError on targets that are not classes.
        With torch.export and torch.func it holds all logits at once.

        With `shard`, this head holds a share of the classes, and every process of the group calls `loss` with
        the same features and targets. Each gets the whole loss, and the gradients of its own rows.
        """
        self._require_features(h)
        classes = self.classes if shard is None else shard.classes
        require_loss_arguments(
            classes, self.mixtures, h.shape[:-1], targets, class_weights, label_smoothing, z_loss, reduction
        )
        hidden = h.reshape(-1, self.features)
        flat = targets.reshape(-1).long() if is_class(targets) else targets.reshape(-1, classes)
        aims = Aims(flat, class_weights, label_smoothing, z_loss)
        if shard is not None:
            require_shard(shard, self.classes, aims)
            loss = self._chunked_loss(hidden, aims, ignore_index, reduction, shard)
        elif is_traced(compiled=False):
            loss = self._traced_loss(hidden, aims, ignore_index, reduction)
        else:
            loss = self._chunked_loss(hidden, aims, ignore_index, reduction, WHOLE)
        return loss.view(h.shape[:-1]) if reduction == "none" else loss

    def _chunked_loss(
        self, hidden: Tensor, aims: Aims, ignore_index: int, reduction: str, vocabulary: Vocabulary
    ) -> Tensor:
        classes = vocabulary.classes if isinstance(vocabulary, VocabularyShard) else self.classes
        tokens = None if aims.targets.ndim == 2 else kept_tokens(aims.targets, ignore_index, classes)
        kept = aims if tokens is None else aims.part(tokens)
        # A hook that sees a share of the rows would see another distribution.
        for hook in self.loss_hooks if vocabulary is WHOLE else ():
            hook(hidden if tokens is None else hidden[tokens], kept.targets)
        half = half_asked_for(hidden, self.weight)
        task = LossTask(
            self.transform, self.mixtures, kept, tokens, reduction, torch.is_grad_enabled(), half, vocabulary
        )
        return chunked_loss(task, self._inputs(hidden))

    def _traced_loss(self, hidden: Tensor, aims: Aims, ignore_index: int, reduction: str) -> Tensor:
        """For tracing, which may not depend on values: ignored tokens are computed too, and count 0."""
        if aims.targets.ndim == 2:
            counts = aims.targets.new_ones(len(aims.targets))
        else:
            counts = aims.targets != ignore_index
            aims = replace(aims, targets=torch.where(counts, aims.targets, 0))
        task = LossTask(self.transform, self.mixtures, aims, None, "none", True)
        # Class 0, which stands in for ignored targets, may have a bias of −∞: its loss times 0 would be NaN.
        losses = torch.where(counts.bool(), plain_loss(task, self._inputs(hidden)), 0)
        if reduction != "mean":
            return losses if reduction == "none" else losses.sum()
        weights = aims.token_weights(losses.dtype)
        if weights is None:
            return losses.sum() / counts.sum().clamp(min=1)
        # Without tokens the sum is 0, and so is the loss.
        return losses.sum() / torch.where(counts.any(), (weights * counts).sum(), 1)

    def _inputs(self, hidden: Tensor) -> Inputs:
        self._require_own_layers()
        if self.latent is None or self.prior is None:
            return Inputs(hidden, self.weight, self._finite_bias(), None, None, None)
        return Inputs(
            hidden, self.weight, self._finite_bias(), self.latent.weight, self.latent.bias, self.prior.weight
        )

    @torch.no_grad()
    def argmax(self, h: Tensor) -> Tensor:
        """The most probable class of each feature vector (…).

        With one component, the argmax of the linear logits: the transform increases, so nothing else matters.
        """
        return self._each(h, lambda part: self._scores(part).argmax(-1))

    @torch.no_grad()
    def top_k(self, h: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities and ids (…, k) of the k most probable classes, best first."""
        if not 1 <= k <= self.classes:
            raise InputError(f"k must be between 1 and the number of classes, {self.classes}; found {k}.")
        parts = [self._best(part, k) for part in self._chunks(h)]
        shape = (*h.shape[:-1], k)
        return torch.cat([part[0] for part in parts]).view(shape), torch.cat(
            [part[1] for part in parts]
        ).view(shape)

    def _best(self, h: Tensor, k: int) -> tuple[Tensor, Tensor]:
        ids = self._scores(h).topk(k).indices
        return self.log_prob(h).gather(-1, ids), ids

    @torch.no_grad()
    def sample(
        self,
        h: Tensor,
        *,
        samples: int | None = None,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Classes drawn from the distribution: (…), or (…, samples) when a number of samples is given."""
        if samples is not None and samples < 1:
            raise InputError(f"the number of samples must be at least 1, found {samples}.")
        if not temperature > 0:
            raise InputError(
                f"the temperature must be above 0, found {temperature}; use argmax instead of 0."
            )

        def draw(part: Tensor) -> Tensor:
            probabilities = (self.log_prob(part) / temperature).softmax(-1)
            return torch.multinomial(probabilities, samples or 1, replacement=True, generator=generator)

        drawn = torch.cat([draw(part) for part in self._chunks(h)])
        return drawn.view((*h.shape[:-1], *(() if samples is None else (samples,))))

    def _scores(self, h: Tensor) -> Tensor:
        """The scores that rank the classes."""
        return self._linear_logits(h) if self.mixtures == 1 else self.log_prob(h)

    def _each(self, h: Tensor, work: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.cat([work(part) for part in self._chunks(h)]).view(h.shape[:-1])

    def _chunks(self, h: Tensor) -> Iterator[Tensor]:
        """Chunks of tokens, small enough to hold all their logits."""
        self._require_features(h)
        return iter(
            h.reshape(-1, self.features).split(max(1, _CHUNK_LOGITS // (self.classes * self.mixtures)))
        )

    def _require_own_layers(self) -> None:
        """Only the weights of `latent` and `prior` are used: what wraps them would be passed over."""
        for name, layer in (("latent", self.latent), ("prior", self.prior)):
            if not isinstance(layer, nn.Linear | None):
                raise InputError(
                    f"the head's `{name}` was replaced by {type(layer).__module__}.{type(layer).__name__}, "
                    "whose changes the head would not see. Leave it out (in PEFT: exclude_modules)."
                )

    def _require_features(self, h: Tensor) -> None:
        if h.ndim == 0 or h.shape[-1] != self.features:
            raise InputError(f"expected vectors of {self.features} features, found shape {tuple(h.shape)}.")


def _linear(layer: nn.Linear, x: Tensor, dtype: torch.dtype) -> Tensor:
    bias = None if layer.bias is None else layer.bias.to(dtype)
    return nn.functional.linear(x.to(dtype), layer.weight.to(dtype), bias)


def _shared_weight(module: nn.Module, classes: int, width: int | None) -> nn.Parameter:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, nn.Parameter):
        raise InputError(f"{type(module).__name__} has no weight to tie the head to; pass an nn.Embedding.")
    if weight.ndim != 2 or len(weight) != classes or width not in (None, weight.shape[1]):
        expected = f"{classes} × {'any number' if width is None else width}"
        raise InputError(f"can't tie to a weight of shape {tuple(weight.shape)}; expected {expected}.")
    return weight
