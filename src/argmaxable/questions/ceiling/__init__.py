"""The largest probability of each class, and whether it can enter a nucleus (docs/ceilings.md)."""
