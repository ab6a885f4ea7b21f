"""Indices of hnswlib."""
