"""Arithmetic that may be trusted: dyadic numbers, rounding bounds, an enclosed exponential.

It knows nothing of heads and classes.
"""
