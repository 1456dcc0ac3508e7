"""The command line: thin calls into the library, kind messages, exit codes. Imports every other room.

`program` finds the command, `commands/` holds one file each; numpy, DuckDB and rich load when a command runs.
"""

from unless.cli.program import main as main
