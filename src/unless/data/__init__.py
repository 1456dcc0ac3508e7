"""Tables on disk or in memory become a Dataset of distinct rows, counts, names and levels. Imports kernels and errors."""
