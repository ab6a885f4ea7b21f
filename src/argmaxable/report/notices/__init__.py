"""What a check found, as the files and lines that other programs show beside code."""
