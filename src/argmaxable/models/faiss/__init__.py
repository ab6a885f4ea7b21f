"""Flat indices of faiss."""
