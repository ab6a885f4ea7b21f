"""NVIDIA NeMo: tar archives with a configuration and a PyTorch checkpoint."""
