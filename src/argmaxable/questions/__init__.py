"""What can be asked about a head, each answer with its evidence; a folder for each larger question."""
