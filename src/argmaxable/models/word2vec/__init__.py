"""Word vectors in word2vec's format."""
