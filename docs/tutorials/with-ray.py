# %% [markdown]
# # Ray
#
# Most classes are settled by one matrix product. The hard ones each need a solve. [Ray](https://www.ray.io) shares these solves among processes, or among machines.
#
# Our head has 1,200 classes. A third of them lie in the middle and need a solve.

# %%
import numpy as np

import argmaxable as am

generator = np.random.default_rng(2)
weight = generator.normal(size=(1200, 48))
weight[:400] *= 0.3
bias = np.where(np.arange(1200) < 400, -2, 0)
head = am.Head(weight.astype(np.float32), bias.astype(np.float32), name="hard")

# %% [markdown]
# ## One process, for comparison

# %%
alone = am.verify(head, engine=am.Engine(workers=1))
print(
    len(alone.unargmaxable), "of", len(alone.verdicts), "can never be predicted;", alone.cost.solves, "solves"
)

# %% [markdown]
# ## Ray
#
# `ray="local"` starts a cluster for this run alone. It listens on 127.0.0.1 only, and it is gone afterwards. On a real cluster, pass its address.

# %%
shared = am.verify(head, engine=am.Engine(workers=2, ray="local"))
print(len(shared.unargmaxable), "of", len(shared.verdicts), "can never be predicted")

# %% [markdown]
# Workers may die or return wrong results: the calling process checks every result again. So the verdicts are the same.

# %%
assert (shared.status == alone.status).all()

# %% [markdown]
# On the command line this is `argmaxable verify MODEL --ray local --workers 2`.
#
# ## When does it pay?
#
# Only solves are shared. A cluster helps with one head that has many hard classes. For many models it is better to give each machine models of its own, with one PostgreSQL database: see
# [many processes, many machines](../scale.md#many-processes-many-machines). That page also says who else can reach a Ray cluster.
