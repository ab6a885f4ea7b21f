"""Tesseract's language files (.traineddata): our own parser, and the LSTM recogniser's softmax in them."""
