"""The experiments of the papers, one file for each claim: `python -m experiments.NAME`."""
