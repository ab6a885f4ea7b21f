"""Whether any input ranks classes in a given order, and how such orders are written (docs/theory.md)."""
