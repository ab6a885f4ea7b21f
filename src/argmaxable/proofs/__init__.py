"""Claims on disk: bundles, a codec for each kind of claim, and one re-check for all kinds. No solver."""
