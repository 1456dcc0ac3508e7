"""Contingency tables of a Dataset, counted the fastest way its shape allows. Imports structures and below."""
