"""What is trusted: one module for each kind of evidence.

No solver is reached from here, not even through an import.
"""
