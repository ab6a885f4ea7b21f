"""TorchScript archives (torch.jit.save): a program that is read, never run, and its tensors."""
