"""Tests of independence. Imports counting and below.

Statistics, p-values and q-values are computed in `statistics` (chi-square laws, the Bayesian evidence) and,
where cells are nearly empty, in `sparse` (permutations). `tests` has the tests, their verdicts and `ask`;
`oracle` answers many questions about one table; `power` has the power of tests and their critical values;
`logistic` fits regressions of one variable on others; `design_effects` corrects statistics for surveys.

>>> from unless.independence.tests import PearsonTest
>>> PearsonTest().on([[30, 10], [10, 30]]).answer
'dependent'
"""
