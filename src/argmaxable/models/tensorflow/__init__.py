"""TensorFlow's SavedModels, frozen graphs and checkpoints, read without TensorFlow."""
