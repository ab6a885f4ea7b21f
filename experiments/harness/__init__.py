"""What every experiment runs in: its cells, the command line, processes and progress, storage, and what is
published. It knows no experiment."""
