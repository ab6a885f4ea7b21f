"""Giving unargmaxable classes their chance back, by the smallest change that does it."""

from argmaxable.edit.repair.plan import Repair, repair_head

__all__ = ["Repair", "repair_head"]
