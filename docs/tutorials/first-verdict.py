# %% [markdown]
# # First verdict
#
# You verify a model file, read the answer, and re-check its proof. It takes five minutes.
#
# First we need a model. Ours is the output layer of a toy text recogniser: 120 characters, 16 features. Frequent characters have long rows. Rare ones were hardly trained, so their rows stayed near the mean. That is what real
# recognisers with large dictionaries look like.

# %%
import numpy as np

generator = np.random.default_rng(0)
labels = [chr(0x4E00 + number) for number in range(120)]
weight = generator.normal(size=(120, 16))
weight[80:] *= 0.3  # the rare characters
bias = np.where(np.arange(120) < 80, 0.0, -1.0)
np.savez("toy.npz", W=weight.astype(np.float32), b=bias.astype(np.float32), labels=labels)

# %% [markdown]
# ## Ask
#
# `verify` decides every class. `--domain box:10` says which inputs count: each feature between −10 and 10. `--output` writes the proofs. `--no-db` keeps this run out of your database.

# %%
# !argmaxable verify toy.npz --domain box:10 --output proofs --no-db

# %% [markdown]
# The first line is the answer. The second names the domain: the answer is about these inputs. Then come the characters that can never be predicted, farthest off first.
#
# ## Check
#
# You need not take its word. `check` reads the proofs and the model, and decides in exact arithmetic, without a solver:

# %%
# !argmaxable check proofs toy.npz

# %% [markdown]
# ## The same in Python

# %%
import argmaxable as am

head = am.load_head("toy.npz")
result = am.verify(head, am.Box(-10, 10))
result

# %% [markdown]
# A verdict carries its evidence. A class that can win has a *witness*, an input at which it wins. `explain` gives the input at which it is furthest ahead. Try it:

# %%
x = am.explain(head, am.Box(-10, 10), class_=labels[0]).input
scores = head.weight @ x + head.bias
labels[int(scores.argmax())], labels[0]

# %% [markdown]
# A class that never wins has a *certificate*: weights on other classes. Their mixture scores at least as high at every input of the box.

# %%
never = result.unargmaxable[0]
certificate = never.certificate
order = np.argsort(certificate.weights)[::-1][:5]
for place in order:
    print(
        f"{certificate.weights[place] / sum(certificate.weights):6.1%}  {labels[certificate.classes[place]]}"
    )

# %% [markdown]
# ## A false claim is refused
#
# Suppose somebody edits the bundle and claims that this class can win.

# %%
import json
from pathlib import Path

path = Path("proofs/verdicts.jsonl")
lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
print(lines[never.class_id])
lines[never.class_id] |= {"status": "argmaxable", "lower": 0.5}
path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n", encoding="utf-8")

# %%
# !argmaxable check proofs toy.npz

# %% [markdown]
# ## Next
#
# * [Why can this class never win?](why.md)
# * Verify a model of your own: `argmaxable verify model.onnx`. [Which formats are read](../formats.md).
