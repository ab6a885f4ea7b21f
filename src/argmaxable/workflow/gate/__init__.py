"""Whether a run passes: against a baseline, an allow-list, and what the user wants to fail on."""
