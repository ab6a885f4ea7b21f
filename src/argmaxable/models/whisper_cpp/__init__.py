"""The GGML files of whisper.cpp: our own parser, the tied head and its tokens."""
