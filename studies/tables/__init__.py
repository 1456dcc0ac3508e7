"""Studies of tables as people have them: with weights, missing values, many columns."""
