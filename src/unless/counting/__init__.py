"""Contingency tables of a Dataset, counted the fastest way its shape allows.

`reference` says what a source of counts promises (`CountSource`) and has the readable one, in plain numpy.
`slices` counts two variables in one context: by packed bitmaps, or from the dense cube of a small domain.
`strata` counts them in every stratum of some more at once, and sums their statistics up. Tests hold both
equal to the reference.

>>> from unless.datasets import load_ucb_admissions
>>> from unless.counting.reference import PlainCounts
>>> PlainCounts(load_ucb_admissions()).count(0, 1, {2: 0}).tolist()
[[512, 89], [313, 19]]
"""
