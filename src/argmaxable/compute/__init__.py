"""Arithmetic that is fast: the prepared head, coordinates, identical rows, backends, memory."""
