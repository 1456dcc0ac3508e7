"""Weights for features, by penalised pseudo-likelihood. Imports formats, inference and below."""
