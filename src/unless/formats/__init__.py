"""Files that models are kept in and exchanged through. Imports inference and below, never learners."""
