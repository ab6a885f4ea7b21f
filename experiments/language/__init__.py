"""The language models: which are trained and how, their tables and figures."""
