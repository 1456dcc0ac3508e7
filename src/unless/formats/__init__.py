"""Files that models are kept in and exchanged through. Imports weights and below, never learners."""
