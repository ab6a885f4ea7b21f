"""Which named tensors of a checkpoint are its head, and what feeds it: tables of families and usual names."""
