"""Programs of the repository, run by make or by hand; not part of the package."""
