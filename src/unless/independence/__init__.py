"""Tests of independence. Imports counting and below.

Statistics and p-values are computed in `statistics` (chi-square laws, the Bayesian evidence) and, where cells
are nearly empty, in `sparse` (permutations). `tests` has the tests, their verdicts and `ask`; `oracle`
answers many questions about one table; `power` says what a test can show, `multiplicity` what many tests at
once are worth; `logistic` fits regressions of one variable on others; `design_effects` corrects for surveys.

>>> from unless.independence.tests import PearsonTest
>>> PearsonTest().on([[30, 10], [10, 30]]).answer
'dependent'
"""
