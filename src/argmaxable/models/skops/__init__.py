"""scikit-learn's classifiers as skops saves them: a zip archive of JSON and arrays."""
