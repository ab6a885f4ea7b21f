"""Exported programs (torch.export.save, .pt2): a graph in JSON, and its tensors."""
