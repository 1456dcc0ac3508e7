"""What Unless costs, beside what others cost: `python -m benchmarks`. Figures, never tests."""
