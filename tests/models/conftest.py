"""One thread for PyTorch: tiny models gain nothing from more, which wait for each other at full speed."""

import torch

torch.set_num_threads(1)
