"""One thread for PyTorch: the problems are small, and test processes share the cores."""

import torch

torch.set_num_threads(1)
