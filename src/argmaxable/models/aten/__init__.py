"""PyTorch's operations (ATen) as the graph that `models/graph/` walks; for TorchScript and torch.export."""
