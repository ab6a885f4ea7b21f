"""TensorFlow's numbers of data types (types.proto): numpy's names and the bytes that a number takes."""

from __future__ import annotations

TYPES = {
    **{1: ("float32", 4), 2: ("float64", 8), 14: ("bfloat16", 2), 19: ("float16", 2)},
    **{3: ("int32", 4), 4: ("uint8", 1), 5: ("int16", 2), 6: ("int8", 1), 9: ("int64", 8), 10: ("bool", 1)},
    **{17: ("uint16", 2), 22: ("uint32", 4), 23: ("uint64", 8)},
}
TEXT = 7
WHOLE = frozenset({3, 9})
# ONNX's numbers of float types, which the graph's casts are written in.
CASTS = {1: 1, 2: 11, 14: 16, 19: 10}
CAST_NAMES = {number: TYPES[type_][0] for type_, number in CASTS.items()}
