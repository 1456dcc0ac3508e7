"""What builds wheels: the list of signatures, and the extension that is compiled from it. Not installed."""
