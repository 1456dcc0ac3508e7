"""Tables become a Dataset of distinct rows, counts, names and levels. Imports kernels and errors."""
