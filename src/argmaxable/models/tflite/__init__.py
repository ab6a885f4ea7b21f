"""TensorFlow Lite models: our own parser of FlatBuffers, and the head with what feeds it."""
