"""Keras models (.h5, .hdf5, .keras): configuration and weights; HDF5 is read in a child process."""
