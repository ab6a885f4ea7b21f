"""llamafiles: programs with a zip archive behind them that holds a GGUF."""
