"""Why a class can never be predicted, how far off it is, or how safely it wins (docs/explain.md)."""
