"""What was found, for people: words, tables, pages, figures, and files for other tools."""
