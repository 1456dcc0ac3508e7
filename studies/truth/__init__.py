"""How much of what is said is true, measured on tables whose law is known."""
