"""Who shares the solves of a run: this process alone, other processes, or the workers of a Ray cluster."""
