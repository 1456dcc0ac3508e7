"""The paper's experiments, run again: plans of cells, a file each; tables, claims and figures from them.

May import every room but `cli`. Nothing here is needed to learn or to ask.
"""
