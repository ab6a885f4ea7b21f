"""ncnn's models: a network (.param) and its weights (.bin)."""
