"""One file a command; each is imported when it is called, and its docstring is the end of its help."""
