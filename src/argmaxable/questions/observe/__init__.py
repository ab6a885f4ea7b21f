"""Grades of classes by what examples show: measured, and told apart from what is proven."""
