"""Where tables come from: a file for each format or family of formats, and what reading them needs.

`opening` opens any kind of table; its `FORMATS` lists the file formats and its first lines say how to add
one: a file here with a function `open_...(file, session, how) -> Source`, and a line in `FORMATS`.
`structured` has Parquet and JSON, `labelled` Stata and SPSS.

`session` is what a format is given (a file, a locked-down DuckDB connection with a temporary folder) and what
it returns (a relation and its fields). `unpacking`, `excel` and `labelled` do their work in a child
process with bounds on memory and time. The child imports this package, so nothing is imported here.
"""
