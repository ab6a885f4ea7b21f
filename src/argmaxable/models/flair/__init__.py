"""Models of flair: sequence taggers and classifiers of text."""
