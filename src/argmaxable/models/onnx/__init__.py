"""ONNX models: an outline without weights, the graph for `models/graph`, the head read and written."""
