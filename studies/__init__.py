"""Studies of what Unless says: run from the repository, not installed."""
