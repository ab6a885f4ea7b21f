# %% [markdown]
# # Why can this class never win?
#
# `verify` says that a class can never be predicted. `explain` says why, how far off it is, and what would help.
#
# A compass with five classes and two features is small enough to draw. The class `here` lies between the other four.

# %%
import numpy as np

import argmaxable as am

names = ["north", "east", "south", "west", "here"]
weight = np.array([[0.1, 1.0], [0.9, 0.1], [-0.1, -0.8], [-1.0, 0.0], [0.2, 0.1]])
head = am.Head(weight, labels=names, name="compass")
box = am.Box(-1, 1)

# %%
# %matplotlib inline
from argmaxable.report import figures

figures.decision_regions(head)

# %% [markdown]
# `here` has no region in the picture: wherever you look, another class is on top.

# %%
explanation = am.explain(head, box, class_="here")
for share in explanation.mixture:
    print(f"{share.weight:6.1%}  {share.label}")

# %% [markdown]
# This mixture of other classes scores at least as high as `here` at every input. So at every input one of its members does. That is the whole reason.
#
# ## How far off is it?
#
# Without a bias all classes tie at the input 0, so the best `here` can do is a tie. How much longer would its row have to be?

# %%
print(explanation.growth)
print("best rank:", explanation.rank.lower, "to", explanation.rank.upper)

# %% [markdown]
# Its row must grow to about this multiple, seen from the mean row, to leave the hull. Until then second place is the best it can reach.

# %%
grown = weight.copy()
grown[4] = weight.mean(axis=0) + explanation.growth.upper * 1.1 * (weight[4] - weight.mean(axis=0))
free = am.Head(grown, labels=names, name="compass")
figures.decision_regions(free)

# %%
am.verify(free, box).unargmaxable

# %% [markdown]
# Nothing is left: every class can win now. A still longer row would push `east` into the hull instead.
#
# ## On the command line
#
# The same words, for any model file:

# %%
np.savez("compass.npz", W=weight, labels=names)

# %%
# !argmaxable explain compass.npz here north --domain box:1

# %% [markdown]
# ## Does it matter?
#
# Only if you need the class. Count how often it occurs in your data:

# %%
from pathlib import Path

Path("walks.txt").write_text(
    "\n".join(["north", "east", "here", "south", "here", "west"] * 50), encoding="utf-8"
)

# %%
# !argmaxable verify compass.npz --domain box:1 --data walks.txt --no-db

# %% [markdown]
# A third of these targets can never be right, whatever the rest of the network does.
#
# ## Next
#
# * [Repair and teach](repair-and-teach.md)
# * [What the lines of `explain` mean](../explain.md#what-the-lines-mean)
# * [The playground](../geometry.md#try-it)
