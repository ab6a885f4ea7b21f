"""fastText models (.bin, .ftz): our own parser of the file, and the head in it."""
