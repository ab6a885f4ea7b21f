"""Flax's weights in MessagePack (.msgpack), as `flax.serialization` and transformers write them."""
