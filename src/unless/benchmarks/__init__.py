"""What Unless costs, beside what others cost: `unless bench`. Figures, never tests."""
