"""One chapter for each kind of column: numbers, texts (dates, scales, choices), levels."""
