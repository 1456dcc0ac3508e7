"""How far a model is from the truth or from another one. Imports knowledge and below, never learners."""
