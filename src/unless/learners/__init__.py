"""Estimators: settings in, fitted structure out. Imports everything but the command line."""
