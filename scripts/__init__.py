"""Programs for those who work on the package; `python -m scripts.NAME` runs one."""
