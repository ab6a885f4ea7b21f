# %% [markdown]
# # Sets of labels
#
# A multi-label model outputs every label whose score is above a threshold. With fewer features than labels, some *combinations* can never come out, although each label can. `sets` decides each combination you name.
#
# Our tagger has 60 tags and 6 features.

# %%
import json

import numpy as np

import argmaxable as am

generator = np.random.default_rng(7)
weight = generator.normal(size=(60, 6)).astype(np.float32)
bias = np.full(60, -1, np.float32)
tags = [f"tag{number}" for number in range(60)]
np.savez("tags.npz", W=weight, b=bias, labels=tags)

# %% [markdown]
# The training data has two kinds of combinations: those that the head itself can output, and pairs that people wrote.

# %%
with open("train.jsonl", "w", encoding="utf-8") as file:
    for scores in generator.normal(size=(200, 6)) @ weight.T * 2 - 1:
        file.write(json.dumps([tags[k] for k in np.flatnonzero(scores > 0)]) + "\n")
    for pair in generator.integers(60, size=(40, 2)):
        file.write(json.dumps(sorted({tags[k] for k in pair})) + "\n")

# %%
# !argmaxable sets tags.npz train.jsonl --output proofs --no-db

# %% [markdown]
# These examples can never be fitted, however long you train the layers below. The proofs can be re-checked:

# %%
# !argmaxable check proofs tags.npz

# %% [markdown]
# ## In Python

# %%
head = am.load_head("tags.npz")
found = am.sets(head, am.Box(-100, 100), [[3, 52], [0, 1], [4]])
for claim in found.claims:
    print(claim.labels, claim.status.value, claim.lower, claim.upper)

# %% [markdown]
# ## Which size of set is safe?
#
# "Every set of at most k tags can come out" is one statement about the head. Pairs fail here:

# %%
am.every_set(head, am.Box(-100, 100), active=2).status

# %% [markdown]
# More features help. `DFTLinear` is an output layer that is built so that every small set can come out:

# %%
from argmaxable.layers import DFTLinear

layer = DFTLinear(5, 60, active=2)
print("proven for sets of at most", layer.proven_active, "tags")

# %% [markdown]
# ## Next
#
# * [Sets of labels](../sets.md): thresholds, top k, files
# * [DFTLinear](../layers.md#sets-of-labels)
