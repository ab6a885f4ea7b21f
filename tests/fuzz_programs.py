"""Archives of TorchScript and torch.export, changed at random: programs, pickles and lists of tensors."""

from __future__ import annotations

import functools
import io
import random
import re
import warnings
import zipfile

Members = dict[str, bytes]


@functools.cache
def base(kind: str) -> tuple[Members, ...]:
    """The members of small archives that PyTorch itself writes."""
    import torch
    from torch import nn

    class Tiny(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.norm = nn.Linear(3, 4), nn.LayerNorm(4)
            self.fc = nn.Linear(4, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.norm(torch.relu(self.body(x)))
            if x.dim() > 2:
                x = x.flatten(1)
            return torch.softmax(self.fc(x), -1)

    model, x = Tiny().eval(), torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = []
        for _ in range(1 if kind == "torch.export" else 2):
            stream = io.BytesIO()
            if kind == "torch.export":
                torch.export.save(torch.export.export(model, (x,)), stream)
            else:
                torch.jit.save(torch.jit.script(model) if made else torch.jit.trace(model, x), stream)
            made.append(members_of(stream.getvalue()))
    return tuple(made)


def members_of(data: bytes) -> Members:
    """The members of an archive, without what no reader looks at."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [
            name for name in archive.namelist() if not name.endswith((".debug_pkl", "sample_inputs/model.pt"))
        ]
        return {name: archive.read(name) for name in names}


def torchscript(rng: random.Random) -> bytes:
    return _changed(rng, dict(rng.choice(base("torchscript"))))


def torch_export(rng: random.Random) -> bytes:
    return _changed(rng, dict(rng.choice(base("torch.export"))))


def _changed(rng: random.Random, members: Members) -> bytes:
    # Late: that module lists the makers of this one.
    from fuzz_files import disturbed, zipped

    for _ in range(rng.choice((0, 1, 1, 2))):
        name = rng.choice(
            [each for each in members if not re.search(r"/(data|constants|weights)/\w+$", each)]
        )
        text = name.endswith((".py", ".json"))
        members[name] = (
            _edited(rng, members[name]) if text and rng.random() < 0.8 else disturbed(rng, members[name])
        )
    if rng.random() < 0.1:
        name = rng.choice(list(members))
        members[name] = disturbed(rng, members[name])
    if rng.random() < 0.05:
        del members[rng.choice(list(members))]
    data = zipped(rng, list(members.items()), "/code/") if rng.random() < 0.4 else _plain(members)
    return disturbed(rng, data) if rng.random() < 0.1 else data


def _plain(members: Members) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _edited(rng: random.Random, data: bytes) -> bytes:
    """A text in which words were swapped, doubled, taken out or replaced, or numbers changed."""
    words = re.split(rb"([A-Za-z_]\w*|-?\d+|[^\w\s])", data)
    places = [place for place, word in enumerate(words) if word.strip()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        first, second = rng.choice(places), rng.choice(places)
        action = rng.randrange(6)
        if action == 0:
            words[first], words[second] = words[second], words[first]
        elif action == 1:
            words[first] = words[second]
        elif action == 2:
            words[first] = b""
        elif action == 3:
            words[first] *= rng.choice((2, 2, 3, 500))
        elif action == 4:
            words[first] = rng.choice(
                (b"-1", b"0", b"1", b"9223372036854775808", b"None", b"x", b"[", b"1e400")
            )
        else:
            lines = data.split(b"\n")
            at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines.insert(to, lines[at])
            return b"\n".join(lines)
    return b"".join(words)
