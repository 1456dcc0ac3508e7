"""Where tables come from: one file a format, and what reading them needs.

`opening` opens any kind of table; its `FORMATS` lists the file formats. To add one, write a file here with a
function `open_...(file, session, how) -> Source` and add a line to `FORMATS`.

`session` is what a format is given (a file, a locked-down DuckDB connection with a temporary folder) and what
it returns (a relation and its fields). `unpacking`, `excel` and `labelled` do their work in a child
process with bounds on memory and time. The child imports this package, so nothing is imported here.
"""
