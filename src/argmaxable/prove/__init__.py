"""Finds certificates: the margin loop over the interior point, shared rows, transfer, exact simplex, HiGHS.

It may be clever and it may be wrong: the check decides what counts.
"""
