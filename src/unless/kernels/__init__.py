"""Compiled loops: arrays in, arrays out, no validation, no library types. The only room that knows numba."""
