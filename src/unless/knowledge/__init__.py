"""Statements about the pairs of a table, with their evidence, whatever structure proposed them.

`explaining` decides which verdicts of the referee are findings; `evidence` adds strength, percentages and
tables; `sentences` writes them in English; `statements` is the list a user receives, read in a context or for
one column; `records` saves and loads it. `asking` answers one question, `comparing` compares two tables.
"""
