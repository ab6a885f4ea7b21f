"""Giving unargmaxable classes their chance back, by the smallest change that does it."""

from argmaxable.edit.repair.plan import Repair, repair

__all__ = ["Repair", "repair"]
