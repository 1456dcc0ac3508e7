"""The paper's experiments, run again: plans of runs, a file each; tables, claims and figures from them.

Run by `make paper`, or `python -m studies.paper`.
"""
