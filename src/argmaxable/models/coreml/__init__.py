"""Core ML's programs (.mlpackage, .mlmodel), as coremltools writes them."""
