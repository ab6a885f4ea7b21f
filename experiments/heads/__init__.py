"""What experiments ask of an output layer: how hard its classes are to settle, who they are, how frequent."""
