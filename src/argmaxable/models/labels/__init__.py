"""Names of classes: vocabularies and tokenizers in their many files, and how tokens read as text."""
