"""Files that models are kept in and exchanged through. Imports structures, data and below, never learners."""
