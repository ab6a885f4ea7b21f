# %% [markdown]
# # Output layers for PyTorch
#
# You train a small model, watch its output layer, and replace the layer by one in which every class can win.
#
# The task: 200 classes, 8 features, and class frequencies that fall as in text.

# %%
import torch
from torch import nn

import argmaxable as am
from argmaxable.layers import HeadMonitor, SoftmaxHead, SphericalLinear

torch.manual_seed(0)
torch.set_num_threads(1)
CLASSES, FEATURES = 200, 8
frequency = 1 / torch.arange(1, CLASSES + 1).float()
centres = torch.randn(CLASSES, 32)


def batch(size: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    targets = torch.multinomial(frequency, size, replacement=True)
    return centres[targets] + 0.5 * torch.randn(size, 32), targets


class Model(nn.Module):
    def __init__(self, head: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, FEATURES))
        self.norm, self.head = norm, head

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.body(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


def train(model: Model, monitor: HeadMonitor | None = None, steps: int = 300) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        x, targets = batch()
        loss = nn.functional.cross_entropy(model(x), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor is not None:
            monitor(step)
    return loss.item()


# %% [markdown]
# ## Watch a plain layer
#
# The monitor proves, every hundred steps, how many classes can never be predicted.

# %%
norm = nn.LayerNorm(FEATURES)
plain = Model(nn.Linear(FEATURES, CLASSES), norm)
monitor = HeadMonitor(plain.head, every=100, log=print)
print("loss:", train(plain, monitor))

# %% [markdown]
# ## A layer in which every class can win
#
# In `SphericalLinear` all rows have equal norm after the gain of the preceding LayerNorm. So every class with a distinct row wins when the features point in its direction.

# %%
norm = nn.LayerNorm(FEATURES)
spherical = Model(SphericalLinear(FEATURES, CLASSES, behind=norm), norm)
print("loss:", train(spherical))
print("every class can be predicted, proven:", spherical.head.guarantees(spherical.head.domain))

# %% [markdown]
# The price is a higher loss after these few steps: rows of equal norm can't favour the frequent classes by their length.
#
# `guarantees` verifies the stored numbers, because rounding could break what theory promises. `verify` agrees:

# %%
result = am.verify(am.Head.from_module(spherical.head), spherical.head.domain)
len(result.argmaxable), len(result.unargmaxable)

# %% [markdown]
# ## A head of higher rank
#
# `SoftmaxHead` has mixtures of softmaxes and learnable increasing functions. Its loss never holds tokens × classes.

# %%
head = SoftmaxHead.from_name("lms-plif", features=FEATURES, classes=CLASSES)
x, targets = batch()
loss = head.loss(plain.features(x).detach(), targets)
loss.backward()
print(loss.item(), head.log_prob(plain.features(x)).shape)

# %% [markdown]
# ## Next
#
# * [Output layers for PyTorch](../layers.md): all layers, `replace_head` for Hugging Face models, the Trainer callback
# * [The papers' experiments](../results.md): what such layers gain on text
