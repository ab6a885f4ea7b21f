"""NumPy's files (.npz, .npy): our own layout, Marian's and Nematus's; the head is read and written."""
