"""Priors by the name of the room that uses them; they are kept where files of models can read them too."""

from unless.inference.priors import NO_PRIOR, Gaussian, Laplace, Prior, parse_prior

__all__ = ["NO_PRIOR", "Gaussian", "Laplace", "Prior", "parse_prior"]
