# %% [markdown]
# # Repair and teach
#
# There are two ways to make a class predictable. `repair` changes the head as little as possible so that the class wins *somewhere*. `teach` fits a new row to examples so that the model *reads* it.
#
# Our toy head has 24 classes and 8 features. Class `c5` scores below the mean of all other classes everywhere.

# %%
import numpy as np

import argmaxable as am

generator = np.random.default_rng(0)
weight = generator.normal(size=(24, 8)).astype(np.float32)
bias = np.zeros(24, np.float32)
weight[5] = np.delete(weight, 5, axis=0).mean(axis=0)
bias[5] = -2
labels = [f"c{number}" for number in range(24)]
head = am.Head(weight, bias, labels, name="toy")
domain = am.Box(-100, 100)
[verdict.label for verdict in am.verify(head, domain).unargmaxable]

# %% [markdown]
# ## Repair

# %%
repaired = am.repair(head, domain, margin=0.001)
print("classes changed:", [labels[number] for number in repaired.chosen])
print("largest change of a bias:", repaired.largest, "  proven to be needed:", repaired.least)
am.verify(repaired.after, domain).unargmaxable

# %% [markdown]
# The answer is proven again for the new head. On a model file, `argmaxable repair model.onnx -o repaired.onnx` writes a copy in which only these numbers differ.
#
# But a class that wins by 0.001 in a far corner of the box is not a class that the model recognises.
#
# ## Teach
#
# For that we need examples: feature vectors at which `c5` should win. In a real model they come from printed text or labelled images. Here each class has a cloud of its own.

# %%
centres = 2 * weight.astype(float)
centres[5] = 3 * np.random.default_rng(8).normal(size=8)


def clouds(seed: int, count: int) -> am.Examples:
    """Examples of every class, then ordinary inputs."""
    generator = np.random.default_rng(seed)
    places = np.repeat(np.arange(24), count)
    features = centres[places] + 0.3 * generator.normal(size=(24 * count, 8))
    ordinary = 1.5 * generator.normal(size=(300, 8))
    rows = np.arange(24 * count)
    return am.Examples(
        np.concatenate([features, ordinary]).astype(np.float32),
        np.arange(24 * count + 301),
        ("cloud",) * (24 * count + 300),
        tuple(labels[place] for place in places),
        np.stack([rows, rows + 1], axis=1),
    )


taught = am.teach(head, domain, clouds(1, 12), [5], held_out=clouds(2, 12))

# %% [markdown]
# `held_out` examples took no part in the fit. They are what counts:

# %%
for reading in taught.held_out.readings:
    print(reading)
am.verify(taught.after, domain).unargmaxable

# %% [markdown]
# `teach` proves that every class that could be predicted still can, and measures what changed on held-out inputs. Everything else in the head stays as it was:

# %%
np.flatnonzero((taught.after.weight != head.weight).any(axis=1))

# %% [markdown]
# ## Which one?
#
# | | repair | teach |
# |---|---|---|
# | needs examples | no | yes |
# | promises | the class wins somewhere | the class wins at an example, and every other class that could win still can |
# | measures | nothing | held-out examples, before and after |
#
# ## Next
#
# * [Repair and prune](../repair.md), [teach and observe](../teach.md)
# * [The characters that PaddleOCR could never read](../stories/ocr.md): the same on a real model
