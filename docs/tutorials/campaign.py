# %% [markdown]
# # A campaign with a database
#
# You verify several models with one command, store the runs, and compare them.
#
# Here are three models: a head, the same head after rounding to int8 steps, and one with more features.

# %%
from pathlib import Path

import numpy as np

generator = np.random.default_rng(1)
labels = [f"word{number}" for number in range(400)]
weight = generator.normal(size=(400, 12)).astype(np.float32)
weight[250:] *= 0.4
step = np.abs(weight).max() / 127
np.savez("base.npz", W=weight, labels=labels)
np.savez("rounded.npz", W=np.round(weight / step).astype(np.float32) * step, labels=labels)
np.savez("wide.npz", W=generator.normal(size=(400, 24)).astype(np.float32), labels=labels)

# %% [markdown]
# ## The file

# %%
Path("survey.toml").write_text(
    """\
title = "A survey"
about = "Three small heads."

[defaults]
domain = "box:100"

[[family]]
name = "Twelve features"

[[family.model]]
name = "base"
file = "base.npz"

[[family.model]]
name = "rounded"
file = "rounded.npz"

[[family]]
name = "Twenty-four features"

[[family.model]]
name = "wide"
file = "wide.npz"
""",
    encoding="utf-8",
)

# %%
# !argmaxable campaign survey.toml --db runs.db --index survey.md

# %% [markdown]
# Run the same command again: finished models are not computed twice, and an interrupted one resumes.

# %%
# !argmaxable campaign survey.toml --db runs.db

# %% [markdown]
# ## What is stored

# %%
# !argmaxable runs --db runs.db

# %%
# !argmaxable compare 1 2 --db runs.db

# %% [markdown]
# ## For a paper, and for Python

# %%
# !argmaxable table --db runs.db

# %%
from collections import Counter

import argmaxable as am

with am.open_store("runs.db") as store:
    record = store.read(1)
Counter(verdict.status.value for verdict in record.verdicts)

# %% [markdown]
# With pandas installed, `record.to_frame()` is a data frame with a row for each class.

# %% [markdown]
# ## Next
#
# * [Campaigns](../campaigns.md): families, scripts, models inside packages
# * [Stored runs](../runs.md), [the explorer](../explorer.md) (`argmaxable serve --db runs.db`)
# * PostgreSQL, so that many machines share one database: `--db postgresql://…`
