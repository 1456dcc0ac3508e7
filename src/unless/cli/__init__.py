"""The command line: thin calls into the library, kind messages, exit codes."""
