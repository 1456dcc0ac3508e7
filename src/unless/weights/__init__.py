"""Weights for features: priors, likelihoods, optimisers, and fits by them. Imports inference and below."""
