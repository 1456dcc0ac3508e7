"""The command line: thin calls into the library, kind messages, exit codes. Imports every other room.

`program` finds the command, `commands/` holds one file each. What they share: `options` (each declared once
for all), `files` (tables and models read, results written), `output` (words and JSON), `failures` (sentences
and exit codes). numpy, DuckDB and rich load when a command runs.
"""

from unless.cli.program import main as main
