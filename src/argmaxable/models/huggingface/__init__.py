"""Folders as Hugging Face lays them out, and single safetensors files: tensors, config.json, tokenizer."""
