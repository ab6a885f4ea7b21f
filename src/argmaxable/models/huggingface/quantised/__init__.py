"""Quantised weights of Hugging Face checkpoints, as exact floats again: a module for each kind."""
