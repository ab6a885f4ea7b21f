"""Small PyTorch models, saved as TorchScript and by torch.export, and archives with some members changed."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

CLASSES, FEATURES = 7, 4


class ConvNet(nn.Module):
    """A convolution, a norm, ReLU, a pool over all positions, the head and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, FEATURES, 3, padding=1), nn.BatchNorm2d(FEATURES)
        self.pool, self.drop = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.1)
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        return torch.softmax(self.fc(self.drop(self.pool(x).flatten(1))), -1)


class Tied(nn.Module):
    """A language model, as it were: its head is the embeddings, behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(CLASSES, FEATURES)
        self.norm = nn.LayerNorm(FEATURES)
        self.lm_head = nn.Linear(FEATURES, CLASSES, bias=False)
        self.lm_head.weight = self.embeddings.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.lm_head(self.norm(self.embeddings(ids)))
        return logits


def image() -> torch.Tensor:
    return torch.linspace(-2, 2, 2 * 3 * 5 * 5).reshape(2, 3, 5, 5)


def traced(model: nn.Module, x: torch.Tensor, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(model.eval(), x), path)
    return path


def scripted(model: nn.Module, path: Path, *, freeze: bool = False) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(model.eval())
        torch.jit.save(torch.jit.freeze(script) if freeze else script, path)
    return path


def exported(model: nn.Module, x: torch.Tensor, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(model.eval(), (x,)), path)
    return path


def given_to(layer: nn.Module, model: nn.Module, x: torch.Tensor) -> NDArray[Any]:
    """What a layer is given when the model runs."""
    found: list[torch.Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
    with torch.no_grad():
        model(x)
    hook.remove()
    return found[0].numpy()


def edited(
    path: Path, changes: dict[str, Callable[[bytes], bytes]], more: dict[str, bytes] | None = None
) -> Path:
    """An archive in which some members were changed, and others added.

    They are told by the ends of their names, or by "class X(" in their code, whose files have mangled names.
    """
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for ending, change in changes.items():
        code = {name: data for name, data in members.items() if name.endswith(".py")}
        within = [
            name for name, data in code.items() if ending.startswith("class") and ending.encode() in data
        ]
        (name,) = within or [name for name in members if name.endswith(ending)]
        before = members[name]
        members[name] = change(before)
        assert members[name] != before
    root = next(iter(members)).partition("/")[0]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in (members | {f"{root}/{name}": data for name, data in (more or {}).items()}).items():
            archive.writestr(name, data)
    path.write_bytes(stream.getvalue())
    return path


def array(tensor: torch.Tensor) -> NDArray[Any]:
    return np.asarray(tensor.detach().numpy())
