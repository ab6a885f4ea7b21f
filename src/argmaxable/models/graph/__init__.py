"""Computation graphs, whatever the format: the last linear layer, and which inputs it can get."""
