"""The best rank that a class reaches at any input, from both sides (docs/explain.md)."""
