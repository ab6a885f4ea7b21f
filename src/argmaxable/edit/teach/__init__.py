"""Teaching classes from examples: one new row each, everything else as it was."""

from argmaxable.edit.teach.plan import Taught, TeachingRules, teach

__all__ = ["Taught", "TeachingRules", "teach"]
