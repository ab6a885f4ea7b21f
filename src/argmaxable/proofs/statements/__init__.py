"""Unargmaxable classes as statements that other people's solvers and checkers decide: SMT-LIB and VIPR."""
