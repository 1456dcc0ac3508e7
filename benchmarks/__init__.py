"""What Unless costs, beside what others cost: `make bench`, or `python -m benchmarks`. Figures, never tests.

Run from the repository; not installed with Unless.
"""
