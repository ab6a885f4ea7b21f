"""Pickles, which are refused with advice."""
