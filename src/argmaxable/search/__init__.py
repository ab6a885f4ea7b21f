"""Finds witnesses: own directions, corners, reflection, ascent.

It may be clever and it may be wrong: the check decides what counts.
"""
