"""What the papers prove about the softmax bottleneck, as functions that run on a real head."""
