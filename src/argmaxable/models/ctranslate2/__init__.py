"""Models of CTranslate2 (model.bin): our own parser of the file, the head in it and its vocabulary."""
