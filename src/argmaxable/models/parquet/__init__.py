"""Columns of vectors in Parquet files."""
