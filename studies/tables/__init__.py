"""Tables as people have them: numbers, confounders that are cut, missing values, weighted samples."""
