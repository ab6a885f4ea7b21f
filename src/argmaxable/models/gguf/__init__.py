"""GGUF files of llama.cpp: our own parser of the header, the head, its labels and its inputs."""
