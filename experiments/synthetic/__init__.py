"""The synthetic bottleneck: learning on distributions without structure, the rules of long runs, tables and
figures."""
