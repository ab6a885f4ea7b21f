"""PyTorch's files (.bin, .pt, .pth, .ckpt): tensors out of checked pickles; the head is written back."""
