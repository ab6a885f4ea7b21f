"""Safetensors files: our own parser of the header; single tensors are read, and written in place."""
