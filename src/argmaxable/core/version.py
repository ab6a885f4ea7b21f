"""The version of this package; the single place that states it."""

VERSION = "0.2.0"
