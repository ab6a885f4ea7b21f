"""The check-up of a model: rows that stand out, what that means, what to do about it (docs/doctor.md)."""
